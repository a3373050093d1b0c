"""What a study's folder says is done, and whether it fits the study and is intact: no command has to be started.

OUT/study.json                the factors, the report's choices, and the cells with their levels, for the report
OUT/runs/CELL/pretrained.json, evaluated.json
                              that a command of a cell was finished, or an evaluation begun: its options, hashes of
                              the files that they name, and the run that it made or read
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from glob import glob
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError
from derivlang.core.messages import first_names
from derivlang.core.seal import is_intact, sealed
from derivlang.core.settings import declared
from derivlang.core.version import __version__
from derivlang.evaluation import results
from derivlang.evaluation.collect import evaluations, verify_run
from derivlang.evaluation.finetune_settings import RULES, FinetuneSettings
from derivlang.evaluation.plan import FORMAT, STUDY, StudyPlan, read_plan
from derivlang.evaluation.results import EVALUATION
from derivlang.formats.base import suffixes
from derivlang.formats.opening import suffix_of
from derivlang.formats.places import is_path
from derivlang.grammar.grammar import files_of_pair
from derivlang.store.files import writing
from derivlang.store.record import difference, digest, file_hash, read_record, record_text
from derivlang.studies.cells import RUNS, Cell, texts_of
from derivlang.studies.commands import NAMES_TEXT
from derivlang.studies.file import TEXT, StudyFile
from derivlang.studies.plan import PlannedCommand, plan
from derivlang.studies.settings import Place
from derivlang.training.checkpoint import MODEL
from derivlang.training.run_folder import RUN
from derivlang.training.streams.bitext import PARTS

PRETRAINED, EVALUATED = "pretrained.json", "evaluated.json"  # in a run's folder
_BEGUN = "begun"  # the status in the record of an evaluation that is not done
_NAMES = {"pretrain": PRETRAINED, "evaluate": EVALUATED}
_SEALED = (RUN, STUDY)  # the other two records are compared with what is there now
_READ = {"options?": dict, "files?": dict, "weights?": str, "text?": list, "report?": dict, "cells?": [{"name": str}]}


def write_study(study: StudyFile, place: Place) -> None:
    """Write study.json, which has a hash of itself: the report believes its levels."""
    record = {
        "format": FORMAT,
        "study": study.name,
        "text": list(study.text),
        **({"labelled": True} if study.labelled else {}),
        "factors": {name: list(levels) for name, levels in study.factors.items()},
        "report": {**({"title": study.title} if study.title else {}), **study.report, **_former_primary(study, place)},
        "cells": [{"name": cell.name, "run": f"{RUNS}/{cell.name}", "factors": cell.levels} for cell in study.cells],
    }
    _write(place.out / STUDY, sealed({**record, "derivlang": __version__}))


def is_done(step: PlannedCommand, place: Place) -> bool:
    """Return whether a cell's step is done, by its record; starting its command to find out would take longer."""
    before, now = _json(_path(step, place)), _made(step.arguments[0], place.out / step.run)
    same = {**before, "files": None} == {**now, "options": step.facts, "files": None}
    # Files that only one of the two records knows may be away. They are hashed last: they may be large.
    return same and _changed(before, _files(step.options, place)) is None


def replaces(step: PlannedCommand, place: Place) -> bool:
    """Return whether an evaluation has another fine-tuning than its cell had, finished or begun, or is damaged."""
    before = _json(_path(step, place)).get("options")
    if before is None or step.arguments[0] != "evaluate":
        return False
    try:
        for path, _ in evaluations(place.out / step.run):
            results.read(path)
    except StoreError:
        return True
    tuning = dict.fromkeys(str(one.option).removeprefix("--") for one in declared(FinetuneSettings).values())
    return bool(difference(before, {name: step.facts.get(name) for name in tuning}))


def mark_begun(step: PlannedCommand, place: Place) -> None:
    """Record the options with which the first evaluation of a cell begins: if it is interrupted, its results have them.

    Later ones leave the record as it is until they are done.
    """
    if step.arguments[0] == "evaluate" and not _path(step, place).exists():
        _write(_path(step, place), {**_record(step, place), "status": _BEGUN})


def mark_done(step: PlannedCommand, place: Place) -> None:
    """Record that a cell's step is done. `pretrain --force` removes the record."""
    _write(_path(step, place), _record(step, place))


