"""`derivlang make`: from a source to a derived set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from derivlang.cli.generated import command_line, with_bar
from derivlang.cli.messages import say
from derivlang.cli.options import show_set
from derivlang.cli.types import source_argument
from derivlang.commands.sets import MakeSet, seeded_pipeline
from derivlang.core.messages import in_shell

if TYPE_CHECKING:
    from derivlang.commands.results import DerivedSet


def _run(asked: MakeSet) -> DerivedSet:
    from derivlang.store.manifest import LEXICON

    made: DerivedSet = with_bar(asked)
    show_set(asked, made)
    if asked.lexicon is None and seeded_pipeline(asked.spec, asked.seed).needs_counts():
        say(
            f"the lexicon was fitted on the training split of this source, or its first; for other sources of this "
            f"language give "
            f"--lexicon {in_shell(made.path / LEXICON)} (`derivlang verify {in_shell(made.path)} OTHER` "
            "compares two sets)"
        )
    return made


command = command_line(MakeSet, "make", arguments=[source_argument()], run=_run)
