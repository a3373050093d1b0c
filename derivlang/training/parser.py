"""Train a parser on a treebank, and on a text or a teacher's trees of it; write its folder with scores.

treebank, text  ->  read and hashed  ->  fit (parsing/training)  ->  8 bits  ->  scored  ->  model.npz, model.json
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from derivlang.core.errors import UsageError
from derivlang.core.extras import require
from derivlang.engine.watch import read_unchanged
from derivlang.formats.progress import stage
from derivlang.parsing.bundled import ModelParser
from derivlang.parsing.inference import Network
from derivlang.parsing.model import CARD, WEIGHTS, StoredModel, make_model, read_card, save_model
from derivlang.parsing.read import read_text, read_treebank
from derivlang.parsing.registry import find_parser, forget_parsers
from derivlang.parsing.scores import mask_rare, score
from derivlang.parsing.settings import ParserOptions
from derivlang.parsing.training.config import ParserConfig, student
from derivlang.parsing.treebank import Text, Treebank
from derivlang.sources.treebank import files_of, find_treebank, names_of
from derivlang.store.disk import held
from derivlang.store.folders import replace_folder, settle
from derivlang.store.record import digest


@dataclass(frozen=True, slots=True, eq=False)
class _Inputs:
    """What a parser is trained and scored on.

    files: of the treebank, by split. others: further treebanks to score. trees: of all these files. names: of all
    files, as the model card has them. hashes: SHA-256 of the files of the treebank and of the text.
    """

    files: dict[str, Path]
    others: list[Path]
    trees: dict[Path, Treebank]
    text: Text | None
    names: dict[Path, str]
    hashes: dict[Path, str]

    def split(self, name: str) -> Treebank | None:
        """Return the trees of a split, None if the treebank does not have it."""
        return self.trees[self.files[name]] if name in self.files else None


def train_parser(
    treebank: Path,
    out: Path,
    options: ParserOptions,
    *,
    data_dir: Path | None = None,
    force: bool = False,
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Train a parser, write its folder and return the model card.

    report: called with a line for each epoch. Raise DerivlangError if a file cannot be read, if the teacher cannot
    teach, or if the folder holds a model already; nothing is written then.
    """
    treebank = find_treebank(treebank, data_dir)
    plan = digest([treebank, asdict(options), data_dir, force])
    with held(out, plan, f"parser train {treebank}", what="a parser in this folder"):
        settle(out)
        if (out / CARD).exists() and not force:
            raise UsageError(
                "the folder already has a model", where=str(out), fix="pass another -o, or --force", id="out-exists"
            )
        require("train", ["torch"], what="training a parser")
        with _arithmetic(options.threads):
            teacher = _teacher(options.teacher, options.language) if options.teacher else None
            inputs = _read(treebank, options, data_dir)
            if teacher:
                _check_relations(teacher, inputs.trees[inputs.files["train"]])
            model = _train(inputs, options, teacher, out, report)
        names = (WEIGHTS, CARD) if (out / CARD).exists() else ()  # without a card, the folder holds no parser
        replace_folder(out, partial(save_model, model), names, record=CARD, what="parser")
    forget_parsers()
    return read_card(out)


def _read(treebank: Path, options: ParserOptions, data_dir: Path | None) -> _Inputs:
    """Read all files, before the training, which takes long."""
    files = files_of(treebank)
    hashes: dict[Path, str] = {}
    trees = {path: read_unchanged(path, read_treebank, hashes) for path in files.values()}
    others = [files_of(find_treebank(path, data_dir), "test")["test"] for path in options.score]
    trees |= {path: read_treebank(path) for path in others}
    text = None if options.text is None else read_unchanged(options.text, read_text, hashes)
    names = names_of([*files.values(), *others, *([] if options.text is None else [options.text])])
    return _Inputs(files, others, trees, text, names, hashes)


def _train(
    inputs: _Inputs,
    options: ParserOptions,
    teacher: ModelParser | None,
    out: Path,
    report: Callable[[str], None],
) -> StoredModel:
    """Return the model, with its card. report: as of `train_parser`."""
    import torch

    from derivlang.parsing.training.fit import fit

    config = student(options.seed) if teacher else ParserConfig(seed=options.seed)
    if options.epochs is not None:
        config = replace(config, epochs=options.epochs)
    train = inputs.trees[inputs.files["train"]]
    with stage("training", None):
        trained = fit(train, inputs.split("dev"), config, inputs.text, report, teacher, options.language)
    read = [path for path in (inputs.files["train"], options.text) if path is not None]
    card = {
        **trained.card(options.language),
        "name": out.name,
        "licence": options.licence,
        "trained_on": {inputs.names[path]: inputs.hashes[path] for path in read},
        **({"teacher": {"name": teacher.name, "fingerprint": teacher.fingerprint}} if teacher else {}),
        "torch": torch.__version__.partition("+")[0],
        "threads": options.threads,
    }
    model = make_model(trained.weights, trained.vocabulary, card)
    card["scores"] = _scores(ModelParser(str(out), model, Network(model)), inputs)
    return make_model(trained.weights, trained.vocabulary, card)


def _scores(parser: ModelParser, inputs: _Inputs) -> dict[str, dict[str, float]]:
    """Return the scores by name: of dev and test, as they are and with rare words as <unk>, and of other treebanks."""
    train = inputs.trees[inputs.files["train"]]
    found = {}
    for split in ("dev", "test"):
        bank = inputs.split(split)
        if bank is not None:
            name = inputs.names[inputs.files[split]]
            found[name] = score(parser, bank)
            found[f"{name}, rare words as <unk>"] = score(parser, mask_rare(bank, train))
    return found | {inputs.names[path]: score(parser, inputs.trees[path]) for path in inputs.others}


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
    """Return the teacher of this name. Raises UsageError parser-teacher if it is no stored model."""
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
