"""The dataset card `README.md` of a derived folder, with the hub's front matter."""

from __future__ import annotations

from typing import Any


def card(manifest: dict[str, Any]) -> str:
    """Front matter that `load_dataset(folder)` and the hub read, then the recipe for people."""
    source = manifest["source"]
    lines = ["---", f"license: {_licence(source['licence'])}"]
    lines += [f"language: [{source['language']}]", "tags: [derivlang, derived-language]", "configs:"]
    lines += ["- config_name: default", "  data_files:"]
    for split in manifest["splits"]:
        lines += [f"  - split: {split}", f"    path: data/{split}-*.parquet"]
    lines += ["---", "", f"# {source['name']} under `{manifest['spec']}`", ""]
    lines += [
        f"A derived language, made by derivlang {manifest['derivlang']} "
        "from the source below: its words in another form or place, its labels with them; changes are counted here.",
        "",
        "## Recipe",
        "",
        f"    derivlang make --t '{manifest['spec']}' {source['name']}",
        "",
        "| | |",
        "|---|---|",
        f"| fingerprint | `{manifest['fingerprint']}` |",
        f"| words | {manifest['words']} |",
        f"| sentences | {manifest['sentences']} |",
    ]
    for name, entry in manifest["splits"].items():
        lines.append(
            f"| {name} | {entry['documents']:,} documents, {entry['sentences']:,} sentences, "
            f"{entry['tokens']:,} tokens |"
        )
    for reason, count in {**manifest["changed"], **manifest["dropped"]}.items():
        lines.append(f"| {reason} | {count:,} |")
    lines += ["", "## Columns", ""]
    lines += [
        "`tokens` is the derived sentence, `source` the source's, `order` the exact alignment: derived word j is "
        "source word `order[j]`. `docs/formats.md` of derivlang lists every column.",
        "",
        "## Source",
        "",
        f"{source['name']}; licence of the source: {source['licence']}.",
        "",
    ]
    if source["citation"]:
        lines += [source["citation"], ""]
    lines += [
        "Derived languages: Deshpande, Talukdar, Narasimhan (2022): When is BERT Multilingual? NAACL 2022; "
        "Tang, Deshpande, Narasimhan (2022): ALIGN-MLM. arXiv 2211.08547.",
        "",
    ]
    return "\n".join(lines)


def _licence(licence: str) -> str:
    return licence if licence.replace("-", "").replace(".", "").isalnum() else "other"
