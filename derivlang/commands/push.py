"""`push`: a set, a run or a study on the Hugging Face hub."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from derivlang.commands.command import Command
from derivlang.formats.places import PathLike, located
from derivlang.store.settings import PushOptions


@dataclass(frozen=True, eq=False, repr=False)
class Push(Command[dict[str, Any]], PushOptions):
    """Send a derived set, a run or a study to a repository of the Hugging Face hub.

    A set goes to a dataset repository, a run or a study to a model repository, which is made unless it is there. Files
    are checked against their hashes first. Only files of the result are sent, and none that the hub has already. What
    an earlier push has left there is removed; other files stay. A repository of another result, or of anything else, is
    refused without --force. All files come in one commit (above 1,000 in several, the record last), so an interrupted
    push is never taken for a whole result; the same command goes on.

    The token comes from `hf auth login` or HF_TOKEN.

    \b
    derivlang push OUT my-name/demo-inverted --dry-run
    """

    result: PathLike
    repository: str

    def __call__(self) -> dict[str, Any]:
        """Return {"out", "kind", "repository", "revision", "url", "files", "commit", "sent", "removed"}: files has the
        bytes of each file by its name, the last three are the last commit and numbers of files, and null of a dry
        run."""
        from derivlang.studies.push import push

        return push(located(self.result), self.repository, self.part(PushOptions))
