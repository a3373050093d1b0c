"""Read a study, a TOML file, and check all that can be known before anything is run.

    [study]       source or text, model, steps, workers, threads; title, paper, table; scales (`scales.py`)
    [factors]     the levels of each factor; the study has a cell for every combination
    [[zip]]       factors whose levels move together
    [cell]        options of `pretrain`, with formulas such as "trans:overlap={overlap}"
    [evaluate]    options of `evaluate`
    [report]      what is compared (`report.py`)
    [[grid]]      more cells, with factors, zip, cell and evaluate of their own

A factor with the name of an option of `pretrain` sets that option, unless [cell] does. A grid with a `name` is left out
unless it is asked for. A cell may begin from the run of another cell (`begins.py`).
"""

from __future__ import annotations

import fnmatch
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Any

from derivlang.core.errors import DerivlangError, UsageError, unknown
from derivlang.core.parse_errors import parse_errors
from derivlang.core.settings import text_of
from derivlang.formats.paths import is_path
from derivlang.pipeline import Pipeline
from derivlang.sources.named import SOURCES
from derivlang.studies.begins import linked, with_needs
from derivlang.studies.cells import Axis, Cell, Grid, cells_of, named_in
from derivlang.studies.commands import EVALUATE, NAMES_TEXT, PRETRAIN, CommandOptions, Level, TypedFloat
from derivlang.studies.report import read_report, tables_of
from derivlang.studies.scales import scaled, scales_of
from derivlang.studies.settings import SCALES
from derivlang.training.objectives.registry import read_objective
from derivlang.training.streams.bitext import PARTS

MAXIMUM = 10_000  # cells of a study
TEXT = "text"  # the source that the sources of `text` or `treebanks` are joined into
_JOINED = ("text", "treebanks")
_TABLES = ("study", "factors", "zip", "cell", "evaluate", "report", "grid")
# title: the question, in a line. paper: that asks it, "Name et al. (2022)". table: of the paper.
_STUDY: dict[str, type] = {
    "source": str, "text": list, "treebanks": list, "model": str, "steps": int, "workers": int, "threads": int,
    "title": str, "paper": str, "table": str,
}  # fmt: skip
_GRID = ("name", "factors", "zip", "cell", "evaluate")
FIRST = ("source", "t", "objective", "model", "steps", "seed")  # options in this order, then all others


