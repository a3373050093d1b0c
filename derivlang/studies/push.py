"""Send a set, a run or a study to a repository of the Hugging Face hub."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from derivlang.core.errors import UsageError
from derivlang.core.messages import warn
from derivlang.formats.places import is_remote
from derivlang.store.hub_push import MAIN, HubPush, check_repository, page_of
from derivlang.store.settings import PushOptions
from derivlang.studies.parcel import KINDS_OF_RECORDS, parcel_of


def push(folder: Path, repository: str, options: PushOptions, warn: Callable[[str], None] = warn) -> dict[str, Any]:
    """Send what is in a folder, and return what `derivlang.push` returns.

    repository: owner/name. warn: called for files that are not sent or stay there, and for what the hub says of the
    card. Raise UsageError for a name that no repository can have, StoreError for a result that is unfinished or
    damaged, for a repository that holds something else, and for what the hub refuses.
    """
    check_repository(repository, options.revision)
    if is_remote(folder):
        raise UsageError(
            "a set is sent from a local folder", where=str(folder), fix="copy it from the store first", id="remote-push"
        )
    parcel = parcel_of(folder, options, warn)
    sent = {"commit": None, "sent": None, "removed": None}
    if not options.dry_run:
        sent = HubPush(
            repository=repository,
            repo_type=parcel.repo_type,
            revision=options.revision,
            record=parcel.record,
            kinds=KINDS_OF_RECORDS,
            force=options.force,
            private=options.private,
        ).send(folder, list(parcel.files), warn)
    return {
        "out": str(folder),
        "kind": parcel.kind,
        "repository": repository,
        "revision": options.revision,
        "url": page_of(repository, parcel.repo_type, options.revision),
        "files": parcel.sizes(),
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
