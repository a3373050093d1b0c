"""`derivlang parser`: train, score and list parsers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from derivlang.cli.dependent import option
from derivlang.cli.folders import default_folder
from derivlang.cli.messages import echo, tell
from derivlang.cli.options import Bar, data_dir_option
from derivlang.cli.settings import settings_options
from derivlang.cli.types import LOCAL_FOLDER, PATH, Group, completes
from derivlang.core.settings import given
from derivlang.parsing.settings import ParserOptions, ParserScoreOptions


@click.group("parser", cls=Group, no_args_is_help=True)
def command() -> None:
    """Train, score and list parsers.

    \b
    derivlang parser ls
    """


@command.command("train", no_args_is_help=True, short_help="Train a tagger and parser on a treebank.")
@click.argument("treebank", type=PATH)
@option("-o", "--out", type=LOCAL_FOLDER, help="Folder to write.  [default: TREEBANK.parser, here]")
@settings_options(ParserOptions)
@data_dir_option
@option("--force", is_flag=True, help="Replace a parser in the folder.")
@option("--json", "as_json", is_flag=True, help="Print the model card as JSON.")
def train(treebank: Path, out: Path | None, data_dir: Path | None, force: bool, as_json: bool, **options: Any) -> None:
    """Train a tagger and parser on TREEBANK and write a model of about 5 MB.

    TREEBANK is a CoNLL-U file, a folder of Universal Dependencies, or the name of such a folder (UD_English-EWT), which
    is searched for where `make` searches for pos:English-EWT.

    In a folder, *-train is the training data. *-dev is scored after each epoch. *-dev and *-test are scored at the end,
    once as they are and once with <unk> for words seen at most once in training. The scores do not influence training,
    which needs torch (pip install 'derivlang[train]') and takes half an hour on one core. The model runs without torch.
    A parser that the same command has already made is kept.

    \b
    derivlang parser train UD_English-EWT --data-dir DIR
    derivlang parser train UD_English-EWT --score en_gum-ud-test.conllu -o english
    """
    from derivlang.sources.treebank import find_treebank
    from derivlang.training.parser import train_parser

    treebank = find_treebank(treebank, data_dir)
    begins = ""
    if out is None:
        out = default_folder(treebank.name, last="parser")
        begins = f"writing to {out}{os.sep}"
    asked = ParserOptions(**given(ParserOptions, options))
    with Bar(shown=False, begins=begins) as bar:
        card = train_parser(treebank, out, asked, data_dir=data_dir, force=force, report=tell, found=bar.complete)
    if as_json:
        echo(json.dumps(card, ensure_ascii=False))
        return
    for name, scores in card["scores"].items():
        echo(f"{name}: {_line(scores)}")


@command.command("score", no_args_is_help=True, short_help="Score a parser on a treebank: UPOS, UAS and LAS.")
@click.argument("parser", shell_complete=completes("parser"))
@click.argument("treebank", type=PATH)
@settings_options(ParserScoreOptions)
@data_dir_option
@option("--json", "as_json", is_flag=True, help="Print the scores as JSON.")
def score(parser: str, treebank: Path, data_dir: Path | None, as_json: bool, **options: Any) -> None:
    """Score PARSER on the words of TREEBANK: UPOS, UAS and LAS.

    TREEBANK is a CoNLL-U file, a folder of Universal Dependencies, or the name of such a folder, as UD_English-EWT,
    which is found as `make` finds pos:English-EWT.

    All words count, with punctuation. LAS compares relations in full (nsubj:pass); "LAS universal" compares them up to
    the colon, as the script of the CoNLL 2018 shared task does.

    \b
    derivlang parser score english UD_English-EWT --data-dir DIR
    """
    from derivlang.training.parser_scores import score_parser

    with Bar():
        name, scores = score_parser(
            parser, treebank, ParserScoreOptions(**given(ParserScoreOptions, options)), data_dir=data_dir
        )
    if as_json:
        echo(json.dumps(scores))
        return
    echo(f"{name}: {_line(scores)}")


@command.command("ls")
@option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def ls(as_json: bool) -> None:
    """List the parsers by name.

    \b
    derivlang parser ls --json
    """
    from derivlang.core.plugins import plug_ins
    from derivlang.parsing.bundled import bundled_model
    from derivlang.parsing.registry import BUNDLED, PARSERS

    parsers = []
    for language, names in sorted(BUNDLED.items()):
        for name in names:
            card = bundled_model(name).card
            role = f"smaller and faster, taught by {card['teacher']['name']}" if "teacher" in card else "the default"
            summary = f"{role}; part of this package; trained on {', '.join(card['trained_on'])}"
            parsers.append({"name": name, "language": language, "summary": summary, "licence": card["licence"]})
    parsers += [{"name": name, "summary": f"plug-in: {p.value}"} for name, p in plug_ins(PARSERS.group).items()]
    parsers += [
        {"name": "stanza", "summary": "Stanza's models in its default folder (pip install 'derivlang[stanza]')"},
        {"name": "stanza:DIR", "summary": "Stanza's models in a folder"},
        {"name": "spacy:NAME", "summary": "a spaCy pipeline with Universal Dependencies labels"},
        {"name": "DIR/", "summary": "a folder made by `derivlang parser train`"},
    ]
    if as_json:
        echo(json.dumps(parsers, ensure_ascii=False))
        return
    for parser in parsers:
        echo(f"{parser['name']:<15}{parser.get('language', ''):<4}{parser['summary']}")


def _line(scores: dict[str, Any]) -> str:
    told = ", ".join(f"{name} {value:.2f}" for name, value in scores.items() if name != "words")
    return f"{told} ({scores['words']:,} words)"
