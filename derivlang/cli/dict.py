"""`derivlang dict`: write the bilingual dictionary of a language pair; `dict check` checks a dictionary file."""

from __future__ import annotations

from typing import Any

import click

from derivlang.cli.generated import HeadedCommand, command_line
from derivlang.cli.messages import echo, message
from derivlang.cli.options import place_of, to_stdout
from derivlang.cli.types import FILE, source_argument
from derivlang.commands.lexical import CheckDictionary, MakeDictionary
from derivlang.core.messages import counted

_LEFT_OUT = "pairs left out: MUSE reads no capitals and no white space inside a word (TSV and JSON hold all)"


class _Dictionary(HeadedCommand):
    """The command `dict`, whose first word may be `check`; a folder of this name is ./check."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Return the context of `dict`, or of `dict check`."""
        if args[:1] == ["check"]:
            return check.make_context(f"{info_name} check", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


def _show(asked: MakeDictionary, result: dict[str, Any]) -> None:
    pairs, words = counted(result["pairs"], "pair"), counted(result["entries"], "chosen word")
    of_types, of_tokens = result["coverage_types"], result["coverage_tokens"]
    lines = [
        f"{place_of(result['out'])}: {pairs} of {words}, {of_types:.1f} % of {result['types']:,} with a translation, "
        f"{of_tokens:.1f} % of running words"
    ]
    more = (
        ("heldout", "entries held out"), ("noise", "wrong pairs"), ("left_out", _LEFT_OUT),
        ("heldout_left_out", f"held-out {_LEFT_OUT}"),
    )  # fmt: skip
    lines += [f"{result[name]:,} {what}" for name, what in more if result[name]]
    echo("\n".join(lines), err=to_stdout(asked))


def _show_faults(asked: CheckDictionary, result: dict[str, Any]) -> None:
    unit = result["unit"]
    for fault in result["lines"][:20]:
        place = f":{fault['line']}" if unit == "line" else f": {unit} {fault['line']}"
        message(f"{asked.file}{place}: {fault['what']} [{fault['kind']}]")
    pairs, words = counted(result["pairs"], "pair"), counted(result["types"], "word")
    echo(f"{asked.file}: {pairs} of {words}; {counted(result['skipped'], unit)} skipped")
    for kind, n in result["faults"].items():
        echo(f"{kind}: {n:,}")
    if result["left_out"]:
        echo(f"{result['left_out']:,} {_LEFT_OUT}")


command = command_line(
    MakeDictionary, "dict", _show, arguments=[source_argument()], on_stderr=to_stdout, cls=_Dictionary,
    last=("repair_tags", "force", "as_json"),
)  # fmt: skip
check = command_line(
    CheckDictionary, "check", _show_faults, arguments=[click.Argument(["file"], type=FILE)], summary="Check a file."
)