def _path(step: PlannedCommand, place: Place) -> Path:
    return place.out / step.run / _NAMES[step.arguments[0]]


def _record(step: PlannedCommand, place: Place) -> dict[str, Any]:
    """Return what the record of a finished step holds: the run, the options, and the files that they name."""
    made = _made(step.arguments[0], place.out / step.run)
    return {**made, "options": step.facts, "files": _files(step.options, place)}


def _made(command: str, run: Path) -> dict[str, Any]:
    """Return what a command has made in the folder of a run, or has read there."""
    made, scores = _json(run / RUN), run / EVALUATION  # a command outside the study may have changed the scores
    record = {name: made.get(name) for name in ("status", "fingerprint")}
    if command == "evaluate":
        evaluation = file_hash(scores) if scores.is_file() else None
        record |= {"weights": made.get("weights"), "rules": RULES, "evaluation": evaluation}
    return record


def _changed(before: Mapping[str, Any], files: Mapping[str, str]) -> str | None:
    """Return the first option whose files have another hash than in a record, or None."""
    known = before.get("files") or {}
    return next((key for key in files if known.get(key, files[key]) != files[key]), None)


def _files(options: Mapping[str, Any], place: Place) -> dict[str, str]:
    """Return a hash of the files that options name, by option."""
    found = {
        key: [one for inner, text in texts_of(key, value) for one in _named(inner, text, place)]
        for key, value in options.items()
    }
    return {key: digest(hashes) for key, hashes in found.items() if hashes}


def _named(key: str, value: str, place: Place) -> Iterator[list[str]]:
    """Yield the name and hash of what an option names: FILE, FOLDER, PREFIX of text files or of a grammar, RUN.

    It may be a part of a spec. A run of the study has the hash of its weights.
    """
    out = place.out.resolve()
    for part in filter(None, dict.fromkeys([value, *re.split("[,:=+]", value)])):
        path = place.out / part
        files = [path, *(Path(f"{path}.{side}") for side in PARTS), *files_of_pair(path).values()]
        named = [(file.name, file) for file in files if is_path(file, "file") and file.is_file()]
        if is_path(path, "folder") and not out.is_relative_to(inside := path.resolve()):
            if not inside.is_relative_to(out / RUNS):
                named += _within(path, key)
            elif weights := _json(path / RUN).get("weights"):
                yield [path.name, weights]
        yield from ([name, file_hash(file)] for name, file in named)


def _within(folder: Path, key: str) -> list[tuple[str, Path]]:
    """Return the files that a command reads in a folder and below, with names: no hidden ones; of a run, its model."""
    if (folder / RUN).exists():
        folder /= MODEL
    # Unlike Path.rglob, this looks into linked folders, and leaves out hidden files.
    below = sorted(glob("**", root_dir=folder, recursive=True))  # noqa: PTH207
    files = [(name, folder / name) for name in below if (folder / name).is_file()]
    return [one for one in files if key not in (*NAMES_TEXT, "task") or suffix_of(one[1]) in suffixes()]


def _former_primary(study: StudyFile, place: Place) -> dict[str, Any]:
    """Return {"changed_primary", "former_primary"} if the main outcome was changed after runs existed, else {}.

    former_primary: the one before the first change, null for none. Once it is recorded it stays.
    """
    before = _json(place.out / STUDY).get("report")
    if before is None:
        return {}
    if before.get("changed_primary"):
        return {name: before.get(name) for name in ("changed_primary", "former_primary")}
    changed = study.report.get("primary") != before.get("primary")
    there = changed and any((place.out / RUNS).glob(f"*/{RUN}"))
    return {"changed_primary": True, "former_primary": before.get("primary")} if there else {}


def check_beginning(cell: Cell, place: Place) -> None:
    """Raise StoreError if a run that goes on began with other weights than the run that it needs has now."""
    began = _json(place.out / RUNS / cell.name / RUN).get("init") or {}
    run = str(cell.options.get("init", ""))
    now = _json(place.out / run / RUN).get("weights") if run.removeprefix(f"{RUNS}/") in cell.needs else None
    if now and began.get("weights", now) != now:
        what, fix = f"began with other weights than {run} has now", "remove this folder to train it again"
        raise StoreError(what, where=str(place.out / RUNS / cell.name), fix=fix, id="other-run")


