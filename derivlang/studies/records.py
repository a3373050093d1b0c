"""What a study's folder says is done, and whether it fits the study: no command has to be started to find out.

OUT/study.json                the factors, the report's choices, and the cells with their levels, for the report
OUT/runs/CELL/pretrained.json, evaluated.json
                              that a command of a cell was finished: its options, hashes of the files that they name,
                              and the run that it made or read
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError
from derivlang.core.seal import check_intact, sealed
from derivlang.core.settings import declared
from derivlang.core.version import __version__
from derivlang.evaluation.finetune_settings import RULES
from derivlang.evaluation.plan import FORMAT, STUDY
from derivlang.evaluation.results import EVALUATION
from derivlang.formats.opening import suffix_of
from derivlang.formats.paths import is_path
from derivlang.formats.registry import suffixes
from derivlang.grammar.load import files_of_pair
from derivlang.store.files import writing
from derivlang.store.listing import file_hash
from derivlang.store.record import check_types, difference, digest, read_record, record_text
from derivlang.studies.begins import RUNS
from derivlang.studies.cells import Cell
from derivlang.studies.commands import NAMES_TEXT
from derivlang.studies.file import TEXT, StudyFile
from derivlang.studies.plan import PlannedCommand, model_of, plan
from derivlang.studies.settings import Place
from derivlang.training.checkpoint import MODEL
from derivlang.training.config import ModelConfig
from derivlang.training.objectives.registry import read_objective
from derivlang.training.run_folder import RUN
from derivlang.training.settings import TrainingSettings
from derivlang.training.streams.bitext import PARTS

_SETTINGS = declared(TrainingSettings)
PRETRAINED, EVALUATED = "pretrained.json", "evaluated.json"  # in a run's folder
_SEALED = (RUN, STUDY)  # the other two records are compared with what is there now


def write_study(study: StudyFile, place: Place) -> None:
    """Write study.json, which has a hash of itself: the report believes its levels."""
    _write(place.out / STUDY, sealed({**_record(study, place), "derivlang": __version__}))


def is_done(step: PlannedCommand, place: Place) -> bool:
    """Return whether a cell's step is done, by its record; starting its command to find out would take longer."""
    assert step.cell is not None
    run = place.out / RUNS / step.cell.name
    now = _finished(step, run, place)
    if step.arguments[0] == "evaluate":
        return _is_same(_json(run / EVALUATED, options=list), now)
    return _json(run / "run.json").get("status") == "done" and _is_same(_json(run / PRETRAINED), now)


def mark_done(step: PlannedCommand, place: Place) -> None:
    """Record that a cell's step is done. `pretrain --force` removes the record."""
    assert step.cell is not None
    run = place.out / RUNS / step.cell.name
    _write(run / (EVALUATED if step.arguments[0] == "evaluate" else PRETRAINED), _finished(step, run, place))


def _finished(step: PlannedCommand, run: Path, place: Place) -> dict[str, Any]:
    """Return what the record of a finished step holds: the run, the options, and the files that they name."""
    record, cell = _json(run / "run.json"), step.cell
    assert cell is not None
    if step.arguments[0] == "pretrain":
        facts = {"fingerprint": record.get("fingerprint"), "options": step.facts}
        return facts | {"files": _files(cell.options, place)}
    facts = {"rules": RULES, **{name: record.get(name) for name in ("fingerprint", "weights")}, "options": step.facts}
    scores = run / EVALUATION  # which a command outside the study may have changed
    made = file_hash(scores) if scores.is_file() else None
    return facts | {"files": _files(cell.evaluation, place), "evaluation": made}


