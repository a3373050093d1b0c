"""`derivlang evaluate`: fine-tuning and measures of a pre-trained run, or of its checkpoints."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import click

from derivlang.cli.generated import as_json, command_line
from derivlang.cli.messages import echo
from derivlang.cli.options import Bar
from derivlang.cli.types import FOLDER
from derivlang.commands.evaluate import Evaluate

if TYPE_CHECKING:
    import pyarrow as pa


def _run(asked: Evaluate) -> None:
    with Bar():
        for step, evaluated, _ in asked.each():
            from derivlang.evaluation.lines import lines, short_lines
            from derivlang.evaluation.results import entries_of

            target = evaluated.record["signature"].get("target")
            if as_json():
                entries = {
                    label: {**entries_of(evaluated.record)[label], "scores": _plain(evaluated.scores, label)}
                    for label in evaluated.columns
                }
                place = {"target": target} if target else {}
                place |= {"step": step} if asked.every_checkpoint else {}
                echo(json.dumps(place | entries, ensure_ascii=False))
            elif asked.every_checkpoint:
                where = f"{target}, step {step}" if target else f"step {step}"
                echo(f"{where}: {'; '.join(short_lines(evaluated.columns, evaluated.scores))}")
            else:
                if target:
                    echo(f"{target}:")
                for line in lines(evaluated.columns, evaluated.scores, evaluated.record):
                    echo(line)


def _plain(scores: pa.Table, label: str) -> list[dict[str, Any]]:
    """Return the rows of a task or measure without counts, for JSON, which has null for NaN."""
    rows = (row for row in scores.drop_columns(["counts"]).to_pylist() if row["task"] == label)
    return [row | {"value": None if math.isnan(row["value"]) else row["value"]} for row in rows]


command = command_line(
    Evaluate, "evaluate",
    arguments=[click.Argument(["run"], metavar="[RUN[@STEP]]", type=FOLDER, required=False)],
    run=_run, json_help="Print the result as JSON, a line for each target and checkpoint.",
    first=("init", "spec", "source", "out", "task", "regime", "seeds"),
    last=(
        "measure", "pairs", "sentences", "ngram_sentences", "heldout_length", "data_dir", "parser", "parses",
        "predictions", "threads", "device", "force", "every_checkpoint", "as_json",
    ),
)  # fmt: skip
