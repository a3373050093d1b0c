"""What all commands that read a source share: options, progress, and the printed result.

What a run counted is printed as sentences. `--json` and the manifest keep the names (docs/reference/counts.md):

    mwt-dissolved 18 -> 18 multiword tokens were dissolved: their words are no longer adjacent …
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from derivlang.cli.messages import echo, is_quiet, say, tell
from derivlang.commands.folders import set_size as set_size
from derivlang.display.bar import ProgressBar
from derivlang.formats.places import STDOUT, located
from derivlang.formats.progress import LOOKING, Unit

if TYPE_CHECKING:
    from derivlang.commands.results import DerivedSet
    from derivlang.core.schema import Field


# What transforms count; layers declare theirs in `Layer.losses`. [a|b]: a of one thing, b of several.
_OF_TRANSFORMS = {
    "lex-replaced": "word[|s] [was|were] replaced by lex",
    "hops-cut": "marker[|s] of hop [has|have] too few words before the end of the sentence, and [stands|stand] there",
    "hops-unknown": "verb[|s] tagged VBP [has|have] no marker of hop, since the tag does not say [its|their] person",
    "hops-without-phrase": "marker[|s] of hop [stands|stand] directly after [its verb, which heads|their verbs, which "
    "head] no such phrase",
    "sentences-emptied": "sentence[|s] lost all words and [is|are] empty",
    "switch-unknown": "constituent[|s] [keeps its|keep their] order, since no rule of the grammar makes [it|them]",
    "trees-not-projective": "source tree[|s] [has|have] crossing arcs (punctuation within phrases not counted): "
    "a phrase with gaps became one block, unless nonprojective=keep-order",
    "trees-kept-for-a-mark": "tree[|s] [keeps its|keep their] order, since a bracket or quote would come first",
}
_FORMS = re.compile(r"\[([^\]|]*)\|([^\]]*)\]")


def templates_of(fields: Iterable[Field]) -> dict[str, str]:
    """Return the sentence of each count that a set with these fields may have, with its [singular|plural] forms."""
    from derivlang.core.layers.base import find_layer

    templates = dict(_OF_TRANSFORMS)
    for field in fields:
        for name, template in find_layer(field.kind).losses.items():
            templates[name.format(field.column)] = template.format(field.column)
    return templates


def sentences(counts: Mapping[str, int], templates: Mapping[str, str]) -> list[str]:
    """Return what counts mean. Those that share a template are one sentence, with the middles of their names behind it.

    misc-Entity-dropped 8, misc-Bridge-dropped 4   ->   12 notes of misc were left out …: Entity 8, Bridge 4
    """
    shared = Counter(templates.values())
    parts: dict[str, list[str]] = {}
    for name in counts:
        template = templates.get(name, "")
        parts.setdefault(template if shared[template] > 1 else name, []).append(name)
    lines = []
    for names in parts.values():
        line = sentence(names[0], sum(counts[name] for name in names), templates)
        if shared[templates.get(names[0], "")] > 1:
            line += ": " + ", ".join(f"{name.split('-')[1]} {counts[name]:,}" for name in names)
        lines.append(line)
    return lines


def sentence(name: str, count: int, templates: Mapping[str, str]) -> str:
    """Return what a count means; `name: 3` if it has no template."""
    if name not in templates:
        return f"{name}: {count:,}"
    return f"{count:,} {_FORMS.sub(lambda forms: forms[1 if count == 1 else 2], templates[name])}"


Command = TypeVar("Command", bound=Callable[..., Any])


_FOUND = f"{__name__}.found"
AS_JSON = "as_json"


def as_json() -> bool:
    """Return whether the running command prints JSON."""
    return bool(click.get_current_context().params[AS_JSON])


def to_stdout(asked: Any) -> bool:
    """Return whether a command writes its file to standard output."""
    return asked.out is None or asked.out == STDOUT


def place_of(out: Path | str) -> str:
    """An output file as a message calls it."""
    return "standard output" if str(out) == str(STDOUT) else str(out)


def show_set(asked: Any, made: DerivedSet) -> None:
    """Print what a command that made a set has counted: its speed, too, unless the set was complete."""
    result = made.summary
    if as_json():
        echo(json.dumps(result, ensure_ascii=False))
        return
    from derivlang.core.schema import Schema
    from derivlang.store.manifest import counts_of

    for name, entry in result["splits"].items():
        counts = counts_of(entry, result["document"])
        echo(f"{name:<11}" + " ".join(f"{count:>12,} {noun}" for noun, count in counts.items()))
    manifest = _manifest(located(result["out"]))
    templates = templates_of(Schema.from_json(manifest["schema"]).layer_fields if manifest else ())
    for line in sentences({**result["changed"], **result["dropped"]}, templates):
        echo(line)
    for name, entry in manifest.get("entities", {}).items():
        entities = "entity was" if entry["entities"] == 1 else "entities were"
        echo(f"{name}: {entry['broken_percent']} % of {entry['entities']:,} {entities} split by the reordering")
    speed = f"  in {result['seconds']:.1f} s, {result['tokens_per_second']:,} tokens per second"
    if _FOUND in click.get_current_context().meta or asked.given == {"place"}:  # of `finish`, which has made nothing
        speed = ""
    echo(f"{result['out']}{os.sep}{speed}")


def _manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest, for what the fixed form of `--json` leaves out; {} if the result is not a derived set."""
    path = folder / "derivlang.json"
    manifest: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return manifest


class Bar(ProgressBar):
    """A progress bar on stderr, if that is a terminal, for each stage of a command's work.

    shown: False for no bars at all. begins: what is said when the input has been checked, so that a refused command
    does not seem to write anything: at the first stage after LOOKING, at `begin`, or at the end of the block.
    """

    def __init__(self, *, shown: bool = True, begins: str = "") -> None:
        super().__init__(shown=shown and sys.stderr.isatty() and not is_quiet())
        self._begins = begins

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        if error[0] is None:
            self.begin()

    @contextmanager
    def stage(self, what: str, unit: Unit | None = "bytes", total: int | None = None) -> Iterator[None]:
        """Say `begins`, and show a bar that follows the work of the block."""
        self._close()
        if what != LOOKING:
            self.begin()
        with super().stage(what, unit, total):
            yield

    def begin(self) -> None:
        """Say `begins`, unless it has been said: everything is checked, and the work begins."""
        if self._begins:
            say(self._begins)
            self._begins = ""

    def begins(self, text: str) -> None:
        """Say a line when the input has been checked."""
        self._begins = text

    def tell(self, line: str) -> None:
        """Print a line on stderr."""
        self.begin()
        tell(line)

    def found(self, place: Path) -> None:
        """Say that the folder or file is complete, and nothing of what would begin."""
        self._begins = ""
        click.get_current_context().meta[_FOUND] = True
        complete(place)


def complete(out: Path) -> None:
    """Say that an earlier run of the same command has made this folder or file."""
    say(f"{out}{'' if out.is_file() else os.sep} is already complete: nothing to do")
