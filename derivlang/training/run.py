"""A run, from a source to a model: tokenizer, twin, dictionary, encoded data, training, and the folder of it all.

    DATA/tokenizer  DATA/twin  DATA/dictionary-….tsv  DATA/train-512     made once, shared by every objective of a pair
    RUN/…                                                                docs/training.md

The same command with `resume` goes on from the last checkpoint, and gives the model that an unbroken run gives. It
refuses other settings or other data.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import derivlang
from derivlang.core.errors import StoreError, UsageError
from derivlang.engine.batches import Source
from derivlang.engine.make import Events
from derivlang.lexical import dictionary as dictionaries
from derivlang.lexical import train as tokenizers
from derivlang.lexical.percent import percent
from derivlang.lexical.tokenizer import CONFIG, Tokenizer
from derivlang.lexical.tokenizer import TOKENIZER as TOKENIZER_FILE
from derivlang.lexical.twin_folder import Twin, make_twin, trans_of
from derivlang.pipeline import Pipeline
from derivlang.sources.find import Request, find
from derivlang.store.disk import alone, disk, whole_folder
from derivlang.store.export import writing
from derivlang.training import checkpoint
from derivlang.training.data import Data, prepare
from derivlang.training.dictionary import Dictionary
from derivlang.training.languages import TOKENIZER, TWIN, Languages, check_pipeline
from derivlang.training.loader import Loader
from derivlang.training.loop import Watch, train
from derivlang.training.masking import Vocabulary
from derivlang.training.model import Design, set_tie
from derivlang.training.objectives.base import Context, Objective
from derivlang.training.objectives.registry import read_objective
from derivlang.training.pairs import PairData
from derivlang.training.processes import processes
from derivlang.training.settings import Settings

FORMAT = 1
RUN, DICTIONARY = "run.json", "dictionary.tsv"
# Raised when the same settings and data would give another model.
RULE_VERSION = 1


@dataclass(frozen=True, slots=True)
class Where:
    """Where a run reads and writes. data: the folder of encoded data, or None for one in the run's. tokenizer,
    dictionary: ready ones. parser, parses: as of `make`."""

    run: Path
    data: Path | None = None
    tokenizer: Path | None = None
    dictionary: Path | None = None
    parser: str | None = None
    parses: Path | None = None


@dataclass(frozen=True, slots=True)
class Duration:
    """How long to train: steps, sub-words, or epochs over both corpora; nothing for the model's default."""

    steps: int | None = None
    tokens: int | None = None
    epochs: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """What training starts from."""

    tokenizer: Path
    twin: Path
    languages: Languages
    data: Data
    dictionary: Path
    pairs: Dictionary


@dataclass(frozen=True, slots=True)
class Talk:
    """What a caller may want to know: warnings, steps of the preparation, entries of the log."""

    warn: Callable[[str], None] = lambda message: None
    stage: Callable[[str], None] = lambda message: None
    watch: Watch = field(default_factory=Watch)


