"""A Python function for each command that makes or measures something, with the same names, defaults and errors.

    made = derivlang.make("demo", "trans,inv", "twin")          made.dataset("train"), made.verify(), made.undo("back")
    run = derivlang.pretrain("demo", "trans,inv", "run", objective="align-mlm", vocab_size=300, steps=50)
    found = run.evaluate(task="pos:demo", epochs=5, lr=2e-3)    a DataFrame, as of `derivlang.scores`
    derivlang.report(run, out="report")

Outputs are named, since a notebook has no current command to name them after. A progress bar is shown in a notebook and
on a terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from derivlang.core.errors import UsageError
from derivlang.core.keywords import takes
from derivlang.core.messages import warn
from derivlang.core.policies import Policies
from derivlang.core.settings import declared, given
from derivlang.display.bar import ProgressBar
from derivlang.engine.events import Events
from derivlang.engine.options import MakeOptions
from derivlang.evaluation.finetune_settings import USUAL_REGIMES, FinetuneSettings
from derivlang.evaluation.settings import EvaluateOptions
from derivlang.pipeline import Pipeline, seeded
from derivlang.sources.request import SourceRequest
from derivlang.training.settings import Duration, LogSettings, Machine, RunPaths, TrainingSettings

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict
    from pandas import DataFrame

_REGIMES = ",".join(USUAL_REGIMES)
PathLike: TypeAlias = Path | str
Percent: TypeAlias = int | float | str | Fraction


@dataclass(frozen=True, init=False)
class _Folder:
    """Something in a folder. path: the folder, which may be given as a text."""

    path: Path

    def __init__(self, path: PathLike) -> None:
        object.__setattr__(self, "path", Path(path))


class DerivedSet(_Folder):
    """A derived set. path: its folder."""

    @property
    def manifest(self) -> dict[str, Any]:
        """What the set says of itself. Raise StoreError if the folder is no derived set."""
        from derivlang.store.manifest import read_manifest

        return read_manifest(self.path)

    def dataset(self, split: str | None = None) -> Dataset | DatasetDict:
        """Return the set, or a split of it, as `datasets.load_dataset` does."""
        import datasets

        found: Dataset | DatasetDict = datasets.load_dataset(str(self.path), split=split)
        return found

    def verify(self) -> dict[str, Any]:
        """Derive every row again and compare.

        Return {"ok", "out", "splits", "problems", "notes"}; problems has at most one entry a file. Raise StoreError if
        the folder is no derived set.
        """
        from derivlang.store.verify import verify

        with ProgressBar():
            return verify(self.path)

    @takes()
    def undo(self, out: PathLike, split: str | None = None) -> list[dict[str, Any]]:
        """Write the source back: a split to a file, or each split to a file of a folder.

        Return {"out", "rows", "format"} of each file. Raise DerivlangError as `derivlang undo`.
        """
        from derivlang.store.undo_splits import undo_to

        with ProgressBar():
            return undo_to(self.path, split, Path(out))


@takes(MakeOptions, Policies, SourceRequest)
def make(
    source: PathLike, spec: str | Pipeline, out: PathLike, *, seed: int | None = None, **options: Any
) -> DerivedSet:
    """Make a derived set, as `derivlang make` does. The same call continues one that was interrupted.

    source: a name, a file, a folder, hub:NAME or a derived set. spec: the transforms. out: the folder to write. seed:
    of transforms that state none; a pipeline states its own. Raise DerivlangError as the command; finished shards are
    kept.
    """
    from derivlang.engine.make import make as run

    if isinstance(spec, Pipeline) and seed is not None:
        raise UsageError("a pipeline states its own seeds", where="--seed", fix="leave it out", id="unused-option")
    pipeline = spec if isinstance(spec, Pipeline) else seeded(spec, seed, warn)
    settings = MakeOptions(out=Path(out), policies=Policies(**given(Policies, options)), **given(MakeOptions, options))
    with ProgressBar():
        run(pipeline, _request(source, options), settings)
    return DerivedSet(Path(out))


@takes(MakeOptions, Policies, SourceRequest, without=("parses",))
def parse(source: PathLike, out: PathLike, **options: Any) -> DerivedSet:
    """Parse a source once, for all sets that `syn` derives from it, as `derivlang parse -o` does.

    out: the folder to write, which `make` takes as its source. Raise DerivlangError as the command.
    """
    from derivlang.engine.parse import parse as run

    settings = MakeOptions(out=Path(out), policies=Policies(**given(Policies, options)), **given(MakeOptions, options))
    with ProgressBar():
        run(_request(source, options), settings, Events())
    return DerivedSet(Path(out))


@takes(SourceRequest)
def dictionary(
    source: PathLike,
    spec: str | None,
    out: PathLike,
    *,
    coverage: Percent = 100,
    by: Literal["random", "frequency", "mass", "pos"] = "random",
    level: Literal["word", "token"] = "word",
    tokenizer: PathLike | None = None,
    noise: Percent = 0,
    heldout: Percent = 0,
    seed: int = 1,
    lexicon: PathLike | None = None,
    format: Literal["muse", "tsv", "json"] | None = None,
    repair_tags: bool = False,
    force: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Write the dictionary of a language pair, as `derivlang dict` does.

    spec: None for a derived set, which has its own. coverage, noise, heldout: in percent. format: None for that of the
    file's suffix.

    Return {"out", "pairs", "types", "entries", "coverage_types", "coverage_tokens", "heldout", "noise", "spaces"}:
    numbers of lines, of vocabulary entries and of dictionary entries; percentages of types and of running words;
    numbers of held-out entries, of wrong pairs and of words with a space. Raise DerivlangError as the command; nothing
    is half-written.
    """
    from derivlang.lexical.dictionary import DictionaryOptions, make_dictionary
    from derivlang.lexical.percent import percent

    asked = DictionaryOptions(
        Path(out),
        percent(str(coverage), "--coverage"),
        by,
        level,
        None if tokenizer is None else Path(tokenizer),
        percent(str(noise), "--noise", zero=True),
        percent(str(heldout), "--heldout", zero=True, hundred=False),
        seed,
        None if lexicon is None else Path(lexicon),
        format,
        repair_tags,
        force,
    )
    with ProgressBar() as bar, bar.stage("reading"):
        return make_dictionary(spec, _request(source, options), asked)


