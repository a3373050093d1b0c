"""The dataset card `README.md` of a derived folder, with the front matter that the Hugging Face hub reads."""

from __future__ import annotations

import json
import re
import shlex
from hashlib import sha256
from typing import Any

from derivlang.store.manifest import counts_of, data_folder, document_of, shards_of

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_PLAIN_PATH = re.compile(r"data[a-f0-9-]*/[A-Za-z0-9._-]+\*\.parquet")
# Words that YAML does not read as strings; `no` is also the code of Norwegian.
_NO_STRINGS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
_NOT_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")  # beyond those that JSON escapes
_LINE_END = re.compile(r"\r\n?|\n")
# What begins HTML, code, a character reference or the target of a link. Other marks stay, as in a_b.txt.
_MARKUP = re.compile(r"[<`]|&(?=#?\w+;)|(?<=\])\(")


def card(manifest: dict[str, Any], with_defaults: str) -> str:
    """Return the card: front matter for `load_dataset(folder)` and the hub, then the recipe for people.

    with_defaults: the spec with every parameter.
    """
    source = manifest["source"]
    name = " ".join(source["name"].split())
    shown = _text(name)
    lines = ["---", f"license: {_scalar(_licence(source['licence']))}"]
    lines += [f"language: [{_scalar(source['language'])}]", "tags: [derivlang, derived-language]", "configs:"]
    # `datasets` caches a folder by its name and these lines. Without what identifies the rows, another set in the same
    # folder, with equal columns, would be read from the cache of the first.
    hashes = [shard["sha256"] for shard in shards_of(manifest)]
    identity = sha256(" ".join(hashes).encode()).hexdigest()[:16]
    lines += ["- config_name: default", f"  description: {_scalar(f'rows {identity}')}", "  data_files:"]
    for split in manifest["splits"]:
        path = f"{data_folder(manifest)}/{split}-*.parquet"
        lines += [f"  - split: {_scalar(split)}", f"    path: {_scalar(path, path=True)}"]
    revision = source.get("revision", "")
    pinned = f"{name}@{revision}" if revision and name.startswith("hub:") else name
    command = ["derivlang", "make", "--t", manifest["spec"], *manifest.get("options", []), pinned]
    lines += ["---", "", f"# {shown} under {_code(manifest['spec'])}", ""]
    lines += [
        "A derived language, made by derivlang "
        "from the source below: its words in another form or place, its labels with them; changes are counted here.",
        "",
        "## Recipe",
        "",
        _LINE_END.sub(r"\g<0>    ", f"    {shlex.join(command)}"),  # a line without the indent would end the block
        "",
        *([f"With every parameter, the spec is {_code(with_defaults)}.", ""] * (with_defaults != manifest["spec"])),
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
        what = _text(_LINE_END.sub(" ", reason)).replace("|", "&#124;")  # it may hold the name of a column
        lines.append(f"| {what} | {count:,} |")
    lines += ["", "## Columns", ""]
    lines += [
        "`tokens` is the derived sentence, `source` the source's, `order` the exact alignment: derived word j is "
        'source word `order[j]`. The page "Columns" of derivlang\'s documentation lists every column.',
        "",
        "## Source",
        "",
        f"{shown}{revision and f', revision {_text(revision)}'}; licence of the source: {_text(source['licence'])}.",
        "",
    ]
    if source["citation"]:
        lines += [_text(source["citation"]), ""]
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
    if plain:
        return text
    return _NOT_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))


def _text(plain: str) -> str:
    """Return text for the body, in which the name of a file or of a column is neither HTML nor a link."""
    return _MARKUP.sub(lambda match: f"&#{ord(match[0])};", plain)


def _code(text: str) -> str:
    """Return a line of code, between more backticks than follow each other in it."""
    text = _LINE_END.sub(" ", text)
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence} {text} {fence}" if "`" in text else f"`{text}`"
