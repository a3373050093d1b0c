"""`derivlang parser`: train a parser on a treebank, score one, list them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from derivlang.core.errors import DataError, DerivlangError, UsageError

if TYPE_CHECKING:
    from derivlang.parsing.treebank import Text, Treebank


@click.group("parser", no_args_is_help=True)
def command() -> None:
    """Train a parser on a treebank, score one, list them.

    \b
    derivlang parser ls
    """


@command.command("train", no_args_is_help=True)
@click.argument("treebank", type=click.Path(path_type=Path))
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="The folder to write.")
@click.option("--text", type=click.Path(path_type=Path), help="Running text of the language, words between spaces.")
@click.option("--language", default="en", show_default=True, help="Code of the treebank's language.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of all that is drawn.")
@click.option("--epochs", type=click.IntRange(1), help="Passes over the treebank.  [default: the recipe's]")
@click.option("--score", "others", multiple=True, type=click.Path(path_type=Path), help="Score this treebank, too.")
@click.option("--licence", default="", help="Licence of treebank and text, to stand in the model's card.")
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True,
              help="Of torch; other numbers give slightly other weights.")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace a model that is in the folder.")
@click.option("--json", "as_json", is_flag=True, help="Print the model's card as JSON.")
def train(treebank: Path, out: Path, as_json: bool, **options: Any) -> None:
    """Train a tagger and parser on TREEBANK, a CoNLL-U file or a UD folder, and write a model of some 5 MB.

    Of a folder, *-train is learnt from; *-dev is shown after each epoch, and *-dev and *-test are scored at the end,
    as they are and with the words seen at most once in training as <unk>. Nothing is chosen by them. Needs torch
    (pip install 'derivlang[train]') and some half an hour on one core; the model runs without.

    \b
    derivlang parser train UD_English-EWT --text wiki.train.tokens -o my-english
    """
    from dataclasses import replace

    from derivlang.parsing.bundled import ModelParser
    from derivlang.parsing.model import CARD, make_model, save_model
    from derivlang.parsing.scores import mask_rare, score
    from derivlang.parsing.training import Settings, fit

    if (out / CARD).exists() and not options["force"]:
        raise UsageError("a model is there already", where=str(out), fix="give another -o, or --force", id="out-exists")
    torch = _torch()
    torch.set_num_threads(options["threads"])
    torch.set_flush_denormal(True)
    files = _files(treebank)
    banks = {split: read_treebank(path) for split, path in files.items()}
    text = options["text"] and _read_text(options["text"])
    settings = Settings(seed=options["seed"])
    if options["epochs"]:
        settings = replace(settings, epochs=options["epochs"])
    trained = fit(banks["train"], banks.get("dev"), settings, text, lambda line: click.echo(line, err=True))
    card = {
        **trained.card(options["language"]),
        "name": out.name,
        "licence": options["licence"],
        "trained_on": {path.name: _sha256(path) for path in filter(None, [files["train"], options["text"]])},
        "torch": torch.__version__.partition("+")[0],
        "threads": options["threads"],
    }
    save_model(make_model(trained.weights, trained.vocabulary, card), out)
    parser = ModelParser.load(out)
    scores: dict[str, Any] = {}
    for split in ("dev", "test"):
        if split in banks:
            scores[files[split].name] = score(parser, banks[split])
            scores[f"{files[split].name}, rare words as <unk>"] = score(parser, mask_rare(banks[split], banks["train"]))
    for path in options["others"]:
        scores[path.name] = score(parser, read_treebank(path))
    card["scores"] = scores
    save_model(make_model(trained.weights, trained.vocabulary, card), out)
    if as_json:
        click.echo(json.dumps(card, ensure_ascii=False))
        return
    for name, found in scores.items():
        click.echo(f"{name}: {_line(found)}")


@command.command("score", no_args_is_help=True)
@click.argument("parser")
@click.argument("treebank", type=click.Path(path_type=Path))
@click.option("--split", default="test", show_default=True, help="Of a UD folder.")
@click.option("--language", default="en", show_default=True, help="Code of the treebank's language.")
@click.option("--unk", type=click.Path(path_type=Path), help="Words seen at most once in this treebank become <unk>.")
@click.option("--json", "as_json", is_flag=True, help="Print the scores as JSON.")
def score_command(parser: str, treebank: Path, split: str, language: str, unk: Path | None, as_json: bool) -> None:
    """UPOS, UAS and LAS of PARSER on the words of TREEBANK, a CoNLL-U file or a UD folder.

    All words count, punctuation too. LAS takes relations in full (nsubj:pass); "LAS universal" takes them up to the
    colon, as the script of the CoNLL 2018 shared task does.

    \b
    derivlang parser score english UD_English-GUM
    """
    from derivlang.parsing.base import find_parser
    from derivlang.parsing.scores import mask_rare, score

    files = _files(treebank, split)
    bank = read_treebank(files[split])
    if unk is not None:
        bank = mask_rare(bank, read_treebank(_files(unk)["train"]))
    found = score(find_parser(parser, language), bank)
    click.echo(json.dumps(found) if as_json else f"{files[split].name}: {_line(found)}")


@command.command("ls")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def ls(as_json: bool) -> None:
    """List the parsers that can be named.

    \b
    derivlang parser ls --json
    """
    from derivlang.core.plugins import plug_ins
    from derivlang.parsing.base import BUNDLED, GROUP
    from derivlang.parsing.bundled import bundled_model

    found = []
    for language, name in sorted(BUNDLED.items()):
        card = bundled_model(name).card
        summary = f"in this package; trained on {', '.join(card['trained_on'])}"
        found.append({"name": name, "language": language, "summary": summary, "licence": card["licence"]})
    found += [{"name": name, "summary": f"plug-in: {point.value}"} for name, point in sorted(plug_ins(GROUP).items())]
    found += [
        {"name": "stanza", "summary": "Stanza's models, from its own folder (pip install 'derivlang[stanza]')"},
        {"name": "stanza:DIR", "summary": "Stanza's models in a folder"},
        {"name": "spacy:NAME", "summary": "a spaCy pipeline with Universal Dependencies labels"},
        {"name": "DIR/", "summary": "a folder made by `derivlang parser train`"},
    ]
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
        return
    for parser in found:
        click.echo(f"{parser['name']:<12}{parser.get('language', ''):<4}{parser['summary']}")


def read_treebank(path: Path) -> Treebank:
    """The trees of a CoNLL-U file. Raises what `formats.conllu.read` does; DataError upos for a tag UD has not."""
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
                    f"sentence {number + 1} has the tag {tag!r}, which is none of UD's: {' '.join(UPOS)}",
                    where=str(path),
                    fix="give a treebank of Universal Dependencies, version 2",
                    id="upos",
                )
    return Treebank.of(columns["tokens"], columns["upos"], columns["head"], columns["deprel"])


def _files(treebank: Path, split: str = "train") -> dict[str, Path]:
    """The files of a UD folder by split, or a single file as `split`. `split` is among them."""
    if not treebank.is_dir():
        return {split: treebank}
    found = {}
    for name in {"train", "dev", "test", split}:
        matches = sorted(path for path in treebank.iterdir() if f"-{name}.conllu" in path.name)
        if matches:
            found[name] = matches[0]
    if split not in found:
        raise DataError(
            f"there is no *-{split}.conllu in the folder",
            where=str(treebank),
            fix=f"name a file, or --split {'|'.join(sorted(found))}" if found else "name a CoNLL-U file or its folder",
            id="missing-file",
        )
    return found


def _read_text(path: Path) -> Text:
    """Running text, a line a paragraph, words between spaces."""
    import numpy as np
    import pyarrow as pa

    from derivlang.core.arrays import offsets_of
    from derivlang.formats.opening import open_lines
    from derivlang.parsing.treebank import Text

    lines = [words for _, line in open_lines(path) if (words := line.split())]
    flat = pa.array([word for words in lines for word in words], pa.string()).dictionary_encode()
    codes = flat.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    return Text(codes, flat.dictionary, offsets_of(np.array([len(words) for words in lines], np.int64)))


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise DerivlangError(
            "training a parser needs torch, which is not installed",
            fix="pip install 'derivlang[train]'; parsing needs none of it",
            id="missing-package",
        ) from None
    return torch


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _line(found: dict[str, Any]) -> str:
    scores = ", ".join(f"{name} {value:.2f}" for name, value in found.items() if name != "words")
    return f"{scores} ({found['words']:,} words)"