def check_shared(study: StudyFile, place: Place) -> None:
    """Raise StoreError if OUT holds the runs or the text of another study: one without a cell of this one."""
    before, fix = _json(place.out / STUDY), f"give another folder: derivlang study {study.place} -o OUT"
    cells = [cell["name"] for cell in before.get("cells") or ()]
    own = {cell.name for cell in (study.whole or study).cells}
    if cells and not own.intersection(cells) and study.name != before.get("study"):
        what = f"holds another study: none of its cells ({first_names(cells)}) is in {study.place}"
        raise StoreError(what, where=str(place.out), fix=fix, id="other-study")
    asked = {"text": list(study.text), "labelled": study.labelled}
    words = {"labelled": "one keeps labels (treebanks), the other has only words (text)"}
    told = difference({"labelled": False, **before}, asked, words)
    if told and before and study.text and (place.out / TEXT).exists():
        where = str(place.out / TEXT)
        raise StoreError(f"is of another study: {told}", where=where, fix=fix, id="other-study")


def check_place(study: StudyFile, place: Place) -> None:
    """Raise StoreError if OUT holds another study, or a finished run with other options."""
    check_shared(study, place)
    for step in plan(study.whole or study, place):
        check_fits(step, place)


def check_fits(step: PlannedCommand, place: Place) -> None:
    """Raise StoreError if a finished run of a cell had other options than the study gives it."""
    if step.arguments[0] != "pretrain":
        return
    done = _json(_path(step, place))
    if not done or done.get("fingerprint") != _json(place.out / step.run / RUN).get("fingerprint"):
        return
    options = done.get("options") or {}
    told = difference(options, {**dict.fromkeys(options), **step.facts})  # one that is left out now, too
    if not told and (changed := _changed(done, _files(step.options, place))):
        told = f"the content of {changed} ({step.facts[changed]}) has changed since"
    if told:
        fix = "give another -o, or remove this folder to train it again"
        where = str(place.out / step.run)
        raise StoreError(f"was trained otherwise: {told}", where=where, fix=fix, id="other-study")


def _write(path: Path, record: dict[str, Any]) -> None:
    with writing(path) as file:
        file.write(record_text(record).encode())


def _json(path: Path) -> dict[str, Any]:
    """Return a record, or {} if it is missing or damaged: then its step runs again, and says what is wrong."""
    try:
        record = read_record(path, "record", _READ, id="run")
    except StoreError:
        return {}
    return record if path.name not in _SEALED or is_intact(record) else {}


def verify_study(out: Path) -> dict[str, Any]:
    """Return what `verify_run` returns, for all cells of a study; `checked` has their number, too.

    A cell that has not been run, or is not finished, is a problem. Files are named by their path in the study. Raise
    StoreError if study.json is missing or damaged.
    """
    plan = planned(out)
    checked: dict[str, int] = {"cells": len(plan.cells), "files": 1, "checkpoints": 0, "evaluations": 0}
    problems: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    for name in (cell.relative_to(plan.folder).as_posix() for cell in plan.cells):
        if not (out / name / RUN).is_file():
            problems.append({"file": name, "what": "the cell has not been run"})
            continue
        of_run = verify_run(out / name)
        for place, entries in ((problems, of_run["problems"]), (notes, of_run["notes"])):
            place += [{**entry, "file": f"{name}/{entry['file']}"} for entry in entries]
        checked = {key: n + of_run["checked"].get(key, 0) for key, n in checked.items()}
        for command, file in _NAMES.items():
            told, is_there = _json(out / name / file), (out / name / file).exists() or file == PRETRAINED
            if is_there and not _made(command, out / name).items() <= told.items():
                what = "the cell is not finished, or another command than the study's has changed it"
                problems.append({"file": f"{name}/{file}", "what": what})
    return {"ok": not problems, "out": str(out), "checked": checked, "problems": problems, "notes": notes}


def planned(out: Path) -> StudyPlan:
    """Return the plan of a study. Raise StoreError if study.json is missing or damaged."""
    plan = read_plan(out)
    if plan is None:
        raise StoreError(f"is not a study: there is no {STUDY}", where=str(out), id="missing-file")
    return plan