def _is_same(before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Return whether two records of a step are the same. Files that only one of them knows may be away."""
    facts, others = ({key: value for key, value in one.items() if key != "files"} for one in (before, now))
    return facts == others and _changed(before, now["files"]) is None


def _changed(before: Mapping[str, Any], files: Mapping[str, str]) -> str | None:
    """Return the first option whose files have another hash than in a record, or None."""
    known = before.get("files") or {}
    return next((key.removesuffix("/") for key in files if known.get(key, files[key]) != files[key]), None)


def _files(options: Mapping[str, Any], place: Place) -> dict[str, str]:
    """Return a hash of the files that options name, by option: FILE, PREFIX of text files, or a part of a spec.

    Folders, and grammars named by a prefix, have an entry of their own, `source/`.
    """
    hashes = {}
    for key, value in options.items():
        if not isinstance(value, str) or not value:
            continue
        whole = place.out / value
        parts = [place.out / part for part in re.split("[,:=]", value) if part not in ("", value)]
        paths = [whole, *parts, *(Path(f"{whole}.{part}") for part in PARTS)]
        there = [path for path in paths if is_path(path, "file") and path.is_file()]
        if there:
            hashes[key] = digest([file_hash(path) for path in there])
        sets = [place.out / part for part in re.split("[,:+]", value) if part and "+" in value]  # pos:A+B
        read: list[tuple[str, Path]] = []
        for path in dict.fromkeys([whole, *parts, *sets]):
            read += [(pair.name, pair) for pair in files_of_pair(path).values()]
            read += _within(path, key) if is_path(path, "folder") and not _is_own(path, place) else []
        if read:
            hashes[f"{key}/"] = digest([[name, file_hash(path)] for name, path in read])
    return hashes


def _is_own(folder: Path, place: Place) -> bool:
    """Return whether a folder is a run of the study, which `other_beginning` compares, or holds OUT itself."""
    inside, out = folder.resolve(), place.out.resolve()
    return inside.is_relative_to(out / RUNS) or out.is_relative_to(inside)


def _within(folder: Path, key: str) -> list[tuple[str, Path]]:
    """Return the files that a command reads in a folder and below, with names: no hidden ones; of a run, its model."""
    if (folder / RUN).exists():
        folder /= MODEL
    # Unlike Path.rglob, this looks into linked folders, and leaves out hidden files.
    below = sorted(glob("**", root_dir=folder, recursive=True))  # noqa: PTH207
    files = [(name, folder / name) for name in below if (folder / name).is_file()]
    return [one for one in files if key not in (*NAMES_TEXT, "task") or suffix_of(one[1]) in suffixes()]


def other_beginning(cell: Cell, place: Place) -> str:
    """Return what is wrong if a run began with other weights than the run that it needs has now, else ""."""
    began = _json(place.out / RUNS / cell.name / "run.json").get("init") or {}
    for key, fact in (("init", "weights"), ("embeddings", "embeddings")):
        run = str(cell.options.get(key, "")).removeprefix("from=")
        if run.removeprefix(f"{RUNS}/") not in cell.needs:  # or a checkpoint, which may be gone
            continue
        now = _json(place.out / run / "run.json").get("weights")
        if now and began.get(fact, now) != now:
            return f"{cell.name} began with other weights than {run} has now; remove its folder to train it again"
    return ""


def _record(study: StudyFile, place: Place) -> dict[str, Any]:
    """Return what study.json holds."""
    shared = {step.name: step.facts for step in plan(study, place) if step.arguments[0] == "tokenizer"}
    return {
        "format": FORMAT,
        "study": study.name,
        "text": list(study.text),
        **({"labelled": True} if study.labelled else {}),
        "tokenizers": shared,
        "files": _sources(plan(study, place), place),
        "factors": {name: list(levels) for name, levels in study.factors.items()},
        "report": {**study.report, **_former_primary(study, place)},
        "cells": [{"name": cell.name, "run": f"{RUNS}/{cell.name}", "factors": cell.levels} for cell in study.cells],
    }


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


def _sources(steps: Sequence[PlannedCommand], place: Place) -> dict[str, str]:
    """Return the hash of the source of each tokenizer that is trained on a file or a folder."""
    by_step = {
        step.name: _files({"source": step.arguments[2]}, place) for step in steps if step.arguments[0] == "tokenizer"
    }
    return {name: next(iter(hashes.values())) for name, hashes in by_step.items() if hashes}


def _told(text: list[str], labelled: bool) -> str:
    """Return the sources of a joined text, for a message."""
    return f"{', '.join(text) or 'nothing'}{' with labels' if labelled else ''}"


def check_shared(study: StudyFile, steps: Sequence[PlannedCommand], place: Place) -> None:
    """Raise StoreError if OUT holds the text or a tokenizer of another study."""
    before = _json(place.out / STUDY)
    fix = "give another -o"
    text, joined = list(study.text), before.get("text")
    labels, had_labels = study.labelled, bool(before.get("labelled"))
    if text and (place.out / TEXT).exists() and joined is not None and (joined, had_labels) != (text, labels):
        raise StoreError(
            f"was joined from {_told(joined, had_labels)}, and the study has {_told(text, labels)}",
            where=str(place.out / TEXT), fix=fix, id="other-study",
        )  # fmt: skip
    for step in steps:
        earlier = (before.get("tokenizers") or {}).get(step.name)
        if earlier is not None and earlier != step.facts and (place.out / step.name).exists():
            where = str(place.out / step.name)
            raise StoreError(
                f"was trained otherwise: {_options_differ(earlier, step.facts)}", where=where, fix=fix, id="other-study"
            )
    for name, content_hash in _sources(steps, place).items():
        if (before.get("files") or {}).get(name, content_hash) != content_hash and (place.out / name).exists():
            raise StoreError(
                "was trained on another content of the source", where=str(place.out / name), fix=fix, id="other-study"
            )


def check_fits(step: PlannedCommand, place: Place) -> None:
    """Raise StoreError if a finished run of a cell had other options than the study gives it."""
    if step.cell is None or step.arguments[0] != "pretrain":
        return
    run = place.out / RUNS / step.cell.name
    record, done = _json(run / "run.json"), _json(run / PRETRAINED)
    if not done or done.get("fingerprint") != record.get("fingerprint"):
        return
    told = ""
    if done.get("options") != step.facts:
        told = _options_differ(dict(done.get("options") or {}), step.facts)
    elif changed := _changed(done, _files(step.cell.options, place)):
        told = f"the content of {changed} ({step.facts[changed]}) has changed since"
    else:
        told = _other_rules(record, step.cell) or _other_defaults(record, step.cell)
    if told:
        raise StoreError(
            f"was trained otherwise: {told}",
            where=str(run),
            fix="give another -o, or remove this folder to train it again",
            id="other-study",
        )


def _other_rules(record: Mapping[str, Any], cell: Cell) -> str:
    """Return what the objective of a run meant in the version that trained it, "" if it means the same today."""
    objective, model = record.get("objective"), record.get("model") or {}
    if objective is None:
        return ""
    if "language-ids" in cell.options or "init" in cell.options:
        return ""
    asked = read_objective(objective).gets_language_ids(ModelConfig.read(model_of(cell)))
    return difference({"language_ids": model.get("language_ids", asked)}, {"language_ids": asked})


def _other_defaults(record: Mapping[str, Any], cell: Cell) -> str:
    """Return which setting of a bundled model has another value today than a run was trained with, "" if none has.

    Only of settings that the cell does not give. A model's file has a hash, and `check_shared` compares vocabularies.
    """
    before, model = record.get("settings") or {}, model_of(cell)
    if before.get("model") != model or model.endswith(".toml"):  # another one: of a checkpoint that it began from
        return ""
    # Which may follow from the text, from a number of sub-words or epochs, or from another objective's budget.
    computed = {"vocab_size", *(["steps"] if {"tokens", "epochs", "budget"} & cell.options.keys() else [])}
    given = {name for name, one in _SETTINGS.items() if str(one.option).removeprefix("--") in cell.options}
    defaults = ModelConfig.read(model).training.items()
    return difference(before, {k: v for k, v in defaults if k in before and k not in computed | given})


def _options_differ(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Return the first option that differs, as in `warmup is 0.1, not 0.2`; one that is left out now, too."""
    return difference(before, {**dict.fromkeys(before), **now})


def _write(path: Path, record: dict[str, Any]) -> None:
    with writing(path) as file:
        file.write(record_text(record).encode())


def _json(path: Path, *, options: type = dict) -> dict[str, Any]:
    """Return a record, or {} if it is missing or damaged: then its step runs again, and says what is wrong.

    options: the type of its options; `evaluate` has a list of them.
    """
    try:
        return read_record(path, "record", partial(_check, path.name, options=options), id="run")
    except StoreError:
        return {}


def _check(name: str, record: dict[str, Any], options: type) -> None:
    """Raise ValueError if a field that is read here has another type, or was changed. name: of the file."""
    if name in _SEALED:
        check_intact(record)
    check_types(
        record,
        {},
        {
            "objective": str,
            "model": dict,
            "init": dict,
            "settings": dict,
            "options": options,
            "text": list,
            "tokenizers": dict,
            "files": dict,
            "report": dict,
        },
    )
    check_types(record.get("init") or {}, {}, {"weights": str, "embeddings": str}, where="init.")
    tokenizers = record.get("tokenizers") or {}
    check_types(tokenizers, dict.fromkeys(tokenizers, dict), where="tokenizers.")
    texts = {str(place): text for place, text in enumerate(record.get("text") or ())}
    check_types(texts, dict.fromkeys(texts, str), where="text.")
