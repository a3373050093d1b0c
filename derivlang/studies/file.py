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
from derivlang.studies.cells import RUNS, Cell, Grid, cells_of, chain_of, languages_of, linked, named_in, with_texts
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

    place: its file, or the name of a shipped study. head: the keys of [study]. factors: the levels of each factor.
    report: what is compared. cells: those to run. whole: all cells.
    """

    name: str
    place: str
    head: Mapping[str, Any]
    factors: Mapping[str, tuple[Level, ...]]
    report: Mapping[str, Any]
    cells: tuple[Cell, ...]
    whole: tuple[Cell, ...]

    @property
    def text(self) -> list[str]:
        """The sources to join into one, or []."""
        return [source for key in _JOINED for source in self.head.get(key, ())]

    @property
    def labelled(self) -> bool:
        """Whether the text is of treebanks, which keep their labels."""
        return "treebanks" in self.head


def shipped() -> dict[str, str]:
    """Return the texts of the studies that come with the package, by name."""
    files = (resources.files("derivlang.studies") / "studies").iterdir()
    return {Path(file.name).stem: file.read_text("utf-8") for file in files if file.name.endswith(".toml")}


def read(
    name: str, *, grids: Sequence[str] = (), steps: int | None = None, scale: str | None = None, check: bool = True
) -> StudyFile:
    """Return the study of a file, or of a name among those that are shipped.

    grids: optional grids to include. steps: replaces the steps of every cell, for a trial. scale: one of the file's,
    by default its first; a shipped study may be named with it, as `align-mlm-small`. check: whether the options of the
    cells are checked. Raise UsageError, with the file and the table, for anything that cannot be run.
    """
    folder = Path(name).resolve().parent if name.endswith(".toml") else None
    place = name
    if folder is None:
        texts, (stem, _, last) = shipped(), name.rpartition("-")
        if scale is None and name not in texts and last in SCALES and stem in texts:
            name, scale = stem, last
        if name not in texts:
            fix = "give one of these, or a FILE.toml; derivlang study --list describes them"
            raise unknown("study", name, sorted(texts), fix=fix, id="unknown-recipe")
        place = f"{name}-{scale}" if scale else name
    with parse_errors(place, "TOML file", error=UsageError, id="study"):
        text = texts[name] if folder is None else Path(name).read_text("utf-8")
        tables = tomllib.loads(text, parse_float=TypedFloat)
    check_tables(tables, place)
    tables = dict(scaled(tables, scale, place))
    head = tables.get("study", {})
    shared = {key: head[key] for key in ("source", "model", "steps") if key in head}
    if len(given := [key for key in ("source", *_JOINED) if key in head]) > 1:
        what = f"gives both {' and '.join(given[:2])}"
        raise UsageError(what, where=f"{place} [study]", fix="leave one of them out", id="study")
    if given and given[0] in _JOINED:
        shared["source"] = TEXT
    every = _grids(tables, shared.get("source", ""), place)
    names = [grid.name for grid in every if grid.name]
    for asked in grids:
        if asked not in names:
            raise unknown("grid", asked, names, where=place, id="unknown-published")
    chosen = [grid for grid in every if not grid.name or grid.name in grids]
    if (n := sum(math.prod(map(len, grid.axes)) for grid in chosen)) > MAXIMUM:
        fix = "split it into several studies"
        raise UsageError(f"the study has {n:,} cells, more than {MAXIMUM:,}", where=place, fix=fix, id="study")
    cells = [_beside(folder, cell, place) for grid in chosen for cell in cells_of(grid, shared, place)]
    _check_distinct(cells, chosen, place)  # before a trial, in which runs of other lengths become the same
    cells = linked([replace(cell, options=_in_order(cell.options, steps)) for cell in cells], place)
    if check:
        _check_cells(cells, place)
    evaluations = [*(grid.evaluate for grid in every), *(cell.evaluation for cell in cells)]
    report = read_report(tables.get("report", {}), _levels_of(every), evaluations, place)
    stem = Path(place).stem + (f"-{scale}" if scale and folder else "")
    return StudyFile(stem, place, head, _levels_of(chosen), report, tuple(cells), tuple(cells))


def only(study: StudyFile, names: Sequence[str]) -> StudyFile:
    """Return the study with these cells and those that they begin from; `*` matches any part of a name.

    Raise UsageError with similar names if a name matches no cell.
    """
    known = {cell.name: cell for cell in study.cells}
    for name in names:
        if not fnmatch.filter(known, name):
            raise unknown("cell", name, known, where="--cells")
    chosen = [name for name in known if any(fnmatch.fnmatchcase(name, pattern) for pattern in names)]
    kept = {one for name in chosen for one in chain_of(name, known)}
    return replace(study, cells=tuple(cell for cell in study.cells if cell.name in kept))


def _grids(tables: Tables, source: str, place: str) -> list[Grid]:
    """Return [factors] and [[zip]] as a grid, and the grids of [[grid]]. source: of the study, or ""."""
    blocks = [(block, f"grid {number} ") for number, block in enumerate(tables.get("grid", []), 1)]
    if {"factors", "zip"} & tables.keys():
        blocks.insert(0, (tables, ""))
    if not blocks:
        fix = "write [factors] with a list of levels each, e.g. seed = [1, 2]"
        raise UsageError("the study has no factors", where=place, fix=fix, id="study")
    grids = []
    for block, where in blocks:
        free = [{name: levels} for name, levels in block.get("factors", {}).items()]
        axes = [*free, *block.get("zip", [])]
        for lists in block.get("zip", []):
            if len(set(map(len, lists.values()))) != 1:
                told = ", ".join(f"{name} has {len(levels)}" for name, levels in lists.items()) or "there are none"
                what = f"the lists must have the same number of levels; {told}"
                raise UsageError(what, where=f"{place} {where}[[zip]]", id="study")
        for name, times in Counter(chain.from_iterable(axes)).items():
            if times > 1:
                raise UsageError(f"the factor {name} is given twice", where=place, id="study")
        rows = [[dict(zip(axis, row, strict=True)) for row in zip(*axis.values(), strict=True)] for axis in axes]
        cell = {**tables.get("cell", {}), **_languages(tables, source)}
        cell |= {**block.get("cell", {}), **_languages(block, source)}
        evaluate = {**tables.get("evaluate", {}), **block.get("evaluate", {})}
        grids.append(Grid(block.get("name", ""), rows, cell, evaluate))
    return grids


def _languages(block: Tables, source: str) -> dict[str, Any]:
    """Return [languages] as an option of `pretrain`. source: the text of the first one, unless it has another."""
    tables = block.get("languages")
    if not tables:
        return {}
    first = next(iter(tables))
    values = {**tables, first: {**({"text": source} if source else {}), **tables[first]}}
    return {LANGUAGES: list(PRETRAIN.options[LANGUAGES].of_python(values))}


def _beside(folder: Path | None, cell: Cell, place: str) -> Cell:
    """Return a cell with absolute paths for what its options name in the folder of the study's file."""

    def path_of(key: str, value: str) -> str:
        named = key in NAMES_TEXT and (value == TEXT or value.partition(":")[0] in SOURCES)
        if not value or named or not (key in (*NAMES_TEXT, "model") or PRETRAIN.options[key].is_path):
            return value
        path = Path(folder or "") / value
        some = (path, Path(f"{path}.{PARTS[0]}")) if key == "pairs" else (path,)  # a file, or PREFIX of text files
        there = any(is_path(one, "file") for one in some) or (key != "model" and is_path(path, "folder"))
        return str(path) if there else value

    if folder is None:
        return cell
    with _named(cell, place):
        return replace(cell, options=with_texts(cell.options, path_of))