@dataclass(frozen=True, slots=True)
class StudyFile:
    """A study as its file describes it.

    place: its file, or the name of a shipped study. title, paper, table: of [study], "" if not given. text: sources to
    join into one, or (). labelled: whether they are treebanks, which keep their labels. shared: options that all cells
    have unless a factor or grid changes them. factors: the levels of each factor.
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
    shared: Mapping[str, Any]
    factors: Mapping[str, tuple[Level, ...]]
    report: Mapping[str, Any]
    cells: tuple[Cell, ...]


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
    study = _Reader(place, scaled(tables, scale, place)).study(folder, grids, steps, check=check)
    return replace(study, name=f"{study.name}-{scale}") if scale and folder else study


def scales(name: str) -> list[str]:
    """Return the scales of a shipped study."""
    return scales_of(tomllib.loads(shipped()[name]), name)


def only(study: StudyFile, names: Sequence[str]) -> StudyFile:
    """Return the study with these cells and those that they begin from; `*` matches any part of a name.

    Raise UsageError with similar names if a name matches no cell.
    """
    known = [cell.name for cell in study.cells]
    for name in names:
        if not fnmatch.filter(known, name):
            raise unknown("cell", name, known, where="--cells")
    chosen = (name for name in known if any(fnmatch.fnmatchcase(name, pattern) for pattern in names))
    kept = with_needs(chosen, {cell.name: cell for cell in study.cells})
    return replace(study, cells=tuple(cell for cell in study.cells if cell.name in kept))


@dataclass(frozen=True, slots=True)
class _Reader:
    """The tables of a file."""

    place: str
    tables: Mapping[str, Any]

    def study(self, folder: Path | None, grids: Sequence[str], steps: int | None, *, check: bool) -> StudyFile:
        self._known(self.tables, _TABLES, "table", self.place)
        head = self._head()
        shared: dict[str, Any] = {key: head[key] for key in ("source", "model", "steps") if key in head}
        if any(key in head for key in _JOINED):
            shared["source"] = TEXT
        common = self._options(self.tables, "cell", PRETRAIN)
        all_grids = self._grids(common)
        names = [grid.name for grid in all_grids if grid.name]
        for name in grids:
            if name not in names:
                raise unknown("grid", name, names, where=self.place, id="unknown-published")
        chosen = [grid for grid in all_grids if not grid.name or grid.name in grids]
        if (n := sum(grid.n_cells for grid in chosen)) > MAXIMUM:
            fix = "split it into several studies"
            raise UsageError(f"the study has {n:,} cells, more than {MAXIMUM:,}", where=self.place, fix=fix, id="study")
        cells = [cell for grid in chosen for cell in cells_of(grid, shared, PRETRAIN.options, self.place)]
        cells = [replace(cell, options=self._paths(cell.options, folder)) for cell in cells]
        for cell in cells:
            where = f"{self.place}: cell {cell.name}"
            PRETRAIN.check_flags(cell.options, where)
            EVALUATE.check_flags(cell.evaluation, where)
        self._distinct(cells, chosen)  # before a trial, in which runs of other lengths become the same
        if steps is not None:
            cells = [replace(cell, options=_with_steps(cell.options, steps)) for cell in cells]
        cells = [replace(cell, options=self._in_order(cell.options)) for cell in cells]
        cells = linked(cells, self.place)
        if check:
            self._check_cells(cells)
        measured = [*(grid.evaluate for grid in all_grids), *(cell.evaluation for cell in cells)]
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
            shared=self._paths({key: v for key, v in {**shared, **common}.items() if not named_in(v)}, folder),
            factors=_factors(chosen),
            report=read_report(self._table(self.tables, "report"), _factors(all_grids), measured, self.place),
            cells=tuple(cells),
        )

    def _head(self) -> dict[str, Any]:
        """Return [study]."""
        where = f"{self.place} [study]"
        head = self._table(self.tables, "study")
        self._known(head, _STUDY, "key of [study]", where)
        for key, value in head.items():
            kind = _STUDY[key]
            if not isinstance(value, kind) or isinstance(value, bool) or not value:
                form = {str: "text", list: "a list of sources", int: "a whole number of at least 1"}[kind]
                raise UsageError(f"{key} = {value!r} must be {form}", where=where, id="bad-value")
            if isinstance(value, int) and value < 1:
                raise UsageError(f"{key} = {value} must be at least 1", where=where, id="bad-value")
        for key in _JOINED:
            for source in head.get(key, ()):
                if not isinstance(source, str):
                    raise UsageError(f"{key} has {source!r}, which is not a source", where=where, id="bad-value")
                if head[key].count(source) > 1:
                    raise UsageError(f"{key} has {source} twice", where=where, fix="name it once", id="study")
        if len(given := [key for key in ("source", *_JOINED) if key in head]) > 1:
            raise UsageError(
                f"gives both {' and '.join(given[:2])}", where=where, fix="leave one of them out", id="study"
            )
        return head

    def _grids(self, common: Mapping[str, Any]) -> list[Grid]:
        """Return [factors] and [[zip]] as a grid, and the grids of [[grid]]. common: the options of [cell]."""
        evaluate = self._options(self.tables, "evaluate", EVALUATE)
        grids = []
        if "factors" in self.tables or "zip" in self.tables:
            grids.append(Grid("", self._axes(self.tables, ""), common, evaluate))
        for number, block in enumerate(tables_of(self.tables, "grid", self.place), 1):
            where = f"grid {number} "
            self._known(block, _GRID, "key of [[grid]]", self.place)
            name = block.get("name", "")
            if not isinstance(name, str):
                raise UsageError(f"name = {name!r} must be text", where=f"{self.place} [[grid]]", id="bad-value")
            own = self._options(block, "cell", PRETRAIN, where)
            measured = self._options(block, "evaluate", EVALUATE, where)
            grids.append(Grid(name, self._axes(block, where), {**common, **own}, {**evaluate, **measured}))
        if not grids:
            fix = "write [factors] with a list of levels each, e.g. seed = [1, 2]"
            raise UsageError("the study has no factors", where=self.place, fix=fix, id="study")
        return grids

    def _axes(self, table: Mapping[str, Any], where: str) -> tuple[Axis, ...]:
        """Return the axes of a grid: first its factors, then its zipped lists."""
        place = f"{self.place} {where}[factors]"
        axes: list[Axis] = []
        for name, value in self._table(table, "factors").items():
            axes.append(tuple({name: level} for level in self._levels(name, value, place)))
        place = f"{self.place} {where}[[zip]]"
        for block in tables_of(table, "zip", self.place):
            lists = {name: self._levels(name, value, place, distinct=False) for name, value in block.items()}
            lengths = {len(levels) for levels in lists.values()}
            if len(lengths) != 1:
                told = ", ".join(f"{name} has {len(levels)}" for name, levels in lists.items()) or "there are none"
                raise UsageError(f"the lists must have the same number of levels; {told}", where=place, id="study")
            axes.append(tuple(dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)))
        for name, times in Counter(name for axis in axes for name in axis[0]).items():
            if times > 1:
                raise UsageError(f"the factor {name} is given twice", where=self.place, id="study")
        return tuple(axes)

    def _levels(self, name: str, value: Any, where: str, *, distinct: bool = True) -> list[Level]:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", name):
            raise UsageError(
                f"{name!r} is not the name of a factor", where=where, fix="use letters, digits, -, _", id="study"
            )
        if name in PRETRAIN.reserved:
            PRETRAIN.check_key(name, value, where)
        if not isinstance(value, list):
            fix = f"write {name} = [{value!r}]" if isinstance(value, (str, int, float)) else None
            raise UsageError(f"{name} must be a list of levels, got {value!r}", where=where, fix=fix, id="bad-value")
        if not value:
            raise UsageError(f"the factor {name} has no levels", where=where, fix="give some, or remove it", id="study")
        for level in value:
            if not isinstance(level, (str, int, float)):
                raise UsageError(
                    f"{name} has the level {level!r}, which is not a text or a number", where=where, id="bad-value"
                )
        twice = [text for text, times in Counter(map(text_of, value)).items() if times > 1]
        if distinct and twice:
            raise UsageError(f"the factor {name} has the level {twice[0]} twice", where=where, id="study")
        return value

    def _options(self, table: Mapping[str, Any], name: str, known: CommandOptions, where: str = "") -> dict[str, Any]:
        """Return the options of [cell] or [evaluate]."""
        options = self._table(table, name)
        for key, value in options.items():
            known.check_key(key, value, f"{self.place} {where}[{name}]")
        return options

    def _in_order(self, options: Mapping[str, Any]) -> dict[str, Any]:
        return {key: options[key] for key in (*FIRST, *options) if key in options}

    def _paths(self, options: Mapping[str, Any], folder: Path | None) -> dict[str, Any]:
        """Return options with absolute paths for files and folders that lie beside the study's file."""
        absolute = dict(options)
        for key, value in options.items():
            named = key in NAMES_TEXT and (value == TEXT or str(value).partition(":")[0] in SOURCES)
            may_be = key in (*NAMES_TEXT, "model") or PRETRAIN.options[key].is_path
            if folder is None or not may_be or named or value == "":
                continue
            path = folder / str(value)
            some = (path, Path(f"{path}.{PARTS[0]}")) if key == "pairs" else (path,)  # a file, or PREFIX of text files
            if any(is_path(one, "file") for one in some) or (key != "model" and is_path(path, "folder")):
                absolute[key] = str(path)
        return absolute

    def _distinct(self, cells: Sequence[Cell], grids: Iterable[Grid]) -> None:
        """Raise UsageError for two cells that are the same run, or that have the same folder."""
        names: dict[str, Cell] = {}
        runs: dict[tuple[Any, ...], Cell] = {}
        for cell in cells:
            other = names.setdefault(cell.name.lower(), cell)  # some systems take `A` and `a` for one folder
            if other is not cell:
                fix = "give the factors, in the same order, levels with other letters or digits"
                raise UsageError(f"two cells have the name {cell.name}", where=self.place, fix=fix, id="same-cell")
            key = PRETRAIN.arguments(dict(sorted(cell.options.items()))), EVALUATE.arguments(cell.evaluation)
            other = runs.setdefault(key, cell)
            if other is not cell:
                raise UsageError(
                    f"the cells {other.name} and {cell.name} are the same run",
                    where=self.place,
                    fix=_unused(grids, list(PRETRAIN.options)) or "remove one of them",
                    id="same-cell",
                )

    def _check_cells(self, cells: Iterable[Cell]) -> None:
        """Raise UsageError, with the cell, for arguments that the commands would refuse."""
        for cell in cells:
            where = f"{self.place}: cell {cell.name}"
            for key in ("source", "t"):
                if key not in cell.options:
                    fix = 'write source = "wikitext2"' if key == "source" else 'write t = "trans,inv" in [cell]'
                    raise UsageError(f"there is no {key}", where=where, fix=fix, id="study")
            try:
                PRETRAIN.check(cell.options)
                EVALUATE.check(cell.evaluation)
                Pipeline.parse(text_of(cell.options["t"]))
                read_objective(text_of(cell.options.get("objective", "mlm")))
            except DerivlangError as error:
                told = f"{error.where}: {error.what}" if error.where else error.what
                raise UsageError(told, where=where, fix=error.fix, id=error.id) from None

    def _table(self, table: Mapping[str, Any], name: str) -> dict[str, Any]:
        content = table.get(name, {})
        if not isinstance(content, dict):
            raise UsageError(f"{name} is not a table", where=self.place, fix=f"write [{name}]", id="study")
        return content

    def _known(self, table: Mapping[str, Any], names: Iterable[str], what: str, where: str) -> None:
        for name in table:
            if name not in (known := tuple(names)):
                raise unknown(what, name, known, where=where)


