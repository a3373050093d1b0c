"""What commands that read a source and run over it have in common: options, progress, and the printed result."""

from __future__ import annotations

import glob
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from derivlang.cli.counts import sentences, templates_of
from derivlang.cli.dependent import option
from derivlang.cli.headings import under
from derivlang.cli.messages import echo, is_quiet, say, warn
from derivlang.cli.settings import settings_options
from derivlang.cli.types import SpecOption
from derivlang.core.dependencies import OptionNeeds
from derivlang.core.errors import UsageError
from derivlang.core.policies import Policies
from derivlang.core.settings import declared, given
from derivlang.display.bar import ProgressBar
from derivlang.engine.options import MakeOptions
from derivlang.formats.places import located
from derivlang.formats.progress import LOOKING, Unit
from derivlang.sources.request import SourceRequest

if TYPE_CHECKING:
    from derivlang.engine.events import Events
    from derivlang.formats.progress import Unit

Command = TypeVar("Command", bound=Callable[..., Any])


_SPLITS = settings_options(MakeOptions, only=("splits", "limit"))
_LABELS = (
    settings_options(MakeOptions, only=("sentences",)),
    settings_options(Policies),
    settings_options(MakeOptions, only=("repair_tags",)),
)
# Only `make` takes a lexicon and columns. All others of a run, so that a new field is an option without a line here.
_NOT_RUN = ("splits", "limit", "sentences", "repair_tags", "lexicon", "columns")


def typed_flags(*names: str) -> Iterator[str]:
    """Yield the options of the running command that the user gave, of these parameters."""
    context = click.get_current_context()
    for parameter in context.command.params:
        if parameter.name in names and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
            yield next(option for option in parameter.opts if option.startswith("--"))


def refuse_given(why: str, *names: str) -> None:
    """Raise UsageError for an option of the running command that the user gave, if it is one of these parameters."""
    for flag in typed_flags(*names):
        raise UsageError(why, where=flag, fix=f"leave {flag} out", id="unused-option")


def warn_of_data_dir(source: str) -> None:
    """Warn of a given --data-dir if the source is a path or a set of the hub."""
    from derivlang.sources.named import SOURCES, split_name

    if split_name(source)[0] not in SOURCES and (source.startswith("hub:") or os.path.lexists(source)):
        for flag in typed_flags("data_dir"):
            warn(f"only a named source is looked up in a folder of corpora, so {flag} has no effect on {source}")


def spec_option(help: str, **facts: Any) -> Callable[[Command], Command]:
    """`--t`, also written `-t` or `--transform`. facts: as of `option`."""
    return option(cls=SpecOption, help=help, **facts)


def data_dir_option(command: Command) -> Command:
    """`--data-dir`, for commands that take no other option of a source."""
    return settings_options(SourceRequest, only=("data_dir",))(command)


def parser_options(command: Command) -> Command:
    """`--parser` and `--parses`."""
    return settings_options(MakeOptions, only=("parser", "parses"))(command)


def find_options(command: Command) -> Command:
    """Where a source lies and what its text is, for commands that make no set."""
    return under("Source", settings_options(SourceRequest))(command)


def dictionary_source_options(command: Command) -> Command:
    """As `find_options`, for `dict`, whose --format is the format of the dictionary."""
    return under("Source", settings_options(SourceRequest, without=("format",)))(command)


def text_options(command: Command) -> Command:
    """How a text or a file is read, for commands that take one beside derived sets."""
    needs = dict.fromkeys(declared(SourceRequest), OptionNeeds(only_with="--t"))
    return under("Text or file", settings_options(SourceRequest, without=("data_dir",), needs=needs))(command)


def source_options(command: Command) -> Command:
    """Where a source lies and how it is read."""
    return under("Source", settings_options(SourceRequest), _SPLITS)(under("Sentences and labels", *_LABELS)(command))


def run_options(needs: Mapping[str, OptionNeeds] | None = None) -> Callable[[Command], Command]:
    """How a run goes. needs: as of `settings_options`."""

    def add(command: Command) -> Command:
        command = option("--json", "as_json", is_flag=True, help="Print the result as JSON.")(command)
        return under("Run", settings_options(MakeOptions, without=_NOT_RUN, needs=needs))(command)

    return add


def request_of(source: str, options: dict[str, Any]) -> SourceRequest:
    """Return the request for a source, from the options of `find_options`."""
    return SourceRequest(source, **given(SourceRequest, options))


