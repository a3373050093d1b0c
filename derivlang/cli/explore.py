"""`derivlang explore`: a local page on which one sees what transforms do."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

import click

from derivlang.cli.generated import command_line
from derivlang.cli.messages import say
from derivlang.cli.types import SET
from derivlang.commands.command import Command
from derivlang.core.settings import setting


@dataclass(frozen=True, eq=False, repr=False)
class _ExplorePage(Command[None]):
    """Open a page to try transforms on a sentence, and to look at the rows and statistics of DERIVED.

    Type or pick a sentence, choose transforms and their parameters or type a spec, and see the words move; the page
    gives the spec and the command to copy. It is served by this machine and loads nothing from elsewhere. Ctrl-C ends
    it. Needs `pip install "derivlang[explore]"`.

    \b
    derivlang explore OUT
    derivlang explore --no-open --port 7860
    """

    derived: Path | None = None
    host: str = setting("127.0.0.1", "Address to serve on; 0.0.0.0 for the network, whose visitors cannot name files.")
    port: int | None = setting(
        None, "Port to serve on.", minimum=1, maximum=65535, unset="the first free one from 7860"
    )
    browse: bool = setting(True, "Open the page in a browser.", option="--open", unset="open")

    def __call__(self) -> None:
        """Serve the page until Ctrl-C."""
        from derivlang.explore.app import serve

        page, address = serve(self.derived, host=self.host, port=self.port, browse=self.browse)
        say(f"serving {address} (Ctrl-C ends it)")
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            pass
        finally:
            page.close(verbose=False)


command = command_line(
    _ExplorePage, "explore", arguments=[click.Argument(["derived"], type=SET, required=False, metavar="[DERIVED]")],
    run=lambda asked: asked(), bare=True, json_help="",
)  # fmt: skip
