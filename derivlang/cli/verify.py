"""`derivlang verify`: check a derived set against its source, or the files of a run, a study, a parser or a grammar."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from derivlang.cli.generated import as_json, command_line
from derivlang.cli.messages import echo
from derivlang.cli.options import Bar
from derivlang.cli.types import SET
from derivlang.commands.command import Command
from derivlang.commands.folders import set_size
from derivlang.core.errors import DataError, StoreError
from derivlang.core.messages import counted, in_shell
from derivlang.formats.places import check_local


@dataclass(frozen=True, eq=False, repr=False)
class _VerifyPlace(Command[None]):
    """Check DERIVED, a derived set, a run, a study, a parser or a grammar. Exit with 1 if anything differs.

    Of a set, every row is derived again from its source, all columns are compared, and the row is undone. Of a run or
    of a study, every file is compared with its hash: model, tokenizer, checkpoints, data, records, evaluations. So are
    the model of a parser (`parser train`) and a grammar file (`grammar fit`).

    With OTHER, say instead whether both sets are of one language, and if not, what differs. Fingerprints are compared,
    no rows.

    \b
    derivlang verify OUT OTHER
    derivlang verify OUT --json
    """

    derived: Path
    other: Path | None = None

    def __call__(self) -> None:
        """Print what differs, and exit."""
        if self.other is not None:
            _compare(self.derived, self.other)
            return
        with Bar() as bar, bar.stage("verifying", total=set_size(self.derived)):
            result = _verify(self.derived)
        if as_json():
            echo(json.dumps(result, ensure_ascii=False))
        else:
            for problem in result["problems"]:
                row = f" row {problem['row']}, column {problem['column']}" if problem.get("row") is not None else ""
                echo(f"{problem['file']}{row}: {problem['what']}")
            for note in result["notes"]:
                echo(f"note: {note['file']}: {note['what']}")
            echo(f"{self.derived}: {_of_rows(result) if 'splits' in result else _of_files(result)}")
        sys.exit(0 if result["ok"] else 1)


def _compare(one: Path, other: Path) -> None:
    """Print whether two sets are of one language, and what differs. Exit with 1 if they are not."""
    from derivlang.store.manifest import Derived
    from derivlang.store.same_language import compare

    comparison = compare(Derived(one), Derived(other))
    if as_json():
        echo(json.dumps(comparison, ensure_ascii=False))
    else:
        same = f"are of one language: {comparison['sets'][0]['spec']}"
        echo(f"{one} and {other} {same if comparison['ok'] else 'are of different languages'}")
        for difference in comparison["differences"]:
            echo(f"  {difference}")
        for note in comparison["notes"]:
            echo(f"note: {note}")
    sys.exit(0 if comparison["ok"] else 1)


def _verify(path: Path) -> dict[str, Any]:
    """Return the result of the check that suits what is there; of a set for anything else."""
    if path.is_file():
        check_local(path, "grammars")
        from derivlang.commands.grammar_file import RECIPE_FORM
        from derivlang.grammar.grammar import load_grammar
        from derivlang.store.artifact import recipe_beside

        try:
            grammar = load_grammar(path)
        except DataError as error:
            if error.id != "grammar-header":
                raise
            raise StoreError(
                "is neither a grammar file nor the folder of a set, a run, a study or a parser",
                where=str(path),
                fix=f"to make a set of it: derivlang make --t … {in_shell(path)}",
                id="grammar-header",
            ) from None
        recipe_beside(path, RECIPE_FORM)
        return _loaded(path, has_hash=grammar.has_hash)
    if (path / "run.json").exists():
        from derivlang.evaluation.collect import verify_run

        return verify_run(path)
    if (path / "study.json").exists():
        from derivlang.studies.records import verify_study

        return verify_study(path)
    if (path / "model.json").exists():
        check_local(path, "parsers")
        from derivlang.parsing.model import load_model

        return _loaded(path, has_hash=load_model(path).has_hash)
    from derivlang.store.verify import verify

    if not path.exists():
        raise StoreError("there is no such file or folder", where=str(path), id="missing-folder")
    if path.is_dir() and not any((path / name).exists() for name in ("derivlang.json", ".derivlang")):
        raise StoreError(
            "holds none of derivlang.json (a derived set), run.json (a run), study.json (a study) and model.json "
            "(a parser)",
            where=str(path),
            fix="restore the file, or make it again in another folder",
            id="no-manifest",
        )
    return verify(path)


def _loaded(path: Path, *, has_hash: bool) -> dict[str, Any]:
    """Return the result of something that was checked when it was loaded."""
    note = {"file": path.name, "what": "has no hash, so only its form was checked"}
    notes = [] if has_hash else [note]
    return {"ok": True, "out": str(path), "checked": {"files": 1}, "problems": [], "notes": notes}


def _of_rows(result: Mapping[str, Any]) -> str:
    rows = sum(split["rows"] for split in result["splits"].values())
    right = "its only row is right" if rows == 1 else f"all {rows:,} rows are right"
    checked = f"{counted(rows, 'row')} checked, {counted(len(result['problems']), 'file')} wrong"
    return right if result["ok"] else f"{checked}; a file is checked up to its fault"


def _of_files(result: Mapping[str, Any]) -> str:
    told = ", ".join(counted(n, kind.removesuffix("s")) for kind, n in result["checked"].items() if n)
    return f"{told} checked, " + ("nothing is wrong" if result["ok"] else f"{len(result['problems'])} wrong")


command = command_line(
    _VerifyPlace, "verify", run=lambda asked: asked(),
    arguments=[click.Argument(["derived"], type=SET), click.Argument(["other"], type=SET, required=False)],
)  # fmt: skip
