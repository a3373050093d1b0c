"""Read a study, a TOML file, at a scale, and check all that can be known before anything is run.

    [study]       source or text, model, steps, workers, threads; title, paper, table; scales
    [factors]     the levels of each factor; the study has a cell for every combination
    [[zip]]       factors whose levels move together
    [cell]        options of `pretrain`, with formulas such as "trans:overlap={overlap}"
    [languages]   a table of each language of a run, in place of source and t: la = { t = "trans,inv", share = 0.3 }
    [evaluate]    options of `evaluate`
    [report]      what is compared (`report.py`)
    [[grid]]      more cells, with factors, zip, cell, languages and evaluate of their own

A factor with the name of an option of `pretrain` sets that option, unless [cell] does. A grid with a `name` is left out
unless it is asked for. A cell may begin from the run of another cell (`cells.py`).
"""

from __future__ import annotations

import fnmatch
import math
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Any

from derivlang.core.errors import DerivlangError, UsageError, parse_errors, unknown
from derivlang.core.messages import counted, warn
from derivlang.core.settings import text_of
from derivlang.formats.places import is_path
from derivlang.lexical.settings import warn_of_fractions
from derivlang.pipeline import Pipeline
from derivlang.sources.named import SOURCES
from derivlang.studies.cells import (
    RUNS,
    Axis,
    Cell,
    Grid,
    cells_of,
    languages_of,
    linked,
    named_in,
    with_needs,
    with_paths,
)
from derivlang.studies.commands import EVALUATE, LANGUAGES, NAMES_TEXT, PRETRAIN, Level, TypedFloat
from derivlang.studies.report import read_report
from derivlang.studies.settings import SCALES
from derivlang.studies.tables import Tables, check_tables, scaled
from derivlang.training.language import OPTION, read_languages
from derivlang.training.objectives.registry import read_objective
from derivlang.training.settings import CHOSEN, TrainingSettings
from derivlang.training.streams.bitext import PARTS

_EXAMPLE = 'write e.g. [languages.la] and, below it, t = "trans,inv" and share = 0.3'
MAXIMUM = 10_000  # cells of a study
TEXT = "text"  # the source that the sources of `text` or `treebanks` are joined into
_JOINED = ("text", "treebanks")
FIRST = ("source", "t", "objective", "model", "steps", "seed")  # options in this order, then all others


@dataclass(frozen=True, slots=True)
class StudyFile:
    """A study as its file describes it.

    place: its file, or the name of a shipped study. title, paper, table: of [study], "" if not given. text: sources to
    join into one, or (). labelled: whether they are treebanks, which keep their labels. factors: the levels of each
    factor. cells: those to run. whole: the study with all cells, if these are only some.
    """

    name: str
    place: str
    title: str
    paper: str
    table: str
    text: tuple[str, ...]
    labelled: bool
    workers: int
    threads: int | None
    factors: Mapping[str, tuple[Level, ...]]
    report: Mapping[str, Any]
    cells: tuple[Cell, ...]
    whole: StudyFile | None = None


def shipped() -> dict[str, str]:
    """Return the texts of the studies that come with the package, by name."""
    files = (resources.files("derivlang.studies") / "studies").iterdir()
    return {Path(file.name).stem: file.read_text("utf-8") for file in files if file.name.endswith(".toml")}


def scales(name: str) -> list[str]:
    """Return the scales of a shipped study."""
    found: list[str] = tomllib.loads(shipped()[name])["study"]["scales"]
    return found


def read(
    name: str, *, grids: Sequence[str] = (), steps: int | None = None, scale: str | None = None, check: bool = True
) -> StudyFile:
    """Return the study of a file, or of a name among those that are shipped.

    grids: optional grids to include. steps: replaces the steps of every cell, for a trial. scale: one of the file's,
    by default its first; a shipped study may be named with it, as `align-mlm-small`. check: whether the options of the
    cells are checked. Raise UsageError, with the file and the table, for anything that cannot be run.
    """
    folder, place = None, name
    if name.endswith(".toml"):
        with parse_errors(name, "TOML file", error=UsageError, id="study"):
            text = Path(name).read_text("utf-8")
        folder = Path(name).resolve().parent
    else:
        texts = shipped()
        stem, _, last = name.rpartition("-")
        if scale is None and name not in texts and last in SCALES and stem in texts:
            name, scale = stem, last
        if name not in texts:
            fix = "give one of these, or a FILE.toml; derivlang study --list describes them"
            raise unknown("study", name, sorted(texts), fix=fix, id="unknown-recipe")
        text, place = texts[name], f"{name}-{scale}" if scale else name
    with parse_errors(name, "TOML file", error=UsageError, id="study"):
        tables = tomllib.loads(text, parse_float=TypedFloat)
    check_tables(tables, place)
    study = _Reader(place, folder, scaled(tables, scale, place)).study(grids, steps, check=check)
    return replace(study, name=f"{study.name}-{scale}") if scale and folder else study


