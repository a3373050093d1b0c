"""`derivlang show`: source and derived sentences side by side, with their links, trees and labels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from derivlang.cli.generated import as_json, command_line
from derivlang.cli.messages import echo, painted
from derivlang.cli.types import PATH
from derivlang.commands.command import Command, transforms
from derivlang.core.dependencies import OptionNeeds
from derivlang.core.errors import DataError, UsageError
from derivlang.core.messages import counted
from derivlang.core.settings import declared, replaces, setting
from derivlang.engine.options import LexiconOption
from derivlang.formats.places import OptionalPath, located
from derivlang.sources.request import SourceRequest, TextOptions

if TYPE_CHECKING:
    from derivlang.core.takes import Mode
    from derivlang.display.rows import LinkedLines


class _FileOptions(TextOptions):
    """How a text or a file is read."""

    heading: ClassVar[str] = "Text or file"


@dataclass(frozen=True, eq=False, repr=False)
class _ShowRows(Command[None], LexiconOption, _FileOptions):
    """Show each derived word beside its source word, for rows of a derived set, or for a text or file (with --t).

    Trees stand at the left, tags and entities at the right. Colours are shown where the terminal has them, unless
    NO_COLOR is set. A page of --html is complete in itself: it loads nothing.

    \b
    derivlang show OUT --split test -n 2
    derivlang show OUT --row 5 --html rows.html
    derivlang show --t trans,syn:fr treebank.conllu
    derivlang show --t trans,inv "Hello, world!"
    derivlang show --t trans,inv --words space "Welcome to ACL ."
    """

    needs: ClassVar[Mapping[str, OptionNeeds]] = dict.fromkeys(
        ("lexicon", *declared(TextOptions)), OptionNeeds(only_with="--t")
    )
    derived: str
    spec: str | None = transforms(
        "Transforms of a text or file of your own; DERIVED is then the text, or the path of the file."
    )
    split: str | None = setting(None, "Split to show.", unset="the first")
    row: int = setting(0, "First row to show, from 0.", minimum=0)
    count: int = setting(3, "Number of rows to show.", also="-n", minimum=1)
    html: OptionalPath = setting(
        None, "File to write the rows to as a page with drawings; FILE.svg: the first row.", file=True, writes=True,
    )  # fmt: skip
    force: bool = replaces(only_with="--html")

    def __call__(self) -> None:
        """Print the rows, or write a page of them."""
        from derivlang.display.view import View

        rows, title, told = self._rows()
        shown = View(rows, title)
        if self.html is not None:
            shown.save(self.html, told, force=self.force)
            drawn = 1 if self.html.suffix.lower() == ".svg" else len(rows)
            echo(f"{self.html}: {counted(drawn, 'drawing')}", err=as_json())
        if as_json():
            for row in rows:
                echo(json.dumps(_object(row), ensure_ascii=False))
        elif self.html is None:
            echo(shown.text(painted), escaped=True)

    def _rows(self) -> tuple[list[LinkedLines], str, str]:
        """Return (rows, the title of a page, what it says of their origin)."""
        spec, lexicon = self.spec, self.path("lexicon")
        if spec is None:
            return _of_set(located(self.derived), self.split, self.row, self.count)
        if _is_file(self.derived):
            if self.split is not None:
                raise UsageError("a file has one split", where="--split", fix="leave --split out", id="unused-option")
            return _of_file(self.part(SourceRequest, source=self.derived), spec, lexicon, self.row, self.count)
        of_files = [name for name in declared(TextOptions) if name not in ("words", "lang")]
        for name in ("split", "row", "count", *of_files):
            if name in self.given:
                option = declared(_ShowRows)[name].where
                why = "is for a file or a set, not for a text"
                raise UsageError(why, where=option, fix=f"leave {option} out", id="unused-option")
        return _of_text(self.derived, spec, lexicon, self.words, self.lang)


def _is_file(text: str) -> bool:
    """Return whether a text is the path of a file. Raise DataError if it looks like one that is not there."""
    from derivlang.formats.base import suffixes

    try:
        is_file = (located(text) if len(text.split()) == 1 else Path(text)).is_file()
    except (OSError, ValueError):  # too long, or with a NUL character
        return False
    if not is_file and len(text.split()) == 1 and text.endswith(tuple(suffixes())):
        raise DataError("there is no such file", where=text, fix="check the path", id="missing-file")
    return is_file


def _of_text(
    text: str, spec: str, lexicon: Path | None, words: Mode | None, language: str | None
) -> tuple[list[LinkedLines], str, str]:
    from derivlang.api import derive_chunks

    ((derived,),) = derive_chunks([[text]], spec, words=words, lang=language or "en", lexicon=lexicon, one=True)
    return [derived.linked()], spec, ""


def _of_file(
    request: SourceRequest, spec: str, lexicon: Path | None, first: int, count: int
) -> tuple[list[LinkedLines], str, str]:
    from derivlang.display.rows import rows_of_file
    from derivlang.pipeline import Pipeline

    pipeline = Pipeline.parse(spec)
    rows = rows_of_file(request, pipeline, first, count, lexicon)
    return rows, located(request.source).name, f"{pipeline} of {request.source}"


def _of_set(folder: Path, split: str | None, first: int, count: int) -> tuple[list[LinkedLines], str, str]:
    from derivlang.display.rows import rows_of_set, set_of

    derived, name = set_of(folder, split)
    rows = rows_of_set(derived, name, first, count)
    return rows, folder.name, f"{derived.pipeline} of {derived.manifest['source']['name']}, split {name}"


def _object(shown: LinkedLines) -> dict[str, Any]:
    """Return what `--json` prints of a row. labels: of the derived words, by column; values: of the row."""
    from derivlang.display.view import tags_of

    line = shown.derived
    trees = {"head": line.head, "deprel": line.relation} if line.head else {}
    facts = {"row": int(shown.facts.get("row", "0"))} | {k: v for k, v in shown.facts.items() if k != "row"}
    return {
        **facts,
        "source": shown.source.words,
        "tokens": line.words,
        "order": shown.order,
        "labels": {**line.tags, **trees, **tags_of(line)},
        **({"values": dict(shown.values)} if shown.values else {}),
    }


command = command_line(
    _ShowRows,
    "show",
    arguments=[click.Argument(["derived"], shell_complete=PATH.shell_complete)],
    run=lambda asked: asked(),
    json_help="Print the rows as JSON.",
    first=("spec", "lexicon"),
)
