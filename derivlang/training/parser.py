"""Train a parser on a treebank, score it, and write its folder.

treebank  ->  read and hashed  ->  fit (parsing/training)  ->  8 bits  ->  scored  ->  model.npz, model.json

Its model card records how it was trained, and so whether it may be kept:

{"trained_on": {"a.conllu": "3f…"}, "settings": {"seed": 1, …}, …}
    ->  {"language": "en", "seed": 1, …, "files": [{"name": "a.conllu", "sha256": "3f…"}], …}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derivlang.core.dependencies import require
from derivlang.core.errors import DataError, StoreError, UsageError, parse_errors
from derivlang.formats.inspection import FileStamp, unchanged
from derivlang.formats.progress import stage
from derivlang.parsing.bundled import ModelParser
from derivlang.parsing.inference import Network
from derivlang.parsing.model import CARD, WEIGHTS, StoredModel, load_model, make_model, read_card, save_model
from derivlang.parsing.registry import find_parser, forget_parsers
from derivlang.parsing.settings import ParserOptions, ParserScoreOptions
from derivlang.parsing.training.batches import ParserConfig
from derivlang.parsing.treebank import Treebank, mask_rare, read_treebank, score
from derivlang.sources.treebank import files_of, find_treebank, names_of
from derivlang.store.artifact import ArtifactKind
from derivlang.store.disk import held
from derivlang.store.record import digest, read_record

if TYPE_CHECKING:
    from derivlang.parsing.training.fit import TrainedParser


RARE = ", rare words as <unk>"  # ends the name of further scores of the same treebank
_NEEDED = ("language", "settings", "threads", "licence", "trained_on", "scored_on")


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """The files that a parser is trained and scored on.

    files: of the treebank, by split. others: further treebanks to score. seen: all these files as they were when the
    command began. names: of the same files, as the model card has them.
    """

    files: dict[str, Path]
    others: list[Path]
    seen: dict[Path, FileStamp]
    names: dict[Path, str]

    @classmethod
    def of(cls, treebank: Path, scored: Iterable[Path], data_dir: Path | None) -> Inputs:
        """Find and hash the files. Raise DataError if one is missing."""
        files = files_of(treebank)
        others = [files_of(find_treebank(path, data_dir), "test")["test"] for path in scored]
        every = [*files.values(), *others]
        return cls(files, others, {path: FileStamp.of(path) for path in every}, names_of(every))

    @property
    def held_out(self) -> list[Path]:
        return [self.files[split] for split in ("dev", "test") if split in self.files]

    def hashes(self, paths: Iterable[Path]) -> dict[str, str]:
        """Return the hashes of some files by name, as the model card has them."""
        return {self.names[path]: self.seen[path].sha256 for path in paths}

    def trees(self) -> dict[Path, Treebank]:
        """Read all treebanks. Raise DataError for a file that cannot be read, or has changed."""
        trees = {}
        for path in [*self.files.values(), *self.others]:
            with unchanged({path: self.seen[path]}):
                trees[path] = read_treebank(path)
        return trees


def train_parser(
    treebank: Path,
    out: Path,
    options: ParserOptions,
    *,
    data_dir: Path | None = None,
    force: bool = False,
    report: Callable[[str], None] = lambda line: None,
    found: Callable[[Path], None] = lambda out: None,
) -> dict[str, Any]:
    """Train a parser, write its folder and return the model card. A parser that the same call has made is kept.

    report: called with a line for each epoch. found: called with the folder of a parser that is kept. Raise
    DerivlangError if a file cannot be read, or if the folder holds another parser or something else; nothing is written
    then.
    """
    PARSER_FOLDERS.check_free(out)  # before anything is read
    treebank = find_treebank(treebank, data_dir)
    inputs = Inputs.of(treebank, options.score, data_dir)
    config = ParserConfig(seed=options.seed, epochs=options.epochs)
    card = {
        "language": options.language,
        "name": out.name,
        "licence": options.licence,
        "trained_on": inputs.hashes([inputs.files["train"]]),
        "threads": options.threads,
        "scored_on": inputs.hashes([*inputs.held_out, *inputs.others]),
    }
    wanted = recipe_of({**card, "settings": asdict(config)})

    def write(folder: Path) -> None:
        require("train", ["torch"], what="training a parser")
        from derivlang.parsing.training.fit import fit

        trees = inputs.trees()  # all of them before the training, which takes long
        with arithmetic(options.threads), stage("training", None):
            trained = fit(trees[inputs.files["train"]], config, report)
        save_model(scored_model(trained, card, inputs, trees), folder)

    plan = digest([wanted, force])
    lock = partial(held, plan=plan, told=f"parser train {treebank}", what="a parser in this folder")
    PARSER_FOLDERS.make(out, wanted, write, found, lock, force=force)
    forget_parsers()
    return read_card(out)


def scored_model(
    trained: TrainedParser, card: Mapping[str, Any], inputs: Inputs, trees: Mapping[Path, Treebank]
) -> StoredModel:
    """Return the model of a trained parser, with its scores. card: what its card says of the inputs."""
    import torch

    whole = {**trained.card(str(card["language"])), **card, "torch": torch.__version__.partition("+")[0]}
    model = make_model(trained.weights, trained.vocabulary, whole)
    whole["scores"] = _scores(ModelParser(str(card["name"]), model, Network(model)), inputs, trees)
    return make_model(trained.weights, trained.vocabulary, whole)


def _scores(parser: ModelParser, inputs: Inputs, trees: Mapping[Path, Treebank]) -> dict[str, dict[str, float]]:
    """Return the scores by name: of dev and test, as they are and with rare words as <unk>, and of other treebanks."""
    train = trees[inputs.files["train"]]
    scores = {}
    for path in inputs.held_out:
        name = inputs.names[path]
        scores[name] = score(parser, trees[path])
        scores[name + RARE] = score(parser, mask_rare(trees[path], train))
    return scores | {inputs.names[path]: score(parser, trees[path]) for path in inputs.others}


@contextmanager
def arithmetic(threads: int) -> Iterator[None]:
    """Let torch use some threads, and take tiny numbers as 0, during the block: both are of the whole process."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(before)


