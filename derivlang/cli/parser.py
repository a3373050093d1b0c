"""`derivlang parser`: train, score and list parsers."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from derivlang.cli.folders import default_folder
from derivlang.cli.messages import echo, tell
from derivlang.cli.options import Bar, data_dir_option, refuse_given
from derivlang.cli.settings import settings_options
from derivlang.cli.types import COUNT, FILE, OUT_FOLDER, PATH, SEED, Group, completes
from derivlang.core.errors import DataError, DerivlangError, UsageError
from derivlang.engine.options import MakeOptions

if TYPE_CHECKING:
    from derivlang.parsing.bundled import ModelParser
    from derivlang.parsing.treebank import Text, Treebank


@click.group("parser", cls=Group, no_args_is_help=True)
def command() -> None:
    """Train, score and list parsers.

    \b
    derivlang parser ls
    """


@command.command("train", no_args_is_help=True, short_help="Train a tagger and parser on a treebank.")
@click.argument("treebank", type=PATH)
@click.option("-o", "--out", type=OUT_FOLDER, help="Folder to write.  [default: TREEBANK.parser, here]")
@click.option("--text", type=FILE, help="Running text of the language for word vectors, words separated by spaces.")
@click.option("--teacher", shell_complete=completes("parser"),
              help="Parser of derivlang; a smaller and faster one learns its trees of the text, too.")  # fmt: skip
@click.option("--language", default="en", show_default=True, help="Code of the treebank's language.")
@click.option("--seed", type=SEED, default=1, show_default=True, help="Random seed.")
@click.option("--epochs", type=COUNT, help="Number of passes over the treebank.  [default: 30, with --teacher 6]")
@click.option(
    "--score", "others", multiple=True, type=PATH, help="Another treebank to score at the end; may be repeated."
)
@click.option("--licence", default="", help="Licence of treebank and text, for the model card.")
@click.option("--threads", type=COUNT, default=1, show_default=True,
              help="Number of CPU threads; another number gives slightly different weights.")  # fmt: skip
@data_dir_option
@click.option("--force", is_flag=True, help="Replace a model in the folder.")
@click.option("--json", "as_json", is_flag=True, help="Print the model card as JSON.")
def train(treebank: Path, out: Path | None, as_json: bool, **options: Any) -> None:
    """Train a tagger and parser on TREEBANK and write a model of about 5 MB.

    TREEBANK is a CoNLL-U file, a folder of Universal Dependencies, or the name of such a folder (UD_English-EWT), which
    is searched for where `make` searches for pos:English-EWT.

    In a folder, *-train is the training data. *-dev is scored after each epoch. *-dev and *-test are scored at the end,
    once as they are and once with <unk> for words seen at most once in training. The scores do not influence training,
    which needs torch (pip install 'derivlang[train]') and takes half an hour on one core. The model runs without torch.

    With --teacher, the new parser is smaller and about twice as fast. It takes over the teacher's words, word vectors
    and relations, and learns from the treebank and from the trees that the teacher gives the text.

    \b
    derivlang parser train UD_English-EWT --text wiki.train.tokens --teacher english -o small --data-dir DIR
    derivlang parser train UD_English-EWT --text wiki.train.tokens --data-dir DIR
    """
    from dataclasses import replace
    from functools import partial

    from derivlang.engine.watch import read_unchanged
    from derivlang.parsing.bundled import ModelParser
    from derivlang.parsing.inference import Network
    from derivlang.parsing.model import CARD, WEIGHTS, make_model, save_model
    from derivlang.parsing.scores import mask_rare, score
    from derivlang.parsing.training.config import ParserConfig, student
    from derivlang.parsing.training.fit import fit
    from derivlang.store.disk import held
    from derivlang.store.folders import replace_folder, settle
    from derivlang.store.record import digest

    treebank = locate(treebank, options["data_dir"])
    begins = ""
    if out is None:
        out = default_folder(treebank.name, last="parser")
        begins = f"writing to {out}{os.sep}"
    context = click.get_current_context()
    told = f"parser train {treebank}"
    context.with_resource(held(out, digest(context.params), told, what="a parser in this folder"))
    settle(out)
    if (out / CARD).exists() and not options["force"]:
        raise UsageError(
            "the folder already has a model", where=str(out), fix="pass another -o, or --force", id="out-exists"
        )
    torch = _torch()
    torch.set_num_threads(options["threads"])
    torch.set_flush_denormal(True)
    context.call_on_close(lambda: torch.set_flush_denormal(False))  # a setting of the whole process
    teacher = options["teacher"] and _teacher(options["teacher"], options["language"], options["text"])
    files = _files(treebank)
    hashes: dict[Path, str] = {}
    banks = {split: read_unchanged(path, read_treebank, hashes) for split, path in files.items()}
    others = [_files(locate(path, options["data_dir"]), "test")["test"] for path in options["others"]]
    scored = {path: read_treebank(path) for path in others}  # before the training, which takes long
    name_of = _names([*files.values(), *others, *filter(None, [options["text"]])])
    if teacher:
        _check_relations(teacher, banks["train"])
    text = options["text"] and read_unchanged(options["text"], _read_text, hashes)
    config = student(options["seed"]) if teacher else ParserConfig(seed=options["seed"])
    if options["epochs"]:
        config = replace(config, epochs=options["epochs"])
    with Bar(shown=False, begins=begins) as bar:
        bar.begin()
        trained = fit(banks["train"], banks.get("dev"), config, text, tell, teacher, options["language"])
    card = {
        **trained.card(options["language"]),
        "name": out.name,
        "licence": options["licence"],
        "trained_on": {name_of[path]: hashes[path] for path in filter(None, [files["train"], options["text"]])},
        **({"teacher": {"name": teacher.name, "fingerprint": teacher.fingerprint}} if teacher else {}),
        "torch": torch.__version__.partition("+")[0],
        "threads": options["threads"],
    }
    model = make_model(trained.weights, trained.vocabulary, card)
    parser = ModelParser(str(out), model, Network(model))
    scores: dict[str, Any] = {}
    for split in ("dev", "test"):
        if split in banks:
            name = name_of[files[split]]
            scores[name] = score(parser, banks[split])
            scores[f"{name}, rare words as <unk>"] = score(parser, mask_rare(banks[split], banks["train"]))
    for path, bank in scored.items():
        scores[name_of[path]] = score(parser, bank)
    card["scores"] = scores
    model = make_model(trained.weights, trained.vocabulary, card)
    names = (WEIGHTS, CARD) if (out / CARD).exists() else ()  # without a card, the folder holds no parser
    replace_folder(out, partial(save_model, model), names, record=CARD, what="parser")
    if as_json:
        echo(json.dumps(card, ensure_ascii=False))
        return
    for name, found in scores.items():
        echo(f"{name}: {_line(found)}")


@command.command("score", no_args_is_help=True, short_help="Score a parser on a treebank: UPOS, UAS and LAS.")
@click.argument("parser", shell_complete=completes("parser"))
@click.argument("treebank", type=PATH)
@click.option("--split", default="test", show_default=True, help="Split to score, if TREEBANK is a folder.")
@click.option("--language", default="en", show_default=True, help="Code of the treebank's language.")
@click.option(
    "--unk", type=PATH, help="Treebank that counts words: those seen there at most once are replaced by <unk>."
)
@data_dir_option
@settings_options(MakeOptions, only=("device",))
@click.option("--json", "as_json", is_flag=True, help="Print the scores as JSON.")
def score_command(
    parser: str,
    treebank: Path,
    split: str,
    language: str,
    unk: Path | None,
    data_dir: Path | None,
    device: str | None,
    as_json: bool,
) -> None:
    """Score PARSER on the words of TREEBANK: UPOS, UAS and LAS.

    TREEBANK is a CoNLL-U file, a folder of Universal Dependencies, or the name of such a folder, as UD_English-EWT,
    which is found as `make` finds pos:English-EWT.

    All words count, with punctuation. LAS compares relations in full (nsubj:pass); "LAS universal" compares them up to
    the colon, as the script of the CoNLL 2018 shared task does.

    With --device, PARSER parses the words on the CPU and on the device. Both are scored, and the share of words whose
    tags, heads and relations differ is printed.

    \b
    derivlang parser score english UD_English-EWT --data-dir DIR
    """
    from derivlang.parsing.registry import find_parser
    from derivlang.parsing.scores import compare, differences, mask_rare

    parsers = [find_parser(parser, language, where) for where in dict.fromkeys([None, device])]
    treebank = locate(treebank, data_dir)
    if not treebank.is_dir():
        refuse_given("is of a folder, and TREEBANK is one file", "split")
    files = _files(treebank, split)
    bank = read_treebank(files[split])
    if unk is not None:
        bank = mask_rare(bank, read_treebank(_files(locate(unk, data_dir))["train"]))
    with Bar() as bar, bar.stage("parsing", "words", len(bank.words) * len(parsers)):
        parses = [found.parse(bank.words, bank.types, bank.sentences) for found in parsers]
    scores = [compare(found, bank) for found in parses]
    if device is None:
        echo(json.dumps(scores[0]) if as_json else f"{files[split].name}: {_line(scores[0])}")
        return
    from derivlang.parsing.device import record

    ran, differ = record(device), differences(*parses)
    if as_json:
        echo(json.dumps({**scores[0], "device": {**ran, **scores[1], "differ": differ}}))
        return
    name = f"{ran['device']}, torch {ran['torch']}"
    echo(f"{files[split].name}: {_line(scores[0])}")
    echo(f"{files[split].name}, on {name}: {_line(scores[1])}")
    echo("words that differ: " + ", ".join(f"{what} {share:.4f} %" for what, share in differ.items()))


@command.command("ls")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def ls(as_json: bool) -> None:
    """List the parsers by name.

    \b
    derivlang parser ls --json
    """
    from derivlang.core.plugins import plug_ins
    from derivlang.parsing.bundled import bundled_model
    from derivlang.parsing.registry import BUNDLED, PARSERS

    found = []
    for language, name in sorted(BUNDLED.items()):
        card = bundled_model(name).card
        summary = f"part of this package; trained on {', '.join(card['trained_on'])}"
        found.append({"name": name, "language": language, "summary": summary, "licence": card["licence"]})
    found += [{"name": name, "summary": f"plug-in: {p.value}"} for name, p in plug_ins(PARSERS.group).items()]
    found += [
        {"name": "stanza", "summary": "Stanza's models in its default folder (pip install 'derivlang[stanza]')"},
        {"name": "stanza:DIR", "summary": "Stanza's models in a folder"},
        {"name": "spacy:NAME", "summary": "a spaCy pipeline with Universal Dependencies labels"},
        {"name": "DIR/", "summary": "a folder made by `derivlang parser train`"},
    ]
    if as_json:
        echo(json.dumps(found, ensure_ascii=False))
        return
    for parser in found:
        echo(f"{parser['name']:<12}{parser.get('language', ''):<4}{parser['summary']}")


def read_treebank(path: Path) -> Treebank:
    """Read the trees of a CoNLL-U file. Raises DataError upos for a tag that UD does not have, and as `conllu.read`."""
    from derivlang.formats.conllu import read
    from derivlang.parsing.base import UPOS
    from derivlang.parsing.treebank import Treebank

    columns: dict[str, list[list[Any]]] = {"tokens": [], "upos": [], "head": [], "deprel": []}
    for rows in read(path):
        for name, lists in columns.items():
            lists += rows.table.column(name).to_pylist()
    for number, tags in enumerate(columns["upos"]):
        for tag in tags:
            if tag not in UPOS:
                raise DataError(
                    f"sentence {number + 1} has the tag {tag!r}, which is not one of UD's: {' '.join(UPOS)}",
                    where=str(path),
                    fix="use a treebank of Universal Dependencies, version 2",
                    id="upos",
                )
    return Treebank.of(columns["tokens"], columns["upos"], columns["head"], columns["deprel"])


def locate(treebank: Path, data_dir: Path | None) -> Path:
    """Return the path of a treebank; a name such as UD_English-EWT is looked up in the data folders."""
    from derivlang.sources.find import data_folders
    from derivlang.sources.named import find_named, split_name

    name = str(treebank)
    if treebank.exists() or not name.startswith("UD_") or treebank.name != name:
        return treebank
    folders = data_folders(data_dir)
    corpus, _ = find_named(*split_name(f"pos:{name}"), folders)
    if corpus is None:
        looked = f" or in {', '.join(map(str, folders))}" if folders else "; no --data-dir was given"
        raise DataError(
            f"there is no treebank {name} in this folder{looked}",
            where="TREEBANK",
            fix=f"pass its path, or move the folder to ud/{name} in a data folder",
            id="missing-file",
        )
    return corpus.parts[0].path.parent


def _files(treebank: Path, split: str = "train") -> dict[str, Path]:
    """Return the files of a UD folder by split, or a single file as `split`. Raises DataError if `split` is missing."""
    if not treebank.is_dir():
        return {split: treebank}
    found = {}
    for name in {"train", "dev", "test", split}:
        matches = sorted(path for path in treebank.iterdir() if f"-{name}.conllu" in path.name)
        if len(matches) > 1:
            raise DataError(
                f"the folder has several files *-{name}.conllu: {', '.join(path.name for path in matches)}",
                where=str(treebank),
                fix="name one of them, or put each treebank into a folder of its own",
                id="missing-file",
            )
        if matches:
            found[name] = matches[0]
    if split not in found:
        others = " or ".join(sorted(found))
        raise DataError(
            f"the folder has no *-{split}.conllu",
            where=str(treebank),
            fix=f"name a file; there is {others}" if found else "name a CoNLL-U file or its folder",
            id="missing-file",
        )
    return found


def _names(files: Sequence[Path]) -> dict[Path, str]:
    """Return the name of each file in a model card, with as many folders as tell files of the same name apart."""
    whole = {path: path.resolve() for path in files}
    names = {path: path.name for path in files}
    for n_parts in range(2, max((len(path.parts) for path in whole.values()), default=0) + 1):
        count = Counter(names[path] for path in {whole[path]: path for path in files}.values())
        names |= {path: "/".join(whole[path].parts[-n_parts:]) for path in files if count[names[path]] > 1}
    return names


def _read_text(path: Path) -> Text:
    """Read running text with words between spaces; each line counts as a sentence."""
    import numpy as np
    import pyarrow as pa

    from derivlang.core.arrays import offsets_of
    from derivlang.formats.opening import open_lines
    from derivlang.parsing.treebank import Text

    lines = [words for _, line in open_lines(path) if (words := line.split())]
    flat = pa.array([word for words in lines for word in words], pa.string()).dictionary_encode()
    codes = flat.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    return Text(codes, flat.dictionary, offsets_of(np.array([len(words) for words in lines], np.int64)))


def _teacher(name: str, language: str, text: Path | None) -> ModelParser:
    """Return the teacher of this name. Raises UsageError parser-teacher without a text, or if it is no stored model."""
    from derivlang.parsing.bundled import ModelParser
    from derivlang.parsing.registry import find_parser

    if text is None:
        raise UsageError(
            "the teacher has no text to parse", where="--teacher", fix="pass --text FILE", id="parser-teacher"
        )
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


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise DerivlangError(
            "training a parser needs torch, which is not installed",
            fix="pip install 'derivlang[train]' (parsing does not need it)",
            id="missing-package",
        ) from None
    return torch


def _line(found: dict[str, Any]) -> str:
    scores = ", ".join(f"{name} {value:.2f}" for name, value in found.items() if name != "words")
    return f"{scores} ({found['words']:,} words)"