def pretrain(
    settings: Settings,
    request: Request,
    where: Where,
    *,
    duration: Duration = Duration(),
    design: Design | None = None,
    resume: bool = False,
    force: bool = False,
    talk: Talk = Talk(),
) -> dict[str, Any]:
    """Pre-train a model; the run's folder is left in a state that `resume` goes on from, whatever happens.

    Returns {"out", "steps", "tokens", "seconds", "tokens_per_second", "loss", "parts", "parameters", "fingerprint"}.
    Raises DerivlangError: an objective without what it needs, a folder that is taken, other settings or data than those
    of the run that is to go on, a loss that is no number, a full disk.
    """
    design = design or Design.read(settings.model)
    objective = read_objective(settings.objective)
    settings = replace(settings, objective=str(objective), spec=str(Pipeline.parse(settings.spec)))
    _check(settings, objective, design, duration)
    run, ranks = where.run, processes()
    main = ranks.is_main_process
    if not main:  # it says nothing, but logs and saves when the others do: they wait for each other there
        talk = Talk(watch=replace(talk.watch, progress=Watch().progress, tensorboard=None))
    with ranks.main_process_first():  # the others find what it has made
        before = _taken(run, resume=resume, force=force) if main else read_run(run)
        prepared = prepare_data(settings, request, where, talk)
        settings = replace(settings, steps=_steps(settings, duration, prepared.data))
        print_ = _fingerprint(settings, design, prepared)
        if before is not None:
            _same(before, settings, prepared, print_, run)
            if before["status"] == "done":
                return before["result"]  # type: ignore[no-any-return]
        begin = checkpoint.newest(run, talk.warn) if before is not None else None
        if begin is not None and begin.fingerprint != print_:
            raise StoreError("is of another run", where=str(begin.folder), fix="another folder", id="other-run")
        if begin is not None:
            talk.stage(f"going on from step {begin.step:,}")
            lm = begin.load_model()
            set_tie(lm, settings.tie)
        else:
            lm = design.build(
                prepared.languages.size,
                settings.seq_len,
                prepared.data.marks,
                tie=settings.tie,
                language_ids=settings.language_ids,
                seed=settings.seed,
            )
        parameters = sum({p.data_ptr(): p.numel() for p in lm.parameters()}.values())
        record = _record(settings, design, prepared, print_, parameters)
        record["reading"] = reading_of(request)
        pairs = None
        if "pairs" in objective.requires:
            reset = bool(getattr(objective, "reset", False))
            pairs = PairData.of(prepared.data, settings.parallel_rate, seed=settings.dictionary_seed, reset=reset)
            record["pairs"] = {"chosen": pairs.chosen, "dropped": pairs.dropped, "instances": pairs.n_instances}
        if main:
            if before is None:
                _clear(run)
            _begin(run, prepared, record)
    context = Context(Vocabulary.of(prepared.languages), settings.mask, prepared.pairs)

    def loader_of(rank: int, world: int) -> Loader:
        if settings.batch_size % (settings.accumulate * world):
            raise UsageError(
                f"{settings.batch_size} rows are not {settings.accumulate * world} equal parts",
                where="--batch-size",
                id="bad-value",
            )
        return Loader(
            prepared.data, objective, context, settings.seed, settings.batch_size, pairs,
            settings.accumulate, rank, world,
        )  # fmt: skip

    try:
        found = train(run, settings, lm, objective, loader_of, fingerprint=print_, begin=begin, watch=talk.watch)
    except BaseException:
        if main:
            _write(run, {**record, **_reached(run), "status": "stopped"})
        raise
    result = {
        "out": str(run),
        "steps": settings.steps,
        "tokens": found["subwords"],
        "seconds": found["seconds"],
        "tokens_per_second": round(found["subwords"] / max(found["seconds"], 1e-9)),
        "loss": found.get("loss"),
        "parts": found.get("parts", {}),
        "parameters": parameters,
        "fingerprint": print_,
    }
    if main:
        _finish(run, settings)
        done = {"step": settings.steps, "tokens": result["tokens"], "seconds": result["seconds"]}
        _write(run, {**record, **done, "status": "done", "result": result})
    return result


def prepare_data(settings: Settings, request: Request, where: Where, talk: Talk = Talk()) -> Prepared:
    """Tokenizer, twin, dictionary and encoded data; what is there already, or is being made, is taken."""
    folder = where.data or where.run / "data"
    with alone(folder):
        return _prepare(folder, settings, request, where, talk)


def _prepare(folder: Path, settings: Settings, request: Request, where: Where, talk: Talk) -> Prepared:
    pipeline = Pipeline.parse(settings.spec)
    tokenizer = where.tokenizer or folder / TOKENIZER
    if where.tokenizer is None and not tokenizer.exists():
        talk.stage("training the tokenizer")
        tokenizers.train(request, tokenizer, vocab_size=settings.vocab_size)
    found = Tokenizer.load(tokenizer)
    if found.size != settings.vocab_size and where.tokenizer is None:
        raise StoreError(
            f"has {found.size:,} entries, and {settings.vocab_size:,} are asked for",
            where=str(tokenizer),
            fix="another --data folder, or the same --vocab-size",
            id="other-tokenizer",
        )
    twin = folder / TWIN
    if not twin.exists():
        make_twin(tokenizer, settings.spec, twin)
    languages = Languages(pipeline, found, Twin.load(twin))
    recipe, wanted = languages.twin.tokenizer.recipe, str(trans_of(settings.spec))
    if recipe["of"] != found.fingerprint() or recipe["spec"] != wanted:
        other = f"of {recipe['spec']}, not {wanted}" if recipe["spec"] != wanted else "of another tokenizer"
        raise StoreError(f"is a twin {other}", where=str(twin), fix="another --data folder", id="other-twin")
    dictionary = where.dictionary or _dictionary(settings, request, folder, tokenizer, talk)
    pairs = Dictionary.read(dictionary, languages)
    talk.stage("encoding")
    split = find(request).splits[0]
    source = Source.open(
        pipeline,
        request,
        splits=(split,),
        parser=where.parser,
        parses=where.parses,
        limit=settings.limit,
        events=Events(talk.warn),
    )
    data = prepare(
        folder / f"{split}-{settings.seq_len}{'-stream' if settings.packing == 'stream' else ''}",
        source,
        languages,
        split=split,
        seq_len=settings.seq_len,
        limit=settings.limit,
        packing=settings.packing,  # type: ignore[arg-type]
    )
    return Prepared(tokenizer, twin, languages, data, dictionary, pairs)