def only(study: StudyFile, names: Sequence[str]) -> StudyFile:
    """Return the study with these cells and those that they begin from; `*` matches any part of a name.

    Raise UsageError with similar names if a name matches no cell.
    """
    known = [cell.name for cell in study.cells]
    for name in names:
        if not fnmatch.filter(known, name):
            raise unknown("cell", name, known, where="--cells")
    chosen = (name for name in known if any(fnmatch.fnmatchcase(name, pattern) for pattern in names))
    kept = with_needs(chosen, study.cells)
    return replace(study, cells=tuple(cell for cell in study.cells if cell.name in kept), whole=study)


@dataclass(frozen=True, slots=True)
class _Reader:
    """The tables of a file, at a scale. folder: of the file, None for a shipped study."""

    place: str
    folder: Path | None
    tables: Mapping[str, Any]

    def study(self, grids: Sequence[str], steps: int | None, *, check: bool) -> StudyFile:
        head = self.tables.get("study", {})
        if len(given := [key for key in ("source", *_JOINED) if key in head]) > 1:
            what = f"gives both {' and '.join(given[:2])}"
            raise UsageError(what, where=f"{self.place} [study]", fix="leave one of them out", id="study")
        shared: dict[str, Any] = {key: head[key] for key in ("source", "model", "steps") if key in head}
        if given and given[0] in _JOINED:
            shared["source"] = TEXT
        every = self._grids(shared.get("source", ""))
        names = [grid.name for grid in every if grid.name]
        for name in grids:
            if name not in names:
                raise unknown("grid", name, names, where=self.place, id="unknown-published")
        chosen = [grid for grid in every if not grid.name or grid.name in grids]
        if (n := sum(math.prod(map(len, grid.axes)) for grid in chosen)) > MAXIMUM:
            fix = "split it into several studies"
            raise UsageError(f"the study has {n:,} cells, more than {MAXIMUM:,}", where=self.place, fix=fix, id="study")
        cells = [cell for grid in chosen for cell in cells_of(grid, shared, PRETRAIN.options, self.place)]
        cells = [replace(cell, options=self._paths(cell)) for cell in cells]
        self._check_distinct(cells, chosen)  # before a trial, in which runs of other lengths become the same
        cells = linked([replace(cell, options=_in_order(cell.options, steps)) for cell in cells], self.place)
        if check:
            self._check_cells(cells)
            self._warn_of_equal(cells)
        measured = [*(grid.evaluate for grid in every), *(cell.evaluation for cell in cells)]
        return StudyFile(
            name=Path(self.place).stem,
            place=self.place,
            title=head.get("title", ""),
            paper=head.get("paper", ""),
            table=head.get("table", ""),
            text=tuple(source for key in _JOINED for source in head.get(key, ())),
            labelled="treebanks" in head,
            workers=head.get("workers", 1),
            threads=head.get("threads"),
            factors=_levels_of(chosen),
            report=read_report(self.tables.get("report", {}), _levels_of(every), measured, self.place),
            cells=tuple(cells),
        )

    def _grids(self, source: str) -> list[Grid]:
        """Return [factors] and [[zip]] as a grid, and the grids of [[grid]]. source: of the study, or ""."""
        blocks = [(block, f"grid {number} ") for number, block in enumerate(self.tables.get("grid", []), 1)]
        if {"factors", "zip"} & self.tables.keys():
            blocks.insert(0, (self.tables, ""))
        if not blocks:
            fix = "write [factors] with a list of levels each, e.g. seed = [1, 2]"
            raise UsageError("the study has no factors", where=self.place, fix=fix, id="study")
        common = {**self.tables.get("cell", {}), **_languages(self.tables, source)}
        return [
            Grid(
                block.get("name", ""),
                self._axes(block, where),
                {**common, **block.get("cell", {}), **_languages(block, source)},
                {**self.tables.get("evaluate", {}), **block.get("evaluate", {})},
            )
            for block, where in blocks
        ]

    def _axes(self, table: Tables, where: str) -> tuple[Axis, ...]:
        """Return the axes of a grid: first its factors, which are lists that vary freely, then its zipped lists."""
        zips = table.get("zip", [])
        for lists in zips:
            if len(set(map(len, lists.values()))) != 1:
                told = ", ".join(f"{name} has {len(levels)}" for name, levels in lists.items()) or "there are none"
                what = f"the lists must have the same number of levels; {told}"
                raise UsageError(what, where=f"{self.place} {where}[[zip]]", id="study")
        free = [{name: levels} for name, levels in table.get("factors", {}).items()]
        for name, times in Counter(name for lists in (*free, *zips) for name in lists).items():
            if times > 1:
                raise UsageError(f"the factor {name} is given twice", where=self.place, id="study")
        return tuple(
            tuple(dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True))
            for lists in (*free, *zips)
        )

    def _paths(self, cell: Cell) -> dict[str, Any]:
        """Return the options of a cell with absolute paths for what lies beside the study's file."""
        if self.folder is None:
            return dict(cell.options)
        with self._of(cell):
            return {key: with_paths(key, value, self._beside) for key, value in cell.options.items()}

    def _beside(self, key: str, value: str) -> str:
        """Return the absolute path that an option names in the folder of the study's file, else the value."""
        named = key in NAMES_TEXT and (value == TEXT or value.partition(":")[0] in SOURCES)
        if not value or named or not (key in (*NAMES_TEXT, "model") or PRETRAIN.options[key].is_path):
            return value
        path = Path(self.folder or "") / value
        some = (path, Path(f"{path}.{PARTS[0]}")) if key == "pairs" else (path,)  # a file, or PREFIX of text files
        there = any(is_path(one, "file") for one in some) or (key != "model" and is_path(path, "folder"))
        return str(path) if there else value

    @contextmanager
    def _of(self, cell: Cell) -> Iterator[None]:
        """Name the cell in errors of its options."""
        try:
            yield
        except DerivlangError as error:
            told = f"{error.where}: {error.what}" if error.where else error.what
            fix, where = error.fix or "", f"{self.place}: cell {cell.name}"
            if LANGUAGES in cell.options:  # the option as a table
                told, fix = told.replace(OPTION, LANGUAGES), fix.replace(OPTION, LANGUAGES)
                fix = _EXAMPLE if fix.startswith(f"write e.g. {LANGUAGES}") else fix
            raise UsageError(told, where=where, fix=fix or None, id=error.id) from None

    def _check_distinct(self, cells: Sequence[Cell], grids: Iterable[Grid]) -> None:
        """Raise UsageError for two cells that are the same run, or that have the same folder."""
        names: dict[str, Cell] = {}
        runs: dict[tuple[Any, ...], Cell] = {}
        for cell in cells:
            where = f"{self.place}: cell {cell.name}"
            if names.setdefault(cell.name.lower(), cell) is not cell:  # some systems take `A` and `a` for one folder
                raise UsageError(
                    f"two cells have the name {cell.name}",
                    where=self.place,
                    fix=f"both would be the folder {RUNS}/{cell.name}; change a level of one of them",
                    id="same-cell",
                )
            options = {name: _canonical(name, value) for name, value in sorted(cell.options.items())}
            key = PRETRAIN.arguments(options, where), EVALUATE.arguments(cell.evaluation, where)
            if (other := runs.setdefault(key, cell)) is not cell:
                raise UsageError(
                    f"the cells {other.name} and {cell.name} are the same run",
                    where=self.place,
                    fix=_unused(grids) or "remove one of them",
                    id="same-cell",
                )

    def _warn_of_equal(self, cells: Iterable[Cell]) -> None:
        """Warn of cells that differ only in options that their objective does not read: they train the same model."""
        trained: dict[tuple[str, ...], Cell] = {}
        equal: list[str] = []
        for cell in cells:
            unread = _unread(cell)
            read = {key: _canonical(key, value) for key, value in cell.options.items() if key not in unread}
            other = trained.setdefault(PRETRAIN.arguments(read), cell)
            if lost := [key for key in unread if cell.options[key] != other.options.get(key)]:
                equal.append(f"{other.name} and {cell.name} (the objective has no {unread[lost[0]]})")
        if equal:
            fix = "a [[grid]] may hold the cells without the factor"
            warn(f"{self.place}: {counted(len(equal), 'pair')} of cells train the same model, e.g. {equal[0]}; {fix}")

    def _check_cells(self, cells: Sequence[Cell]) -> None:
        """Raise UsageError, with the cell, for arguments that the commands would refuse; warn of small percentages."""
        for cell in cells:
            where = f"{self.place}: cell {cell.name}"
            for key in ("source", "t"):
                if key not in cell.options and LANGUAGES not in cell.options:
                    fix = 'write source = "wikitext2"' if key == "source" else 'write t = "trans,inv" in [cell]'
                    raise UsageError(f"there is no {key}", where=where, fix=fix, id="study")
            with self._of(cell):
                PRETRAIN.check(cell.options)
                EVALUATE.check(cell.evaluation)
                for one in languages_of(cell):
                    Pipeline.parse(one.t)
                read_objective(text_of(cell.options.get("objective", "mlm")))
        given = {(key, text_of(value)): None for cell in cells for key, value in cell.options.items()}
        for key, value in given:
            warn_of_fractions(TrainingSettings, {PRETRAIN.options[key].name: value})