def settings_of(out: Path, options: dict[str, Any]) -> MakeOptions:
    """Return the options of `make` or `parse` from the command line's."""
    return MakeOptions(out=out, policies=Policies(**given(Policies, options)), **given(MakeOptions, options))


STDOUT = Path("-")


def place_of(out: Path | str) -> str:
    """An output file as a message calls it."""
    return "standard output" if str(out) == str(STDOUT) else str(out)


def told(text: str, *, as_json: bool, out: Path) -> None:
    """Print what a command that writes one file has done: JSON on stdout unless the file is there, talk on stderr."""
    echo(text, err=not as_json or out == STDOUT)


def run_and_show(
    run: Callable[[Events], dict[str, Any]], *, as_json: bool, begins: str = "", timed: bool = True
) -> None:
    """Run `make` or `parse` with a progress bar, and print the result: its speed, too, unless the set was complete.

    begins: what is said once the source is found. timed: whether the speed is printed at all.
    """
    from derivlang.engine.events import Events

    earlier: list[Path] = []

    def note_earlier(out: Path) -> None:
        earlier.append(out)
        complete(out)

    with Bar(begins=begins):
        result = run(Events(warn, found=note_earlier))
    _show(result, as_json, timed=timed and not earlier)


def _show(result: dict[str, Any], as_json: bool, *, timed: bool) -> None:
    if as_json:
        echo(json.dumps(result, ensure_ascii=False))
        return
    from derivlang.core.schema import Schema
    from derivlang.store.manifest import counts_of

    for name, entry in result["splits"].items():
        counts = counts_of(entry, result["document"])
        echo(f"{name:<11}" + " ".join(f"{count:>12,} {noun}" for noun, count in counts.items()))
    manifest = _manifest(located(result["out"]))
    templates = templates_of(Schema.from_json(manifest["schema"]).layer_fields if manifest else ())
    for line in sentences({**result["changed"], **result["dropped"]}, templates):
        echo(line)
    for name, entry in manifest.get("entities", {}).items():
        entities = "entity was" if entry["entities"] == 1 else "entities were"
        echo(f"{name}: {entry['broken_percent']} % of {entry['entities']:,} {entities} split by the reordering")
    speed = f"  in {result['seconds']:.1f} s, {result['tokens_per_second']:,} tokens per second" if timed else ""
    echo(f"{result['out']}{os.sep}{speed}")


def _manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest, for what the fixed form of `--json` leaves out; {} if the result is not a derived set."""
    path = folder / "derivlang.json"
    manifest: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return manifest


class Bar(ProgressBar):
    """A progress bar on stderr, if that is a terminal, for each stage of a command's work.

    shown: False for no bars at all. begins: what is said when the input has been checked, so that a refused command
    does not seem to write anything: at the first stage after LOOKING, at `begin`, or at the end of the block.
    """

    def __init__(self, *, shown: bool = True, begins: str = "") -> None:
        super().__init__(shown=shown and sys.stderr.isatty() and not is_quiet())
        self._begins = begins

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        if error[0] is None:
            self.begin()

    @contextmanager
    def stage(self, what: str, unit: Unit | None = "bytes", total: int | None = None) -> Iterator[None]:
        """Say `begins`, and show a bar that follows the work of the block."""
        self._close()
        if what != LOOKING:
            self.begin()
        with super().stage(what, unit, total):
            yield

    def begin(self) -> None:
        """Say `begins`, unless it has been said: everything is checked, and the work begins."""
        if self._begins:
            say(self._begins)
            self._begins = ""

    def complete(self, out: Path) -> None:
        """Say that the folder or file is complete, and nothing of what would begin."""
        self._begins = ""
        complete(out)


def set_size(derived: Path, split: str | None = None) -> int | None:
    """Bytes of the shards of a derived set, or of a split of it; None if there are none."""
    try:
        return sum(path.stat().st_size for path in derived.glob(f"data/{glob.escape(split or '')}*.parquet")) or None
    except OSError:
        return None


def events() -> Events:
    """Return the events of a run, as lines on stderr."""
    from derivlang.engine.events import Events

    return Events(warn, found=complete)


def complete(out: Path) -> None:
    """Say that an earlier run of the same command has made this folder or file."""
    say(f"{out}{'' if out.is_file() else os.sep} is already complete: nothing to do")