def read_run(folder: Path) -> dict[str, Any]:
    """`run.json`; StoreError where there is none, or none that this version can read."""
    path = folder / RUN
    try:
        record: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if record["format"] != FORMAT:
            raise ValueError(f"format {record['format']}, but this version reads {FORMAT}")
        _ = record["status"], record["settings"], record["fingerprint"]
    except FileNotFoundError:
        raise StoreError(
            f"is no run: there is no {RUN}", where=str(folder), fix="make one: derivlang pretrain … -o DIR", id="no-run"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"cannot be read: {error}", where=str(path), id="run") from None
    return record


def reading_of(request: Request) -> dict[str, Any]:
    """How a source's text is read, as run.json keeps it: all of a request but its name and place."""
    return {name: value for name, value in asdict(request).items() if name not in ("source", "data_dir")}


def _check(settings: Settings, objective: Objective, design: Design, duration: Duration) -> None:
    """UsageError for what can be known before anything is made."""
    check_pipeline(Pipeline.parse(settings.spec))
    _given(duration)
    if settings.language_ids and not design.token_types:
        raise UsageError(
            f"the model {settings.model} ({design.type}) cannot be told languages: it has no token types",
            where="--language-ids",
            fix="take a RoBERTa or BERT, or leave it out",
            id="no-token-types",
        )
    if "language-ids" in objective.requires and not settings.language_ids:
        raise UsageError(
            f"{objective} needs language ids",
            where="--objective",
            fix="a model with token types (roberta-8), with --language-ids",
            id="needs-language-ids",
        )


def _dictionary(settings: Settings, request: Request, folder: Path, tokenizer: Path, talk: Talk) -> Path:
    """The dictionary of this coverage, made where it is not there: the same file for every objective."""
    name = f"dictionary-{settings.coverage}-{settings.dictionary_by}-{settings.dictionary_seed}.tsv"
    path = folder / name
    if not path.exists():
        talk.stage("making the dictionary")
        plain = replace(trans_of(settings.spec), overlap=0)  # an overlap keeps words; entries have twins all the same
        options = dictionaries.Options(
            path,
            coverage=percent(settings.coverage, "--dict-coverage"),
            by=settings.dictionary_by,  # type: ignore[arg-type]
            level="token",
            tokenizer=tokenizer,
            seed=settings.dictionary_seed,
        )
        dictionaries.make_dictionary(str(plain), request, options, talk.warn)
    return path


def _reached(run: Path) -> dict[str, Any]:
    """Where a run that has stopped would go on, for its record."""
    try:
        last = checkpoint.newest(run, lambda message: None)
    except StoreError:
        last = None
    return {} if last is None else {"step": last.step, "tokens": last.subwords, "seconds": last.seconds}


def _given(duration: Duration) -> None:
    """UsageError for a duration that is none."""
    given = {f"--{name}": value for name, value in asdict(duration).items() if value is not None}
    if len(given) > 1:
        raise UsageError("give one of --steps, --tokens and --epochs", where=" and ".join(given), id="duration")
    for name, value in given.items():
        if not 0 < value < math.inf:
            raise UsageError(f"{value} must be above 0", where=name, id="bad-value")


def _steps(settings: Settings, duration: Duration, data: Data) -> int:
    """Steps of the whole run."""
    if duration.tokens is not None:
        mean = (data.n_subwords + len(data.pieces) - 1 + data.n_instances) / data.n_instances
        return max(1, round(duration.tokens / (mean * settings.batch_size)))
    if duration.epochs is not None:
        return max(1, round(duration.epochs * 2 * data.n_instances / settings.batch_size))
    return duration.steps or settings.steps


def _fingerprint(settings: Settings, design: Design, prepared: Prepared) -> str:
    """16 hex digits of all that the model depends on."""
    parts = (
        settings.to_json(),
        {"type": design.type, "fields": dict(design.fields), "std": design.embedding_std},
        prepared.data.fingerprint,
        prepared.pairs.sha256,
        RULE_VERSION,
    )
    return sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _taken(run: Path, *, resume: bool, force: bool) -> dict[str, Any] | None:
    """run.json of the run that is to go on, or None for a new one; StoreError where the folder is taken."""
    if not (run / RUN).exists() and not (run / checkpoint.FOLDER).exists():
        if run.exists() and not run.is_dir():
            raise StoreError("is a file", where=str(run), fix="name a folder", id="output")
        return None
    if resume:
        return read_run(run)
    if force:
        return None
    raise StoreError(
        "holds a run already", where=str(run), fix="--resume to go on, another folder, or --force", id="run-exists"
    )