def _languages(block: Tables, source: str) -> dict[str, Any]:
    """Return [languages] as an option of `pretrain`. source: the text of the first one, unless it has another."""
    tables = block.get("languages")
    if not tables:
        return {}
    first = next(iter(tables))
    values = {**tables, first: {**({"text": source} if source else {}), **tables[first]}}
    return {LANGUAGES: list(PRETRAIN.options[LANGUAGES].of_python(values))}


def _canonical(option: str, value: Any) -> Any:
    """Return the value of an option, a spec without what is its default: align-mlm:alpha=10 is align-mlm."""
    with suppress(DerivlangError):  # a wrong spec is refused with its cell
        if option == LANGUAGES:
            return [str(replace(one, t=_canonical("t", one.t))) for one in read_languages(value)]
        if option in ("t", "objective"):
            return str(Pipeline.parse(text_of(value)) if option == "t" else read_objective(text_of(value)))
    return value


def _unread(cell: Cell) -> dict[str, str]:
    """Return the options of a cell that its objective does not read, with what they are about."""
    with suppress(DerivlangError):  # as in `_canonical`
        objective = read_objective(text_of(cell.options.get("objective", "mlm")))
        others = {one.option: one for name, one in CHOSEN.items() if name not in objective.reads(cell.options.keys())}
        return {key: others[f"--{key}"].subject for key in cell.options if f"--{key}" in others}
    return {}


