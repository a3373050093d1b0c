"""What `push` sends of a folder: the files of a set, of a run or of a study, checked, and nothing else.

    set      card, lexicon, copies of the files of the spec, shards                                derivlang.json
    run      model, tokenizers, dictionary, log, results of evaluations; README.md if there is one    run.json
    study    the same of each cell, and the report                                                 study.json

The last column is the record by which the result is known. It is sent last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any, Literal

from derivlang.core.errors import StoreError
from derivlang.core.messages import first_names, warn
from derivlang.evaluation.plan import STUDY
from derivlang.evaluation.results import COUNTS, EVALUATION, FILES, KINDS
from derivlang.evaluation.run_files import files_of_run
from derivlang.evaluation.verify import verify_run
from derivlang.formats.spec_paths import FOLDER as SPEC_FILES
from derivlang.store.card import CARD
from derivlang.store.foreign import split_files
from derivlang.store.hub_push import Read, RecordKind
from derivlang.store.making import OTHER_PLAN
from derivlang.store.manifest import NAME, Derived
from derivlang.store.own_files import own_files
from derivlang.store.set_files import damaged_shards, foreign_files, state_of_card
from derivlang.store.settings import PushOptions
from derivlang.studies.verify import planned, verify_study
from derivlang.training import checkpoint
from derivlang.training.run_folder import DATA, RUN, read

Kind = Literal["set", "run", "study"]
REPORT = "report"
_KEPT_HERE = (f"{DATA}/", f"{checkpoint.FOLDER}/", "wandb/")  # of a run, but of no use without its training
_FIX = "`derivlang verify` lists all that is wrong; nothing was sent"
RECORDS: dict[Kind, str] = {"set": NAME, "run": RUN, "study": STUDY}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """The files of a result, as they are sent.

    folder: where they lie. kind: of the result. files: the path of each by its name; the record is the last.
    """

    folder: Path
    kind: Kind
    files: Mapping[str, Path]

    @property
    def record(self) -> str:
        """The name of the file that is sent last."""
        return RECORDS[self.kind]

    @property
    def repo_type(self) -> Literal["dataset", "model"]:
        """The type of the repository on the hub."""
        return "dataset" if self.kind == "set" else "model"

    def sizes(self) -> dict[str, int]:
        """Return the bytes of each file."""
        return {name: path.stat().st_size for name, path in self.files.items()}


def parcel_of(folder: Path, options: PushOptions, warn: Callable[[str], None] = warn) -> Parcel:
    """Return what is sent of a folder.

    warn: called once for files that are not of the result, and once for an edited card that is meant. Raise StoreError
    if the folder holds no set, run or study, or one that is unfinished or damaged.
    """
    if not folder.is_dir():
        raise StoreError("there is no such folder", where=str(folder), id="missing-folder")
    if (folder / RUN).exists():
        parcel = _of_run(folder, options, warn)
    elif (folder / STUDY).exists():
        parcel = _of_study(folder, options, warn)
    else:
        parcel = _of_set(folder, options, warn)
    for name, path in parcel.files.items():
        if path.is_symlink():  # perhaps to something private
            raise StoreError(
                "is a link, so it is not sent",
                where=str(folder / name),
                fix="put a copy of the file in its place; nothing was sent",
                id="linked-file",
            )
    return parcel


def _of_set(folder: Path, options: PushOptions, warn: Callable[[str], None]) -> Parcel:
    derived = Derived(folder)
    derived.check_fingerprint()
    for name, what in damaged_shards(derived):
        raise StoreError(what, where=str(folder / name), fix=_FIX, id="damaged")
    state = state_of_card(derived)
    if state == "is missing" or (state and not options.edited_card):
        raise StoreError(
            f"the dataset card {state}",
            where=str(folder / CARD),
            fix="restore it, or make the set again in another folder"
            if state == "is missing"
            else "--edited-card sends it as it is; else restore it",
            id="card",
        )
    if state:
        warn(f"{folder / CARD} was edited, and is sent as it is")
    _warn_of_kept(folder, foreign_files(derived), warn)
    files = dict(own_files(derived))
    last = files.pop(NAME)
    return Parcel(folder=folder, kind="set", files={**files, NAME: last})


def _of_run(run: Path, options: PushOptions, warn: Callable[[str], None]) -> Parcel:
    record = read(run)
    if record["status"] != "done":
        raise StoreError(
            f"this run is not finished: its status is {record['status']!r}",
            where=str(run),
            fix="the same `derivlang pretrain` command with --resume goes on; nothing was sent",
            id="unfinished",
        )
    _check(verify_run(run), run)
    names = files_of_run(run, checkpoints=options.checkpoints)
    parcel = _parcel("run", run, names, warn)
    _warn_of_kept(run, _foreign_in_run(run, parcel, run), warn)
    return parcel


def _of_study(out: Path, options: PushOptions, warn: Callable[[str], None]) -> Parcel:
    from derivlang.evaluation.report.write import files_of_report  # imported late: draws figures

    plan = planned(out)
    runs = [out / cell.relative_to(plan.folder) for cell in plan.cells]
    for run in runs:
        if not (run / RUN).is_file() or read(run)["status"] != "done":
            raise StoreError(
                f"this study is not finished: {run.name} is to be run",
                where=str(out),
                fix="the same `derivlang study` command goes on; nothing was sent",
                id="unfinished",
            )
    _check(verify_study(out), out)
    names = [
        (run / name).relative_to(out).as_posix()
        for run in runs
        for name in files_of_run(run, checkpoints=options.checkpoints)
    ]
    names += [f"{REPORT}/{name}" for name in files_of_report(out / REPORT) if (out / REPORT / name).is_file()]
    parcel = _parcel("study", out, [*names, STUDY], warn)
    foreign = [(run / name).relative_to(out).as_posix() for run in runs for name in _foreign_in_run(run, parcel, out)]
    _warn_of_kept(out, foreign, warn)
    return parcel


def _parcel(kind: Kind, folder: Path, names: list[str], warn: Callable[[str], None]) -> Parcel:
    """Return the parcel of some files and of the card, if there is one."""
    if (folder / CARD).is_file():
        names = [CARD, *names]
    else:
        warn(f"{folder} has no {CARD}, so its page on the hub will say nothing of the {kind}")
    return Parcel(folder=folder, kind=kind, files={name: folder / name for name in names})


def _check(result: Mapping[str, Any], folder: Path) -> None:
    """Raise StoreError for the first problem that a check has found."""
    for one in result["problems"]:
        raise StoreError(one["what"], where=str(folder / one["file"]), fix=_FIX, id="damaged")


def _foreign_in_run(run: Path, parcel: Parcel, root: Path) -> Iterator[str]:
    """Yield the names, from `run`, of what is not of the run. root: the folder of the parcel."""
    prefix = "" if run == root else f"{run.relative_to(root).as_posix()}/"
    own = [escape(name.removeprefix(prefix)) for name in parcel.files if name.startswith(prefix)]
    for name in split_files(run, own)[1]:
        if name[0] != "." and name not in _KEPT_HERE:
            yield name


def _warn_of_kept(folder: Path, foreign: Iterable[str], warn: Callable[[str], None]) -> None:
    names = list(foreign)
    if names:
        warn(f"{folder}: not sent, as it is not of the result: {first_names(names)}")


def _listed_by_set(record: Mapping[str, Any], there: Iterable[str], read: Read) -> set[str]:
    """Return the names of the files of a set on the hub. Copies of the files of the spec are known by their names."""
    shards = {shard["file"] for split in record["splits"].values() for shard in split["shards"]}
    in_spec = set(re.split(r"[\s:,;=|()\[\]'\"/\\\\]+", record["spec"]))
    kept = {
        name for name in there if name.startswith(f"{SPEC_FILES}/") and name.removeprefix(f"{SPEC_FILES}/") in in_spec
    }
    return {*shards, *kept, *([record["lexicon"]] if record["lexicon"] else [])}


def _listed_by_run(record: Mapping[str, Any], there: Iterable[str], read: Read) -> set[str]:
    """Return the names of the files of a run on the hub, with its evaluations and checkpoints."""
    names = {*(record.get(FILES) or {}), EVALUATION, "pretrained.json", "evaluated.json"}
    for name in there:
        folder, _, file = name.rpartition("/")
        if name == EVALUATION or (folder == COUNTS and re.fullmatch(r"step-\d+\.json", file)):
            of = read(name)
            cells = [one for kind in KINDS for entry in (of.get(kind) or {}).values() for one in entry[FILES]]
            names |= {name, *(f"{COUNTS if name == EVALUATION else name.removesuffix('.json')}/{one}" for one in cells)}
        if re.fullmatch(rf"{checkpoint.FOLDER}/step-\d+", folder) and file == checkpoint.STATE:
            of = read(name)
            if of.get("fingerprint") == record["fingerprint"]:
                names |= {name, *(f"{folder}/{one}" for one in of.get("files") or ())}
    return names


def _listed_by_study(record: Mapping[str, Any], there: Iterable[str], read: Read) -> set[str]:
    """Return the names of the files of a study on the hub: of its runs, and of its report."""
    from derivlang.evaluation.report.write import DATA as OF_REPORT  # imported late: draws figures

    names = {f"{REPORT}/{name}" for name in (OF_REPORT, *(read(f"{REPORT}/{OF_REPORT}").get("files") or ()))}
    for cell in record["cells"]:
        run = f"{cell['run']}/"
        inside = [name.removeprefix(run) for name in there if name.startswith(run)]
        if of := read(run + RUN):
            own = _listed_by_run(of, inside, lambda name, run=run: read(run + name))  # type: ignore[misc]
            names |= {run + name for name in (RUN, *own)}
    return names


def _some(*names: str) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    return lambda record: {name: record[name] for name in names if name in record}


# What a record says: which result it is of, and which files belong to it.
KINDS_OF_RECORDS = {
    NAME: RecordKind(
        identity=_some("spec", "source", "words", "sentences", "encoding", "options", "policies", "plan"),
        words={"plan": OTHER_PLAN},
        files=_listed_by_set,
    ),
    RUN: RecordKind(
        identity=_some("settings", "objective", "seed", "steps", "fingerprint"),
        words={"fingerprint": "its settings or its data are others"},
        files=_listed_by_run,
    ),
    STUDY: RecordKind(
        identity=_some("study", "factors", "text", "tokenizers", "files", "cells"),
        words={"cells": "its cells are others", "tokenizers": "its tokenizers are others"},
        files=_listed_by_study,
    ),
}