def _clear(run: Path) -> None:
    """Without what an earlier run left; its data stays."""
    with disk(run):
        if (run / RUN).exists() or (run / checkpoint.FOLDER).exists():
            for name in (checkpoint.FOLDER, checkpoint.MODEL, "evaluation", TOKENIZER, TWIN):
                shutil.rmtree(run / name, ignore_errors=True)
            for path in {*run.glob("*.json"), *run.glob("*.jsonl"), *run.glob(f"{DICTIONARY}*")}:
                path.unlink()


def _same(before: dict[str, Any], settings: Settings, prepared: Prepared, print_: str, run: Path) -> None:
    """StoreError where a run that is to go on had other settings or data."""
    if before["fingerprint"] == print_:
        return
    now = settings.to_json()
    other = [name for name, value in now.items() if before["settings"].get(name) != value]
    if other:
        name = other[0]
        what = f"{name.replace('_', '-')} was {before['settings'].get(name)!r}, and is now {now[name]!r}"
    elif before.get("data") != prepared.data.fingerprint:
        what = f"its data was {before.get('data')}, and is now {prepared.data.fingerprint}"
    elif before.get("dictionary", {}).get("sha256") != prepared.pairs.sha256:
        what = f"its dictionary was another than {prepared.dictionary}"
    else:
        what = f"the description of the model {settings.model}, or derivlang's rules, were changed since"
    raise StoreError(
        f"is another run: {what}", where=str(run), fix="the same command as before, or another folder", id="other-run"
    )


def _record(settings: Settings, design: Design, prepared: Prepared, print_: str, parameters: int) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "derivlang": derivlang.__version__,
        "status": "training",
        "source": settings.source,
        "spec": settings.spec,
        "objective": settings.objective,
        "seed": settings.seed,
        "steps": settings.steps,
        "step": 0,
        "tokens": 0,
        "seconds": 0.0,
        "batch_size": settings.batch_size,
        "seq_len": settings.seq_len,
        "model": {
            "name": design.name,
            "type": design.type,
            "parameters": parameters,
            "tie": settings.tie,
            "language_ids": settings.language_ids,
        },
        "dictionary": {
            "coverage": settings.coverage,
            "by": settings.dictionary_by,
            "seed": settings.dictionary_seed,
            "pairs": len(prepared.pairs.pairs),
            "sha256": prepared.pairs.sha256,
        },
        "parallel": settings.parallel,
        "data": prepared.data.fingerprint,
        "fingerprint": print_,
        "settings": settings.to_json(),
    }


def _begin(run: Path, prepared: Prepared, record: dict[str, Any]) -> None:
    """The folder, with all that reading its model needs."""
    with disk(run):
        run.mkdir(parents=True, exist_ok=True)
        for name, folder in ((TOKENIZER, prepared.tokenizer), (TWIN, prepared.twin)):
            _copy(folder, run / name)
        recipe = prepared.dictionary.with_name(prepared.dictionary.name + ".recipe.json")
        for file, name in ((prepared.dictionary, DICTIONARY), (recipe, f"{DICTIONARY}.recipe.json")):
            if file.exists() and not (run / name).exists():
                with writing(run / name) as out:
                    out.write(file.read_bytes())
    _write(run, record)


def _copy(folder: Path, out: Path) -> None:
    """A tokenizer's folder, whole or not at all; StoreError where another one has its place."""
    if not out.exists():

        def write(fresh: Path) -> None:
            shutil.copytree(folder, fresh, dirs_exist_ok=True)

        whole_folder(out, write)
    elif Tokenizer.load(out).fingerprint() != Tokenizer.load(folder).fingerprint():
        raise StoreError(
            "is there already, and of another vocabulary", where=str(out), fix="name another folder", id="output"
        )


def _write(run: Path, record: dict[str, Any]) -> None:
    with writing(run / RUN) as file:
        file.write((json.dumps(record, ensure_ascii=False, indent=1) + "\n").encode())


def _finish(run: Path, settings: Settings) -> None:
    """RUN/model: the last checkpoint's model, with the source's tokenizer, whole or not at all."""
    last = run / checkpoint.FOLDER / checkpoint.name_of(settings.steps) / checkpoint.MODEL

    def write(fresh: Path) -> None:
        shutil.copytree(last, fresh, dirs_exist_ok=True)
        for name in (TOKENIZER_FILE, CONFIG):
            shutil.copyfile(run / TOKENIZER / name, fresh / name)

    whole_folder(run / checkpoint.MODEL, write)
