"""The dataset card `README.md` of a derived folder, with the front matter that the Hugging Face hub reads."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from derivlang.store.manifest import counts_of, document_of

CARD = "README.md"
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_PLAIN_PATH = re.compile(r"data/[A-Za-z0-9._-]+\*\.parquet")
# Words that YAML does not read as strings; `no` is also the code of Norwegian.
_NO_STRINGS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def card(manifest: dict[str, Any]) -> str:
    """Return the card: front matter for `load_dataset(folder)` and the hub, then the recipe for people."""
    source = manifest["source"]
    name = " ".join(source["name"].split())
    lines = ["---", f"license: {_scalar(_licence(source['licence']))}"]
    lines += [f"language: [{_scalar(source['language'])}]", "tags: [derivlang, derived-language]", "configs:"]
    lines += ["- config_name: default", "  data_files:"]
    for split in manifest["splits"]:
        lines += [f"  - split: {_scalar(split)}", f"    path: {_scalar(f'data/{split}-*.parquet', path=True)}"]
    lines += ["---", "", f"# {name} under `{manifest['spec']}`", ""]
    lines += [
        "A derived language, made by derivlang "
        "from the source below: its words in another form or place, its labels with them; changes are counted here.",
        "",
        "## Recipe",
        "",
        f"    {shlex.join(['derivlang', 'make', '--t', manifest['spec'], *manifest.get('options', []), name])}",
        "",
        "| | |",
        "|---|---|",
        f"| fingerprint | `{manifest['fingerprint']}` |",
        f"| words | {manifest['words']} |",
        f"| sentences | {manifest['sentences']} |",
    ]
    for split, entry in manifest["splits"].items():
        counts = counts_of(entry, document_of(manifest))
        lines.append(f"| {split} | {', '.join(f'{count:,} {noun}' for noun, count in counts.items())} |")
    for reason, count in {**manifest["changed"], **manifest["dropped"]}.items():
        lines.append(f"| {reason} | {count:,} |")
    lines += ["", "## Columns", ""]
    lines += [
        "`tokens` is the derived sentence, `source` the source's, `order` the exact alignment: derived word j is "
        'source word `order[j]`. The page "Columns" of derivlang\'s documentation lists every column.',
        "",
        "## Source",
        "",
        f"{name}; licence of the source: {source['licence']}.",
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


def _scalar(text: str, *, path: bool = False) -> str:
    """Return a string as YAML: plain if every reader takes it for a string, else quoted as in JSON."""
    plain = (_PLAIN_PATH if path else _PLAIN).fullmatch(text) and text.lower() not in _NO_STRINGS
    return text if plain else json.dumps(text, ensure_ascii=False)
