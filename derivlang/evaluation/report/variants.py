"""The names of rows: an objective with its parameters (`Variant`), and a language (`Language`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from derivlang.core.errors import DerivlangError
from derivlang.core.spec import read_spec
from derivlang.evaluation.report.published import COVERAGE, LANGUAGES, OBJECTIVES, PARALLEL
from derivlang.evaluation.report.runs import Run
from derivlang.lexical.percent import percent
from derivlang.training.objectives.needs import DICTIONARY
from derivlang.training.objectives.registry import read_objective
from derivlang.training.streams.pairs import SentencePairs
from derivlang.transforms.trans import Trans

NAMES = {"mlm": "MLM", "xlm": "XLM", "dict-mlm": "DICT-MLM", "align-mlm": "ALIGN-MLM"}
# The paper's parameters. A spec that names them is the same as one without them.
_DEFAULTS = {("align-mlm", "alpha=10"), ("dict-mlm", "rate=50"), ("dict-mlm", "variant=label"), ("mlm", "rate=15")}


@dataclass(frozen=True, slots=True, order=True)
class Variant:
    """An objective with its parameters. coverage, parallel: in percent, None if the objective does not use them."""

    rank: int
    objective: str
    parameters: tuple[str, ...]
    coverage: float | None
    parallel: float | None

    @classmethod
    def of(cls, run: Run) -> Variant:
        (name, values, keyed), *_ = read_spec(run.facts["objective"], "objective", "align-mlm")
        given = [*values, *(f"{key}={value}" for key, value in keyed.items())]
        dictionary = run.facts.get("dictionary") or {}
        uses, uses_pairs = _reads(run.facts["objective"], name)
        if uses and dictionary.get("by", "random") != "random":
            given.append(f"dictionary by {dictionary['by']}")
        if uses and "file" in dictionary:
            given.append(f"dictionary {dictionary['file']} ({dictionary.get('sha256', '')[:7]})")
        streams = (run.facts.get("streams") or {}).values()
        if run.facts.get("parallel") is None:  # the pairs are those of a file
            given += [f"pairs {facts['sha256'][:7]}" for facts in streams if "sha256" in facts]
        if run.facts.get("init") and run.plan is None:  # in a study, its factors say what a run begins from
            init = run.facts["init"]
            given.append(f"from {Path(init['run']).name} ({init['weights'][:7]})")
        return cls(
            OBJECTIVES.index(name) if name in OBJECTIVES else len(OBJECTIVES),
            name,
            tuple(one for one in given if (name, one) not in _DEFAULTS),
            percent_of(dictionary.get("coverage")) if uses else None,
            percent_of(run.facts.get("parallel")) if uses_pairs else None,
        )

    @property
    def usual(self) -> bool:
        """Whether coverage and parallel text are the paper's defaults."""
        return self.coverage in (None, COVERAGE) and self.parallel in (None, PARALLEL)

    @property
    def standard(self) -> bool:
        """Whether it is in Table 3."""
        return self.objective in OBJECTIVES and not self.parameters and self.usual

    @property
    def family(self) -> str:
        """The name without the sizes of dictionary and parallel text."""
        return ", ".join([NAMES.get(self.objective, self.objective), *self.parameters])

    @property
    def label(self) -> str:
        parts = [self.family]
        if self.coverage not in (None, COVERAGE):
            parts.append(f"dictionary {self.coverage:g} %")
        if self.parallel not in (None, PARALLEL):
            parts.append(f"parallel {self.parallel:g} %")
        return ", ".join(parts)


def _reads(spec: str, name: str) -> tuple[bool, bool]:
    """Return whether an objective reads the dictionary, and whether the share of parallel sentences.

    An objective that is not installed, or whose spec this version does not take, may read both, unless it is the
    paper's.
    """
    try:
        objective = read_objective(spec)
    except DerivlangError:
        return name not in ("mlm", "xlm"), name == "xlm" or name not in OBJECTIVES
    pairs = (stream for stream in objective.streams() if isinstance(stream, SentencePairs))
    return (
        any(need.name == DICTIONARY.name for need in objective.needs()),
        any(stream.has_rate for stream in pairs),
    )


@dataclass(frozen=True, slots=True, order=True)
class Language:
    """A derived language, with `trans` first, as it commutes with every order.

    overlap: percentage of shared types. bare: without the script if the paper has it under any, else as `spec`.
    """

    rank: int
    spec: str
    overlap: float = 0.0
    bare: str = ""

    @classmethod
    def of(cls, spec: str) -> Language:
        steps = read_spec(spec)
        steps.sort(key=lambda step: step[0] != "trans")
        overlap = sum(float(keyed.get("overlap", 0)) for name, _, keyed in steps if name == "trans")
        text = ",".join(":".join([name, *v, *(f"{k}={x}" for k, x in keyed.items())]) for name, v, keyed in steps)
        bare = ",".join(_bare(*step) for step in steps)
        if not overlap and bare in LANGUAGES:
            return cls(LANGUAGES.index(bare), ",".join(_bare(*step, script=True) for step in steps), 0.0, bare)
        return cls(len(LANGUAGES), text, overlap, text)

    @property
    def without_overlap(self) -> str:
        """The spec of the same language without overlap, and without its script."""
        return ",".join(_bare(*step) for step in read_spec(self.spec))


def _bare(name: str, values: list[str], keyed: dict[str, str], *, script: bool = False) -> str:
    """Return a transform without parameters that do not matter to the paper: script, overlap, table, and `syn`'s fr.

    script: keep another script than the default, but not its table's version: trans:copy:table=2   ->   trans:copy
    """
    if name == "trans":
        told = [one for one in (*values, keyed.get("script", Trans.script)) if one != Trans.script]
        values = told if script else []
        keyed = {key: value for key, value in keyed.items() if key not in ("script", "overlap", "table")}
    elif name == "syn" and values == ["fr"]:
        values = []
    return ":".join([name, *values, *(f"{key}={value}" for key, value in keyed.items())])


def percent_of(value: Any) -> float | None:
    """Return a percentage as a number. run.json writes it as 25, "12.5" or "1/3"."""
    return None if value is None else float(percent(str(value), "percent", zero=True))
