"""What commands that read a source and run over it have in common: options, progress, and the printed result."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from derivlang.engine.make import Events, Options
    from derivlang.sources.find import Request

Command = TypeVar("Command", bound=Callable[..., Any])


@contextmanager
def ends_well(how: str = "") -> Iterator[None]:
    """Heed a request to end (SIGTERM: a cluster's, or a study's to its cells) as Ctrl-C, with all left in order.

    how: what goes on, where that is not the same command.
    """

    def stop(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(how) from None
    finally:
        signal.signal(signal.SIGTERM, before)


_FOUND = (
    click.option(
        "--data-dir", type=click.Path(path_type=Path), help="Where corpora lie; else $DERIVLANG_DATA, then the hub."
    ),
    click.option("--words", type=click.Choice(["spacy", "unicode", "space"]), help="How raw text becomes words."),
    click.option("--lang", help="Language of raw text, for spaCy's tokenizer.  [default: the source's]"),
    click.option("--encoding", default="utf-8", show_default=True, help="Of text files."),
    click.option("--text-column", multiple=True, help="A column of raw text, where names do not tell."),
    click.option("--word-column", multiple=True, help="A column of word lists, where names do not tell."),
)
_SOURCE = (
    *_FOUND,
    click.option("--splits", help="Only these, e.g. train,test.  [default: all that are found]"),
    click.option("--limit", type=click.IntRange(1), help="At most so many documents a split."),
    click.option(
        "--sentences",
        type=click.Choice(["marks", "period", "unit"]),
        default="marks",
        show_default=True,
        help="Where sentences end.",
    ),
    click.option(
        "--entities",
        type=click.Choice(["split", "drop", "atomic"]),
        default="split",
        show_default=True,
        help="Entities that an order takes apart.",
    ),
    click.option(
        "--answers",
        type=click.Choice(["split", "drop", "atomic"]),
        default="split",
        show_default=True,
        help="Answers that an order takes apart; split keeps the longest run.",
    ),
    click.option(
        "--mwt",
        type=click.Choice(["free", "atomic"]),
        default="free",
        show_default=True,
        help="Multiword tokens: their words move freely, or as one.",
    ),
    click.option("--repair-tags", is_flag=True, help="Repair ill-formed BIO tags and count them."),
)
_RUN = (
    click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes."),
    click.option("--engine", default="local", show_default=True, help="local, or dask:ADDRESS."),
    click.option(
        "--shard-tokens", type=int, default=20_000_000, show_default=True, help="About so many words a shard."
    ),
    click.option("--force", is_flag=True, help="Replace a set that another plan made in this folder."),
    click.option(
        "--parser", help="What finds the trees that syn needs: english (bundled), stanza, spacy:NAME, a folder."
    ),
    click.option(
        "--parses",
        type=click.Path(path_type=Path),
        help="Where parses are kept.  [default: $DERIVLANG_PARSES, then the user's cache]",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
)


def find_options(command: Command) -> Command:
    """Where a source lies and what its text is, for commands that make no set."""
    return _with(_FOUND, command)


def source_options(command: Command) -> Command:
    """Where a source lies and how it is read."""
    return _with(_SOURCE, command)


def run_options(command: Command) -> Command:
    """How a run goes."""
    return _with(_RUN, command)


def _with(options: tuple[Callable[[Command], Command], ...], command: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def request_of(source: str, options: dict[str, Any]) -> Request:
    from derivlang.sources.find import Request

    return Request(
        source,
        options["data_dir"],
        options["words"],
        options["lang"],
        options["encoding"],
        tuple(options["word_column"]),
        tuple(options["text_column"]),
    )


def settings_of(out: Path, options: dict[str, Any], **more: Any) -> Options:
    from derivlang.core.batch import Policies
    from derivlang.engine.make import Options

    return Options(
        out=out,
        splits=names(options["splits"]),
        workers=options["workers"],
        engine=options["engine"],
        shard_tokens=options["shard_tokens"],
        limit=options["limit"],
        rule=options["sentences"],
        policies=Policies(options["entities"], options["answers"], options["mwt"]),
        repair_tags=options["repair_tags"],
        force=options["force"],
        parser=options["parser"],
        parses=options["parses"],
        **more,
    )


def names(text: str | None) -> tuple[str, ...]:
    """The names of a list with commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip()) if text else ()


def show(result: dict[str, Any], as_json: bool) -> None:
    """What a run has made."""
    if as_json:
        click.echo(json.dumps(result, ensure_ascii=False))
        return
    for name, entry in result["splits"].items():
        click.echo(
            f"{name:<11}{entry['documents']:>12,} documents {entry['sentences']:>12,} sentences "
            f"{entry['tokens']:>13,} tokens"
        )
    for reason, count in {**result["changed"], **result["dropped"]}.items():
        click.echo(f"{reason}: {count:,}")
    for name, entry in _entities(Path(result["out"])).items():
        click.echo(f"{name}: {entry['broken_percent']} % of {entry['entities']:,} entities taken apart")
    click.echo(
        f"{result['out']}{os.sep}  in {result['seconds']:.1f} s, {result['tokens_per_second']:,} tokens a second"
    )


def _entities(folder: Path) -> dict[str, Any]:
    """What the manifest says of entities; `--json` has a fixed form, which holds their counts alone."""
    path = folder / "derivlang.json"
    found: dict[str, Any] = json.loads(path.read_text("utf-8")).get("entities", {}) if path.exists() else {}
    return found


class Bar:
    """A bar on stderr, where that is a terminal; anew with each `start`. shown: False for none at all."""

    def __init__(self, *, shown: bool = True) -> None:
        self._bar: Any = None
        self.shown = shown and sys.stderr.isatty()

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def start(self, total: int | None, *, what: str | None = None, unit: str = "it") -> None:
        """total: None where it is not known."""
        self.close()
        if self.shown:
            from tqdm import tqdm

            self._bar = tqdm(total=total, desc=what, unit=unit, file=sys.stderr)

    def step(self, n: int = 1, **shown: str) -> None:
        """n further ones are done; shown: what stands after the bar."""
        if self._bar is not None:
            if shown:
                self._bar.set_postfix(shown, refresh=False)
            self._bar.update(n)

    def say(self, what: str) -> None:
        """A line above the bar."""
        if self.shown:
            click.echo(what, err=True)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def events(bar: Bar) -> Events:
    """What a run over shards tells: a bar where there is more than one."""
    from derivlang.engine.make import Events

    def start(tasks: int) -> None:
        if tasks > 1:
            bar.start(tasks, unit="shard")

    return Events(warn, start, lambda result: bar.step())


def warn(message: str) -> None:
    click.echo(f"derivlang: warning: {message}", err=True)