@contextmanager
def _named(cell: Cell, place: str) -> Iterator[None]:
    """Name the cell in errors of its options."""
    try:
        yield
    except DerivlangError as error:
        told = f"{error.where}: {error.what}" if error.where else error.what
        fix = error.fix or ""
        if LANGUAGES in cell.options:  # the option as a table
            told, fix = told.replace(OPTION, LANGUAGES), fix.replace(OPTION, LANGUAGES)
            fix = _EXAMPLE if fix.startswith(f"write e.g. {LANGUAGES}") else fix
        raise UsageError(told, where=f"{place}: cell {cell.name}", fix=fix or None, id=error.id) from None


def _check_distinct(cells: Sequence[Cell], grids: Iterable[Grid], place: str) -> None:
    """Raise UsageError for two cells that are the same run, or that have the same folder."""
    names: dict[str, Cell] = {}
    runs: dict[tuple[Any, ...], Cell] = {}
    for cell in cells:
        where = f"{place}: cell {cell.name}"
        if names.setdefault(cell.name.lower(), cell) is not cell:  # some systems take `A` and `a` for one folder
            what = f"two cells have the name {cell.name}"
            fix = f"both would be the folder {RUNS}/{cell.name}; change a level of one of them"
            raise UsageError(what, where=place, fix=fix, id="same-cell")
        options = {name: _canonical(name, value) for name, value in sorted(cell.options.items())}
        key = PRETRAIN.arguments(options, where), EVALUATE.arguments(cell.evaluation, where)
        if (other := runs.setdefault(key, cell)) is not cell:
            what, fix = (
                f"the cells {other.name} and {cell.name} are the same run",
                _unused(grids) or "remove one of them",
            )
            raise UsageError(what, where=place, fix=fix, id="same-cell")


