"""Send a set or a run to a repository of the Hugging Face hub: its files, checked, and nothing else.

    set      card, lexicon, copies of the files of the spec, shards                                derivlang.json
    run      model, tokenizers, dictionary, log, results of evaluations; README.md if there is one    run.json

The last column is the record by which the result is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from glob import escape
from pathlib import Path
from typing import Any, Literal

from derivlang.core.errors import StoreError, UsageError
from derivlang.core.messages import first_names, in_shell, warn
from derivlang.evaluation.collect import files_of_run, verify_run
from derivlang.evaluation.plan import STUDY
from derivlang.formats.places import is_remote
from derivlang.formats.spec_paths import FOLDER as SPEC_FILES
from derivlang.store.folders import split_files
from derivlang.store.hub_push import MAIN, HubPush, RecordKind, check_repository, page_of
from derivlang.store.manifest import CARD, LEXICON, NAME, Derived
from derivlang.store.set_plan import OTHER_PLAN
from derivlang.store.settings import PushOptions
from derivlang.store.verify import damaged_shards, foreign_files, state_of_card
from derivlang.training import checkpoint, run_folder
from derivlang.training.run_folder import DATA, RUN, read

_KEPT_HERE = (f"{DATA}/", f"{checkpoint.FOLDER}/", "wandb/")  # of a run, but of no use without its training
_FIX = "`derivlang verify` lists all that is wrong; nothing was sent"


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
    is_run = (folder / RUN).exists()
    if not is_run and (folder / STUDY).exists():
        fix = (
            f"push its runs one by one, {folder}/runs/CELL, or send all of it: hf upload {in_shell(repository, folder)}"
        )
        raise UsageError("a study is not sent as one", where=str(folder), fix=fix, id="usage")
    files = (_of_run if is_run else _of_set)(folder, options, warn)
    for name, path in files.items():
        if path.is_symlink():  # perhaps to something private
            fix = "put a copy of the file in its place; nothing was sent"
            raise StoreError("is a link, so it is not sent", where=str(folder / name), fix=fix, id="linked-file")
    repo_type: Literal["dataset", "model"] = "model" if is_run else "dataset"
    sent = {"commit": None, "sent": None, "removed": None}
    if not options.dry_run:
        sent = HubPush(
            repository=repository,
            repo_type=repo_type,
            record=RUN if is_run else NAME,
            kinds=KINDS_OF_RECORDS,
            options=options,
        ).send(folder, list(files), warn)
    return {
        "out": str(folder),
        "kind": "run" if is_run else "set",
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
    for one in verify_run(run)["problems"]:
        raise StoreError(one["what"], where=str(run / one["file"]), fix=_FIX, id="damaged")
    names = files_of_run(run, checkpoints=options.checkpoints)
    if (run / CARD).is_file():
        names = [CARD, *names]
    else:
        warn(f"{run} has no {CARD}, so its page on the hub will say nothing of the run")
    others = split_files(run, list(map(escape, names)))[1]
    _warn_of_kept(run, (name for name in others if name[0] != "." and name not in _KEPT_HERE), warn)
    return {name: run / name for name in names}


def _warn_of_kept(folder: Path, foreign: Iterable[str], warn: Callable[[str], None]) -> None:
    names = list(foreign)
    if names:
        warn(f"{folder}: not sent, as it is not of the result: {first_names(names)}")


# What a record says of which result it is, and what a push sends beside it.
KINDS_OF_RECORDS = {
    NAME: RecordKind(
        identity=("spec", "source", "words", "sentences", "encoding", "options", "policies", "plan"),
        words={"plan": OTHER_PLAN},
        own=(CARD, LEXICON, f"{SPEC_FILES}/*", "data*/*-of-*.parquet"),
    ),
    RUN: RecordKind(
        identity=("settings", "objective", "seed", "steps", "fingerprint"),
        words={"fingerprint": "its settings or its data are others"},
        own=(CARD, *run_folder.FILE_NAMES, *run_folder.RESULTS),
    ),
}