def score_parser(
    parser: str, treebank: Path, options: ParserScoreOptions, *, data_dir: Path | None = None
) -> tuple[str, dict[str, Any]]:
    """Return (the name of the file that is scored, the scores).

    scores: {"words": N, "UPOS": %, "UAS": %, "LAS": %, "LAS universal": %}. Raise UsageError for a split of a file, and
    as `find_parser`; DataError for a treebank that cannot be read.
    """
    found = find_parser(parser, options.language)
    treebank = find_treebank(treebank, data_dir)
    if options.split is not None and not treebank.is_dir():
        what = "is of a folder, and TREEBANK is one file"
        raise UsageError(what, where="--split", fix="leave --split out", id="unused-option")
    split = options.split or "test"
    file = files_of(treebank, split)[split]
    bank = read_treebank(file)
    if options.unk is not None:
        bank = mask_rare(bank, read_treebank(files_of(find_treebank(options.unk, data_dir))["train"]))
    with stage("parsing", "words", len(bank.words)):
        return file.name, score(found, bank)


def recipe_of(card: Mapping[str, Any]) -> dict[str, Any]:
    """Return what distinguishes a parser from another one: its files and settings.

    score: names of the treebanks in its scores. scored_on: the same with hashes.
    """
    scored = card["scored_on"]
    return {
        "language": card["language"],
        "seed": card["settings"]["seed"],
        "epochs": card["settings"]["epochs"],
        "threads": card["threads"],
        "licence": card["licence"],
        "files": _files(card["trained_on"]),
        "score": sorted(scored),
        "scored_on": _files(dict(sorted(scored.items()))),
    }


def _files(hashes: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "sha256": digest} for name, digest in hashes.items()]


def read_recipe(folder: Path) -> dict[str, Any]:
    """Return the recipe of a folder's parser. Raise StoreError for a card that is damaged, or does not record it."""
    what = "model card of a parser"
    card = read_record(folder / CARD, what, id="parser-damaged")
    if any(name not in card for name in _NEEDED):
        told = "holds a parser whose card does not say how it was trained"
        raise StoreError(told, where=str(folder), id="output")
    with parse_errors(str(folder / CARD), what, error=StoreError, id="parser-damaged"):
        return recipe_of(card)


def _check(folder: Path) -> None:
    """Raise StoreError if the model of a folder is damaged, or does not match its card."""
    try:
        load_model(folder)
    except DataError as error:
        raise StoreError(error.what, where=error.where, id=error.id) from error


PARSER_FOLDERS = ArtifactKind(
    noun="parser",
    record=CARD,
    names=(WEIGHTS, CARD),
    read=read_recipe,
    files=lambda recipe: (WEIGHTS,),
    check=_check,
)
