"""`derivlang pretrain`: train a model on a source and its derived language."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

from derivlang.cli.generated import as_json, command_line
from derivlang.cli.messages import echo, warn
from derivlang.cli.options import Bar, complete
from derivlang.commands.pretrain import Pretrain
from derivlang.core.errors import UsageError
from derivlang.core.messages import counted

_USUAL = ("source", "spec", "objective", "model", "out", "seed", "steps", "dict_coverage", "parallel", "data_dir")


class _ResumedPretrain(Pretrain):
    """The command, which goes on in a folder that is named only if it is asked to."""

    @property
    def goes_on(self) -> bool:
        return "resume" in self.given or (self.out is None and not self.force)


def _run(asked: _ResumedPretrain) -> None:
    if {"resume", "force"} <= asked.given:
        fix = "leave one of them out"
        raise UsageError("a run is either resumed or replaced", where="--resume and --force", fix=fix, id="bad-value")
    from derivlang.core.dependencies import require_torch

    require_torch()
    try:
        _pretrain(asked)
    except KeyboardInterrupt:
        how = "the same command" if asked.out is None else "the same command with --resume"
        raise KeyboardInterrupt(how) from None


def _pretrain(asked: _ResumedPretrain) -> None:
    from derivlang.training import run_folder
    from derivlang.training.devices import is_main
    from derivlang.training.record import levels_of

    with Bar(shown=not as_json()) if is_main() else nullcontext():
        plan = asked.planned()
        made = asked.made(plan)
    out, before = plan.paths.run, plan.before
    if asked.data_only:
        _show_data(plan, made)
        return
    if not is_main():
        return
    if before is not None and before["status"] == "done":
        complete(out)
        if asked.factor and levels_of(tuple(asked.factor)) != (run_folder.read(out).get("factors") or {}):
            warn("the run is complete and keeps its factors, so --factor has no effect; --force trains it again")
    if as_json():
        echo(json.dumps(made, ensure_ascii=False))
    else:
        _show(plan, made)


def _show_data(plan: Any, prepared: Any) -> None:
    """Print the counts of data that was prepared."""
    from derivlang.training.languages import SOURCE

    data = prepared.data
    counts = {"subwords": data.n_subwords, "rows": data.n_instances(SOURCE)}
    line = f"{counted(counts['subwords'], 'sub-word')} in {counted(counts['rows'], 'row')}"
    for other in prepared.texts[1:]:
        subwords, rows = other.n_subwords, other.n_instances(other.numbers[-1])
        counts |= {"derived_subwords": subwords, "derived_rows": rows}
        line += f", and {subwords:,} in {counted(rows, 'row')} of {plan.settings.derived_source}"
    echo(json.dumps({"data": str(plan.paths.home), **counts}) if as_json() else line)


def _show(plan: Any, result: dict[str, Any]) -> None:
    """Print the result of a training."""
    parts = ", ".join(f"{name} {value:.3f}" for name, value in result["parts"].items()) or "untrained"
    steps = counted(result["steps"], "step")
    echo(f"{steps}, {result['tokens']:,} sub-words, {result['parameters']:,} parameters; {parts}")
    doses = result["doses"]
    if doses.get("translated_share") is not None:
        predicted = doses["predicted_per_step"] / max(doses["subwords_per_step"], 1)
        echo(f"{predicted:.1%} of the sub-words were predicted; {doses['translated_share']:.1%} of these translated")
    if doses.get("short_pairs"):
        short, pairs = doses["short_pairs"], doses["short_pairs"] + doses["pairs"]
        echo(f"{short:,} of {pairs:,} sentence pairs were left out: a side is empty or too short")
    echo(f"{plan.paths.run}  in {result['seconds']:.1f} s, {result['tokens_per_second']:,} sub-words per second")


_ResumedPretrain.__doc__ = Pretrain.__doc__
command = command_line(
    _ResumedPretrain, "pretrain", run=_run, usual=_USUAL, first=("source", "spec", "objective", "model", "out"),
    last=("data_only", "resume", "force", "as_json"),
)  # fmt: skip
