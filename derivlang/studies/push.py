"""Send a set, a run or a study to a repository of the Hugging Face hub: its files, checked, and nothing else.

    set      card, lexicon, copies of the files of the spec, shards                                derivlang.json
    run      model, tokenizers, dictionary, log, results of evaluations; README.md if there is one    run.json
    study    the same of each cell, and the report                                                 study.json

The last column is the record by which the result is known. It is sent last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from glob import escape
from pathlib import Path
from typing import Any, Literal

from derivlang.core.errors import StoreError, UsageError
from derivlang.core.messages import first_names, warn
from derivlang.evaluation.plan import STUDY
from derivlang.evaluation.verify import files_of_run, verify_run
from derivlang.formats.places import is_remote
from derivlang.formats.spec_paths import FOLDER as SPEC_FILES
from derivlang.store.foreign import split_files
from derivlang.store.hub_push import MAIN, HubPush, RecordKind, check_repository, page_of
from derivlang.store.manifest import CARD, LEXICON, NAME, Derived
from derivlang.store.set_files import damaged_shards, foreign_files, state_of_card
from derivlang.store.set_plan import OTHER_PLAN
from derivlang.store.settings import PushOptions
from derivlang.studies.records import planned, verify_study
from derivlang.training import checkpoint, run_folder
from derivlang.training.run_folder import DATA, RUN, read

Kind = Literal["set", "run", "study"]
REPORT = "report"
_KEPT_HERE = (f"{DATA}/", f"{checkpoint.FOLDER}/", "wandb/")  # of a run, but of no use without its training
_FIX = "`derivlang verify` lists all that is wrong; nothing was sent"
RECORDS: dict[Kind, str] = {"set": NAME, "run": RUN, "study": STUDY}


def push(folder: Path, repository: str, options: PushOptions, warn: Callable[[str], None] = warn) -> dict[str, Any]:
    """Send what is in a folder, and return what `derivlang.push` returns.

    repository: owner/name. warn: called for files that are not sent or stay there, for an edited card that is sent, and
    for what the hub says of the card. Raise UsageError for a name that no repository can have, StoreError for a result
    that is missing, unfinished or damaged, for a repository that holds something else, and for what the hub refuses.
    """
    check_repository(repository, options.revision)
    if is_remote(folder):
        raise UsageError(
            "a set is sent from a local folder", where=str(folder), fix="copy it from the store first", id="remote-push"
        )
    if not folder.is_dir():
        raise StoreError("there is no such folder", where=str(folder), id="missing-folder")
    kind: Kind = "run" if (folder / RUN).exists() else "study" if (folder / STUDY).exists() else "set"
    files = {"set": _of_set, "run": _of_run, "study": _of_study}[kind](folder, options, warn)
    for name, path in files.items():
        if path.is_symlink():  # perhaps to something private
            fix = "put a copy of the file in its place; nothing was sent"
            raise StoreError("is a link, so it is not sent", where=str(folder / name), fix=fix, id="linked-file")
    repo_type: Literal["dataset", "model"] = "dataset" if kind == "set" else "model"
    sent = {"commit": None, "sent": None, "removed": None}
    if not options.dry_run:
        sent = HubPush(
            repository=repository,
            repo_type=repo_type,
            revision=options.revision,
            record=RECORDS[kind],
            kinds=KINDS_OF_RECORDS,
            force=options.force,
            private=options.private,
        ).send(folder, list(files), warn)
    return {
        "out": str(folder),
        "kind": kind,
        "repository": repository,
        "revision": options.revision,
        "url": page_of(repository, repo_type, options.revision),
        "files": {name: path.stat().st_size for name, path in files.items()},
        **sent,
    }


def how_to_load(kind: str, repository: str, revision: str) -> list[str]:
    """Return lines that load what was sent: with Python, and as a folder that derivlang reads."""
    name = repository.partition("/")[2]
    branch = "" if revision == MAIN else f', revision="{revision}"'
    type_ = " --repo-type dataset" if kind == "set" else ""
    lines = [f"hf download {repository}{type_}{f' --revision {revision}' * (revision != MAIN)} --local-dir {name}"]
    if kind == "set":
        lines.insert(0, f'datasets.load_dataset("{repository}"{branch})')
    if kind == "run":
        lines.insert(0, f'transformers.AutoModel.from_pretrained("{repository}", subfolder="model"{branch})')
    return lines


def _of_set(folder: Path, options: PushOptions, warn: Callable[[str], None]) -> dict[str, Path]:
    """Return the paths of the files of a set by their names, the record last."""
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
    files = dict(derived.own_files())
    last = files.pop(NAME)
    return {**files, NAME: last}


def _of_run(run: Path, options: PushOptions, warn: Callable[[str], None]) -> dict[str, Path]:
    """Return the files of a run, as `_of_set` does."""
    record = read(run)
    if record["status"] != "done":
        raise StoreError(
            f"this run is not finished: its status is {record['status']!r}",
            where=str(run),
            fix="the same `derivlang pretrain` command with --resume goes on; nothing was sent",
            id="unfinished",
        )
    _check(verify_run(run), run)
    files = _with_card("run", run, files_of_run(run, checkpoints=options.checkpoints), warn)
    _warn_of_kept(run, _foreign_in_run(run, files, run), warn)
    return files


def _of_study(out: Path, options: PushOptions, warn: Callable[[str], None]) -> dict[str, Path]:
    """Return the files of a study and of its runs, as `_of_set` does."""
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
    files = _with_card("study", out, [*names, STUDY], warn)
    foreign = [(run / name).relative_to(out).as_posix() for run in runs for name in _foreign_in_run(run, files, out)]
    _warn_of_kept(out, foreign, warn)
    return files


def _with_card(kind: Kind, folder: Path, names: list[str], warn: Callable[[str], None]) -> dict[str, Path]:
    """Return the paths of some files and of the card, if there is one, by their names."""
    if (folder / CARD).is_file():
        names = [CARD, *names]
    else:
        warn(f"{folder} has no {CARD}, so its page on the hub will say nothing of the {kind}")
    return {name: folder / name for name in names}


def _check(result: Mapping[str, Any], folder: Path) -> None:
    """Raise StoreError for the first problem that a check has found."""
    for one in result["problems"]:
        raise StoreError(one["what"], where=str(folder / one["file"]), fix=_FIX, id="damaged")


def _foreign_in_run(run: Path, files: Iterable[str], root: Path) -> Iterator[str]:
    """Yield the names, from `run`, of what is not of the run. files: what is sent. root: the folder of the result."""
    prefix = "" if run == root else f"{run.relative_to(root).as_posix()}/"
    own = [escape(name.removeprefix(prefix)) for name in files if name.startswith(prefix)]
    for name in split_files(run, own)[1]:
        if name[0] != "." and name not in _KEPT_HERE:
            yield name


def _warn_of_kept(folder: Path, foreign: Iterable[str], warn: Callable[[str], None]) -> None:
    names = list(foreign)
    if names:
        warn(f"{folder}: not sent, as it is not of the result: {first_names(names)}")


# What a record says of which result it is, and what a push sends beside it.
_OF_RUN = (CARD, *run_folder.FILE_NAMES, *run_folder.RESULTS)
KINDS_OF_RECORDS = {
    NAME: RecordKind(
        identity=("spec", "source", "words", "sentences", "encoding", "options", "policies", "plan"),
        words={"plan": OTHER_PLAN},
        own=(CARD, LEXICON, f"{SPEC_FILES}/*", "data*/*-of-*.parquet"),
    ),
    RUN: RecordKind(
        identity=("settings", "objective", "seed", "steps", "fingerprint"),
        words={"fingerprint": "its settings or its data are others"},
        own=_OF_RUN,
    ),
    STUDY: RecordKind(
        identity=("study", "factors", "text", "tokenizers", "cells"),
        words={"cells": "its cells are others", "tokenizers": "its tokenizers are others"},
        own=(CARD, f"{REPORT}/*", *(f"runs/*/{name}" for name in _OF_RUN)),
    ),
}