def _check_cells(cells: Sequence[Cell], place: str) -> None:
    """Raise UsageError, with the cell, for what the commands would refuse.

    Warn of small percentages, and of cells that differ only in options that their objective does not read: they train
    the same model.
    """
    for cell in cells:
        for key in ("source", "t"):
            if key not in cell.options and LANGUAGES not in cell.options:
                fix = 'write source = "wikitext2"' if key == "source" else 'write t = "trans,inv" in [cell]'
                raise UsageError(f"there is no {key}", where=f"{place}: cell {cell.name}", fix=fix, id="study")
        with _named(cell, place):
            PRETRAIN.check(cell.options)
            EVALUATE.check(cell.evaluation)
            for one in languages_of(cell):
                Pipeline.parse(one.t)
    for key, value in dict.fromkeys((key, text_of(value)) for cell in cells for key, value in cell.options.items()):
        warn_of_fractions(TrainingSettings, {PRETRAIN.options[key].name: value})
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
        warn(f"{place}: {counted(len(equal), 'pair')} of cells train the same model, e.g. {equal[0]}; {fix}")


def _unread(cell: Cell) -> dict[str, str]:
    """Return the options of a cell that its objective does not read, with what they are about."""
    reads = read_objective(text_of(cell.options.get("objective", "mlm"))).reads(cell.options.keys())
    others = {str(one.option).removeprefix("--"): one.subject for name, one in CHOSEN.items() if name not in reads}
    return {key: others[key] for key in cell.options if key in others}


def _canonical(option: str, value: Any) -> Any:
    """Return the value of an option, a spec without what is its default: align-mlm:alpha=10 is align-mlm."""
    with suppress(DerivlangError):  # a wrong spec is refused with its cell
        if option == LANGUAGES:
            return [str(replace(one, t=_canonical("t", one.t))) for one in read_languages(value)]
        if option in ("t", "objective"):
            return str(Pipeline.parse(text_of(value)) if option == "t" else read_objective(text_of(value)))
    return value


def _levels_of(grids: Iterable[Grid]) -> dict[str, tuple[Level, ...]]:
    """Return the levels of each factor, in their order."""
    by_text: dict[str, dict[str, Level]] = {}  # by text, as in names of cells and in reports: 0 and 0.0 are two levels
    for levels in (levels for grid in grids for axis in grid.axes for levels in axis):
        for name, level in levels.items():
            by_text.setdefault(name, {}).setdefault(text_of(level), level)
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
        for name, levels in _levels_of([grid]).items():
            if len(levels) > 1 and name not in used and (name not in PRETRAIN.options or name in grid.cell):
                return f"no option depends on the factor {name}: write {{{name}}} in [cell], or remove the factor"
    return None
