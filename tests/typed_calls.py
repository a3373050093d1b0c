"""Calls of the Python interface that a type checker accepts, and nine that it refuses: `mypy tests/typed_calls.py`.

A wrong call that is accepted makes its `type: ignore` unused, which mypy (strict) reports.
"""

from __future__ import annotations

from pathlib import Path

import derivlang


def right() -> None:
    made = derivlang.make("demo", "trans,inv", "twin", limit=3, splits=["train", "test"], data_dir="corpora")
    words: list[str] = made["train"][0]["tokens"] + derivlang.derive("a b", "inv").words
    made.show(2, split="test").save("rows.html")
    lines = [line.text for line in derivlang.derive_lines(words, "inv")]
    derivlang.plan("demo", "inv", Path("planned"))["plan"].upper()
    shown: Path = derivlang.parse("demo").path / made.dataset("train")[0]["key"]
    derivlang.make(shown, derivlang.Pipeline.parse("perm"), seed=None, workers=2, entities="atomic")
    derivlang.dictionary(made, None, Path("d.tsv"), coverage=12.5, by="frequency")
    wanted: float = derivlang.match("demo", "stride:2", by="entropy").wanted
    run = derivlang.pretrain(made, "inv", objective="mlm", steps=3, mask=wanted, dict_coverage=25, data=Path("data"))
    run.evaluate(task=["pos", "ner"], epochs=[1, 2], lr=2e-3).head()
    derivlang.report([run], lines[0], baseline={"objective": "mlm"})


def wrong() -> None:
    derivlang.make("demo")  # type: ignore[call-arg]
    derivlang.make("demo", "inv", limits=3)  # type: ignore[call-arg]
    derivlang.make("demo", "inv", entities="keep")  # type: ignore[arg-type]
    derivlang.make("demo", "inv", workers="2")  # type: ignore[arg-type]
    derivlang.match("demo", "inv", by="kendall")  # type: ignore[arg-type]
    derivlang.make("demo", "inv").dataset("train", "test")  # type: ignore[call-overload]
    lost = derivlang.match("demo", "inv").wantd  # type: ignore[attr-defined]
    derivlang.pretrain("demo", "inv", steps="many", mask=lost)  # type: ignore[arg-type]
    derivlang.stats("demo", sees=3)  # type: ignore[call-arg]
    derivlang.make("demo", "inv")[0]  # type: ignore[index]