def _factors(grids: Iterable[Grid]) -> dict[str, tuple[Level, ...]]:
    """Return the levels of each factor, in their order."""
    by_text: dict[str, dict[str, Level]] = {}  # by text, as in names of cells and in reports: 0 and 0.0 are two levels
    for grid in grids:
        for name, levels in grid.factors.items():
            for level in levels:
                by_text.setdefault(name, {}).setdefault(text_of(level), level)
    return {name: tuple(levels.values()) for name, levels in by_text.items()}


def _with_steps(options: Mapping[str, Any], steps: int) -> dict[str, Any]:
    """Return options with a number of steps; an untrained model stays one."""
    if options.get("steps") == 0:
        return dict(options)
    return {key: value for key, value in options.items() if key not in ("tokens", "epochs")} | {"steps": steps}


def _unused(grids: Iterable[Grid], options: Sequence[str]) -> str | None:
    """Return what to do about the first factor with several levels that no option depends on."""
    for grid in grids:
        used = {name for value in chain(grid.cell.values(), grid.evaluate.values()) for name in named_in(value)}
        for name, levels in grid.factors.items():
            if len(levels) > 1 and name not in used and (name not in options or name in grid.cell):
                return f"no option depends on the factor {name}: write {{{name}}} in [cell], or remove the factor"
    return None
