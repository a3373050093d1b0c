"""The contract of every option of `make`: it changes the set, is refused, or is told to have no effect.

A new option fails until it has a value here. Sources are of every kind, so that each option has an effect on one.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from derivlang.core.policies import Policies
from derivlang.core.settings import declared
from derivlang.engine.options import MakeOptions
from derivlang.sources.request import SourceRequest
from tests import commands
from tests.commands import run, snapshot, written

RAW = "Ada isn't in \"New York\". L'été, aujourd'hui (1999-2000)! Does she? She does."
WORDS = ["Ada", "saw", "l'été", "?", "It", "ran", "to", "New", "York", "."]
TAGS = ["B-PER", "O", "O", "O", "O", "O", "O", "B-LOC", "I-LOC", "O"]


def conllu(folder: Path) -> Path:
    rows = [f"{i}\t{word}\t_\tX\t_\t_\t{i and i - 1}\troot\t_\t_" for i, word in enumerate(WORDS, 1)]
    rows.insert(6, "7-8\tto New\t_\t_\t_\t_\t_\t_\t_\t_")
    return written(folder / "a-ud-test.conllu", "\n".join(rows) + "\n\n" + commands.TREES)


def table(folder: Path) -> Path:
    rows = {"tokens": [WORDS] * 2, "ner_tags": [TAGS] * 2, "label": [0, 1]}
    pq.write_table(pa.table(rows), folder / "a.test.parquet")
    return folder / "a.test.parquet"


def derived(folder: Path) -> Path:
    run("make", "--t", "trans:overlap=20", "demo:nli", "-o", folder / "set")
    return folder / "set"


def squad(folder: Path) -> Path:
    answers = [{"text": "New York", "answer_start": RAW.index("New")}]
    paragraphs = [
        {"context": RAW + more, "qas": [{"id": more, "question": f"Where? {RAW}", "answers": answers}]}
        for more in (" Yes.", " No.")
    ]
    return written(folder / "a.test.json", json.dumps({"data": [{"paragraphs": paragraphs}]}, ensure_ascii=False))


TEXT = " ".join(WORDS).replace("ran", "re-ran")  # a word that --words unicode divides
OBJECT = json.dumps({"tokens": WORDS, "more": WORDS[::-1], "note": "n o"}, ensure_ascii=False)
QUOTED = '"{}"'.format(RAW.replace('"', '""'))
MARKED = '"{}"'.format(RAW.replace('"', ""))  # a TSV file with QUOTED is refused without --quoting
SOURCES: dict[str, Callable[[Path], object]] = {
    "raw text": lambda f: written(f / "a.test.txt", f"{RAW}\n\n{RAW}\n"),
    "tokens": lambda f: written(f / "a.test.tokens", f" {TEXT} \n {TEXT} \n"),
    "conllu": conllu,
    "tagged": lambda f: written(f / "a.test.tsv", ("".join(map("{}\t{}\n".format, WORDS, TAGS)) + "\n") * 2),
    "pairs": lambda f: written(
        f / "a.test.tsv", "premise\thypothesis\tlabel\n" + f"{MARKED}\tYes.\tneutral\n" * 2 + "No.\tYes.\tneutral\n"
    ),
    "tsv": lambda f: written(f / "a.test.tsv", "text\tlabel\n" + f"{MARKED}\tx\n" * 2 + "No.\tx\n"),
    "csv": lambda f: written(f / "a.test.csv", "text,label\n" + f"{QUOTED},x\n" * 2),
    "jsonl": lambda f: written(f / "a.test.jsonl", f"{OBJECT}\n" * 2),
    "squad": squad,
    "parquet": table,
    "derived": derived,
    "demo": lambda f: "demo",
}

# Each option with other values than its default; SAME: options that never change a set.
SAME = "the same set by design"
VALUES: dict[str, list[str] | str] = {
    "--data-dir": SAME,  # of named sources, which are not here
    "--words": ["unicode"],
    "--lang": ["fr"],
    "--encoding": ["latin-1"],
    "--format": ["jsonl"],
    "--text-column": ["more", "note"],
    "--word-column": ["more"],
    "--label-column": ["ner_tags=tags"],
    "--header": ["--no-header"],
    "--column-names": ["a,b"],
    "--quoting": [""],
    "--delimiter": [";"],
    "--splits": ["train"],
    "--limit": ["1"],
    "--lexicon": ["LEXICON"],
    "--sentences": ["period", "unit"],
    "--entities": ["atomic"],
    "--answers": ["atomic"],
    "--mwt": ["atomic"],
    "--repair-tags": [""],
    "--columns": ["key"],
    "--parser": ["english", "english-light"],
    "--workers": SAME,
    "--shard-tokens": SAME,
    "--force": SAME,
    "--parses": SAME,
}
# Sources whose language is only recorded, tags that need no repair, and the format that the suffix says.
WORDS_GIVEN = ("conllu", "tagged", "jsonl", "parquet", "derived", "demo")
NOTHING_TO_DO = {("--lang", kind) for kind in (*WORDS_GIVEN, "tokens")} | {
    ("--repair-tags", kind) for kind in ("tagged", "parquet", "demo")
}
NOTHING_TO_DO.add(("--format", "jsonl"))


def test_every_option_has_a_value() -> None:
    options = {one.option for kind in (SourceRequest, MakeOptions, Policies) for one in declared(kind).values()}
    assert options - {None} == set(VALUES)


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lexicon of another set."""
    out = tmp_path_factory.mktemp("other") / "set"
    run("make", "--t", "trans:overlap=60", "demo:nli", "-o", out)
    return out / "lexicon.tsv"


@pytest.mark.parametrize("kind", SOURCES)
def test_an_option_changes_the_set_or_is_told_to_have_no_effect(kind: str, tmp_path: Path, lexicon: Path) -> None:
    source = SOURCES[kind](tmp_path)

    def made(*options: str) -> tuple[int, dict[str, bytes], str]:
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        ran = run("make", "--t", "trans:overlap=20,inv", source, "-o", tmp_path / "out", *options, code=None)
        files = snapshot(tmp_path / "out" / "data") if ran.code == 0 else {}
        return ran.code, files, ran.err

    code, expected, _ = made()
    assert code == 0
    silent = set()
    for option, values in VALUES.items():
        for value in () if values == SAME else values:
            words = (value,) if value.startswith("--") else (option, *([value] if value else []))
            found, files, told = made(*(str(lexicon) if word == "LEXICON" else word for word in words))
            if found == 0 and files == expected and "has no effect" not in told:
                silent.add((option, value))
    assert {(option, kind) for option, _ in silent} <= NOTHING_TO_DO, silent
