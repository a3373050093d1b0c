"""Train a parser on a treebank, and on a text or a teacher's trees of it; write its folder with scores.

treebank, text  ->  read and hashed  ->  fit (parsing/training)  ->  8 bits  ->  scored  ->  model.npz, model.json
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from derivlang.core.errors import UsageError
from derivlang.core.extras import require
from derivlang.engine.watch import FileStamp, unchanged
from derivlang.formats.progress import stage
from derivlang.parsing.bundled import ModelParser
from derivlang.parsing.inference import Network
from derivlang.parsing.model import StoredModel, make_model, read_card, save_model
from derivlang.parsing.read import read_text, read_treebank
from derivlang.parsing.registry import find_parser, forget_parsers
from derivlang.parsing.scores import mask_rare, score
from derivlang.parsing.settings import ParserOptions
from derivlang.parsing.training.config import ParserConfig, student
from derivlang.parsing.treebank import Text, Treebank
from derivlang.sources.treebank import files_of, find_treebank, names_of
from derivlang.store.artifact import Artifact
from derivlang.store.disk import held
from derivlang.store.record import digest
from derivlang.training.parser_folder import PARSER_FOLDERS, RARE, recipe_of

Content = TypeVar("Content")


@dataclass(frozen=True, slots=True, eq=False)
class _Inputs:
    """The files that a parser is trained and scored on.

    files: of the treebank, by split. others: further treebanks to score. seen: all these files and the text as they
    were when the command began. names: of the same files, as the model card has them.
    """

    files: dict[str, Path]
    text: Path | None
    others: list[Path]
    seen: dict[Path, FileStamp]
    names: dict[Path, str]

    @classmethod
    def of(cls, treebank: Path, options: ParserOptions, data_dir: Path | None) -> _Inputs:
        """Find and hash the files. Raise DataError if one is missing."""
        files, text = files_of(treebank), options.text
        others = [files_of(find_treebank(path, data_dir), "test")["test"] for path in options.score]
        every = [*files.values(), *others, *([] if text is None else [text])]
        return cls(files, text, others, {path: FileStamp.of(path) for path in every}, names_of(every))

    @property
    def trained_on(self) -> list[Path]:
        return [path for path in (self.files["train"], self.text) if path is not None]

    @property
    def held_out(self) -> list[Path]:
        return [self.files[split] for split in ("dev", "test") if split in self.files]

    def hashes(self, paths: Iterable[Path]) -> dict[str, str]:
        """Return the hashes of some files by name, as the model card has them."""
        return {self.names[path]: self.seen[path].sha256 for path in paths}

    def trees(self) -> dict[Path, Treebank]:
        """Read all treebanks. Raise DataError for a file that cannot be read, or has changed."""
        return {path: self._read(path, read_treebank) for path in [*self.files.values(), *self.others]}

    def words(self) -> Text | None:
        """Read the text. Raise DataError as `trees`."""
        return None if self.text is None else self._read(self.text, read_text)

    def _read(self, path: Path, read: Callable[[Path], Content]) -> Content:
        with unchanged({path: self.seen[path]}):
            return read(path)


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
    DerivlangError if a file cannot be read, if the teacher cannot teach, or if the folder holds another parser or
    something else; nothing is written then.
    """
    PARSER_FOLDERS.check_free(out)  # before anything is read
    treebank = find_treebank(treebank, data_dir)
    teacher = _teacher(options.teacher, options.language) if options.teacher else None
    inputs = _Inputs.of(treebank, options, data_dir)
    config = student(options.seed) if teacher else ParserConfig(seed=options.seed)
    if options.epochs is not None:
        config = replace(config, epochs=options.epochs)
    card = {
        "language": options.language,
        "name": out.name,
        "licence": options.licence,
        "trained_on": inputs.hashes(inputs.trained_on),
        **({"teacher": {"name": teacher.name, "fingerprint": teacher.fingerprint}} if teacher else {}),
        "threads": options.threads,
        "scored_on": inputs.hashes([*inputs.held_out, *inputs.others]),
    }
    wanted = recipe_of({**card, "settings": asdict(config)})

    def write(folder: Path) -> None:
        require("train", ["torch"], what="training a parser")
        with _arithmetic(options.threads):
            save_model(_train(inputs, config, teacher, card, report), folder)

    artifact = Artifact(
        kind=PARSER_FOLDERS,
        path=out,
        wanted=wanted,
        force=force,
    )
    plan = digest([wanted, force])
    artifact.make(write, found, lambda out: held(out, plan, f"parser train {treebank}", what="a parser in this folder"))
    forget_parsers()
    return read_card(out)


def _train(
    inputs: _Inputs,
    config: ParserConfig,
    teacher: ModelParser | None,
    card: Mapping[str, Any],
    report: Callable[[str], None],
) -> StoredModel:
    """Return the model, with its scores. card: what its card says of the inputs. report: as of `train_parser`."""
    import torch

    from derivlang.parsing.training.fit import fit

    language = str(card["language"])
    trees, text = inputs.trees(), inputs.words()  # all of them before the training, which takes long
    train = trees[inputs.files["train"]]
    dev = trees[inputs.files["dev"]] if "dev" in inputs.files else None
    if teacher:
        _check_relations(teacher, train)
    with stage("training", None):
        trained = fit(train, dev, config, text, report, teacher, language)
    whole = {**trained.card(language), **card, "torch": torch.__version__.partition("+")[0]}
    model = make_model(trained.weights, trained.vocabulary, whole)
    whole["scores"] = _scores(ModelParser(str(card["name"]), model, Network(model)), inputs, trees)
    return make_model(trained.weights, trained.vocabulary, whole)


def _scores(parser: ModelParser, inputs: _Inputs, trees: Mapping[Path, Treebank]) -> dict[str, dict[str, float]]:
    """Return the scores by name: of dev and test, as they are and with rare words as <unk>, and of other treebanks."""
    train = trees[inputs.files["train"]]
    scores = {}
    for path in inputs.held_out:
        name = inputs.names[path]
        scores[name] = score(parser, trees[path])
        scores[name + RARE] = score(parser, mask_rare(trees[path], train))
    return scores | {inputs.names[path]: score(parser, trees[path]) for path in inputs.others}


@contextmanager
def _arithmetic(threads: int) -> Iterator[None]:
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


def _teacher(name: str, language: str) -> ModelParser:
    """Return the teacher of this name. Raises UsageError parser-teacher if it is not a stored model."""
    teacher = find_parser(name, language)
    if not isinstance(teacher, ModelParser):
        raise UsageError(
            f"the parser {name!r} is not a model of derivlang, and only such a model can be a teacher",
            where="--teacher",
            fix="pass a folder made by `derivlang parser train`, or for English: english",
            id="parser-teacher",
        )
    return teacher


def _check_relations(teacher: ModelParser, bank: Treebank) -> None:
    """Raise UsageError parser-teacher if the treebank has relations that the teacher does not know without subtype."""
    known = teacher.model.relations
    unknown = [name for name in bank.relations if name not in known and name.partition(":")[0] not in known]
    if unknown:
        raise UsageError(
            f"the treebank has relations that the teacher {teacher.name!r} does not know: {', '.join(unknown)}",
            where="--teacher",
            fix="pass a teacher that was trained on this treebank",
            id="parser-teacher",
        )