def _levels_of(grids: Iterable[Grid]) -> dict[str, tuple[Level, ...]]:
    """Return the levels of each factor, in their order."""
    by_text: dict[str, dict[str, Level]] = {}  # by text, as in names of cells and in reports: 0 and 0.0 are two levels
    for grid in grids:
        for name, levels in grid.factors.items():
            known = by_text.get(name, {})
            by_text[name] = {**known, **{text_of(level): level for level in levels}, **known}
    return {name: tuple(levels.values()) for name, levels in by_text.items()}


def _in_order(options: Mapping[str, Any], steps: int | None) -> dict[str, Any]:
    """Return the options of a cell as they are typed. steps: of a trial; an untrained model stays one."""
    if steps is not None and options.get("steps") != 0:
        options = {key: value for key, value in options.items() if key not in ("tokens", "epochs")} | {"steps": steps}
    return {key: options[key] for key in (*FIRST, *options) if key in options}


def _unused(grids: Iterable[Grid]) -> str | None:
    """Return what to do about the first factor with several levels that no option depends on."""
    for grid in grids:
        used = {name for value in chain(grid.cell.values(), grid.evaluate.values()) for name in named_in(value)}
        for name, levels in grid.factors.items():
            if len(levels) > 1 and name not in used and (name not in PRETRAIN.options or name in grid.cell):
                return f"no option depends on the factor {name}: write {{{name}}} in [cell], or remove the factor"
    return None