@takes()
def pairs(
    derived: DerivedSet | PathLike,
    out: PathLike,
    *,
    format: Literal["pharaoh", "parquet", "text", "tmx"] = "parquet",
    rate: Percent = 100,
    split: str | None = None,
    seed: int = 1,
    noise: Percent = 0,
    noise_kind: Literal["links", "pairs"] = "links",
    tokenizers: tuple[PathLike, PathLike] | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Write sentence pairs of a derived set with gold links, as `derivlang pair` does.

    rate, noise: in percent. tokenizers: of the source and of the derived language, to add sub-words.

    Return {"out", "files", "pairs", "sentences", "links", "words", "noise", "spaces"}: sentences are the pairs of the
    split, noise the wrong links or pairs, spaces the words with a space; with tokenizers also "subwords". Raise
    DerivlangError as the command; nothing is half-written.
    """
    from derivlang.lexical.pairs import PairOptions, write_pairs
    from derivlang.lexical.percent import percent

    folders = None if tokenizers is None else (Path(tokenizers[0]), Path(tokenizers[1]))
    shares = percent(str(rate), "--rate"), percent(str(noise), "--noise", zero=True)
    asked = PairOptions(Path(out), format, shares[0], split, seed, shares[1], noise_kind, folders, force)
    with ProgressBar() as bar, bar.stage("pairing"):
        return write_pairs(_path(derived), asked)


@takes(SourceRequest)
def tokenizer(
    source: PathLike,
    out: PathLike,
    *,
    vocab_size: int = 40_000,
    min_frequency: int = 2,
    force: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Train a tokenizer on the words of a source, as `derivlang tokenizer train` does.

    Return the recipe of its folder, with "vocab_size", "merges", "words" and "fingerprint". A tokenizer that the same
    call has made is kept. Raise DerivlangError as the command; nothing is half-written.
    """
    from derivlang.lexical.train import train

    request = _request(source, options)
    with ProgressBar():
        return train(request, Path(out), vocab_size=vocab_size, min_frequency=min_frequency, force=force)


class Run(_Folder):
    """A pre-trained run. path: its folder."""

    @property
    def record(self) -> dict[str, Any]:
        """The content of run.json. Raise StoreError if the folder is no run, or was changed."""
        from derivlang.training.run_folder import read

        return read(self.path)

    @takes(EvaluateOptions, FinetuneSettings)
    def evaluate(
        self,
        *,
        task: str | Sequence[str] = "none",
        regime: str | Sequence[str] = _REGIMES,
        measure: str | Sequence[str] | None = None,
        step: int | None = None,
        data_dir: PathLike | None = None,
        parser: str | None = None,
        parses: PathLike | None = None,
        **options: Any,
    ) -> DataFrame:
        """Evaluate the run, as `derivlang evaluate` does, and return its scores (`derivlang.scores`).

        task, regime, measure: names, as a list or with commas. measure: None for the usual ones. step: of a checkpoint,
        None for the finished model. data_dir, parser, parses: as of `make`. A setting of fine-tuning is one value for
        all tasks, or a list with one for each. Results that are there already are kept. Raise DerivlangError as the
        command.
        """
        from derivlang.evaluation.asked import Numbers, asked_for
        from derivlang.evaluation.collect import scores
        from derivlang.evaluation.evaluate import evaluate

        usual = ",".join(EvaluateOptions().measures)
        numbers = {
            name: None if options.get(name) is None else Numbers(f"--{name.replace('_', '-')}", _several(options[name]))
            for name in declared(FinetuneSettings)
            if name != "frozen"
        }
        names = {"tasks": _commas(task), "regimes": _commas(regime), "measures": _commas(measure or usual)}
        places = {"data_dir": data_dir and Path(data_dir), "parser": parser, "parses": parses and Path(parses)}
        values = {"frozen": False, **options, **places, **numbers, **names}
        given = {*options, *({"regimes"} if regime != _REGIMES else ()), *({"measures"} if measure else ())}
        with ProgressBar():
            evaluate(self.path, asked_for(values, given, warn), step=step)
        return scores(self.path)


@takes(TrainingSettings, Duration, RunPaths, Machine, LogSettings, SourceRequest)
def pretrain(
    source: PathLike,
    spec: str,
    out: PathLike,
    *,
    resume: bool = True,
    force: bool = False,
    parser: str | None = None,
    parses: PathLike | None = None,
    **options: Any,
) -> Run:
    """Pre-train a model on a source and its derived language, as `derivlang pretrain` does.

    out: the folder of the run. resume: whether a run that is there goes on, or is kept if it is finished; it must be of
    the same settings. parser, parses: as of `make`. Raise DerivlangError as the command.
    """
    from derivlang.core.extras import require_torch

    require_torch()
    from derivlang.training.objectives.registry import read_objective
    from derivlang.training.options import check_size, settings_of, warn_of_unused
    from derivlang.training.run import Callbacks, with_tokenizer
    from derivlang.training.run import pretrain as run

    every = [one for kind in _TRAINING for one in declared(kind).values()]
    values = {one.key: None if one.is_open else one.default for one in every} | options | {"spec": spec}
    settings, model_config, log_settings = settings_of(str(source), values)
    parsed = Path(parses) if parses is not None else None
    where = RunPaths(Path(out), parser=parser, parses=parsed, **given(RunPaths, options))
    duration = Duration(values["steps"], **given(Duration, options))
    check_size(values["vocab_size"], with_tokenizer(where, settings, None).tokenizer)
    warn_of_unused(values, settings, duration, read_objective(settings.objective), warn)
    with ProgressBar() as bar:
        log = replace(log_settings, logged=lambda step, entry: bar.note(loss=f"{entry['loss']:.3f}"))
        run(
            settings,
            _request(source, options),
            where,
            duration=duration,
            model_config=model_config,
            resume=resume and not force,
            force=force,
            callbacks=Callbacks(log=log),
        )
    return Run(Path(out))


@takes()
def report(
    *runs: Run | PathLike,
    out: PathLike,
    baseline: Mapping[str, Any] | None = None,
    primary: str | None = None,
) -> Path:
    """Write the tables and figures of runs, studies or files scores.parquet, and return the path of index.html.

    baseline, primary: as of `compare`. Raise DerivlangError as `derivlang report`.
    """
    from derivlang.evaluation.collect import scores
    from derivlang.evaluation.report.write import PAGE
    from derivlang.evaluation.report.write import report as write

    with ProgressBar():
        write(scores(*map(_path, runs)), Path(out), baseline, primary)
    return Path(out) / PAGE


_TRAINING = (TrainingSettings, Duration, RunPaths, Machine, LogSettings)


def _request(source: PathLike, options: Mapping[str, Any]) -> SourceRequest:
    return SourceRequest(str(source), **given(SourceRequest, options))


def _path(one: DerivedSet | Run | PathLike) -> Path:
    return one.path if isinstance(one, DerivedSet | Run) else Path(one)


def _commas(names: str | Sequence[str]) -> str:
    return names if isinstance(names, str) else ",".join(names)


def _several(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, Sequence) else (value,)
