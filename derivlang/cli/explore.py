"""`derivlang explore`: a local page on which one sees what transforms do."""

from __future__ import annotations

import threading
from pathlib import Path

import click

from derivlang.cli.dependent import option
from derivlang.cli.messages import say
from derivlang.cli.types import SET, WholeNumber


@click.command("explore")
@click.argument("derived", type=SET, required=False, metavar="[DERIVED]")
@option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to serve on; 0.0.0.0 for the network, whose visitors cannot name files.",
)
@option("--port", type=WholeNumber(1, 65535), help="Port to serve on.  [default: the first free one from 7860]")
@option("--open/--no-open", "browse", default=True, show_default=True, help="Open the page in a browser.")
def command(derived: Path | None, host: str, port: int | None, browse: bool) -> None:
    """Open a page to try transforms on a sentence, and to look at the rows and statistics of DERIVED.

    Type or pick a sentence, choose transforms and their parameters or type a spec, and see the words move; the page
    gives the spec and the command to copy. It is served by this machine and loads nothing from elsewhere. Ctrl-C ends
    it. Needs `pip install "derivlang[explore]"`.

    \b
    derivlang explore OUT
    derivlang explore --no-open --port 7860
    """
    from derivlang.explore.app import serve

    page, address = serve(derived, host=host, port=port, browse=browse)
    say(f"serving {address} (Ctrl-C ends it)")
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        pass
    finally:
        page.close(verbose=False)
