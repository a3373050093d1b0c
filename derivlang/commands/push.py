"""`push`: a set, a run or a study on the Hugging Face hub."""

from __future__ import annotations

from typing import Any

from derivlang.commands.shared import InFolder, PathLike, path_of
from derivlang.core.keywords import takes
from derivlang.core.settings import given
from derivlang.display.bar import ProgressBar
from derivlang.store.settings import PushOptions


@takes(PushOptions)
def push(result: InFolder | PathLike, repository: str, **options: Any) -> dict[str, Any]:
    """Send a derived set, a run or a study to a repository of the Hugging Face hub, as `derivlang push` does.

    result: as such, or its local folder. repository: owner/name; it is made unless it is there. Return {"out", "kind",
    "repository", "revision", "url", "files", "commit", "sent", "removed"}: files has the bytes of each file by its
    name, the last three are the last commit and numbers of files, and null of a dry run. Raise DerivlangError as the
    command; the same call goes on from where it stopped.
    """
    from derivlang.studies.push import push as run

    with ProgressBar():
        return run(path_of(result), repository, PushOptions(**given(PushOptions, options)))
