"""What people type and hand over: options given twice, sentences as words, dictionaries and links of other tools."""

from __future__ import annotations

import json
import re
import unicodedata
from contextlib import suppress
from pathlib import Path
from random import Random

import click
import pytest

import derivlang
from derivlang.core.errors import UsageError
from tests.commands import ROOT, rows, run, written
from tests.test_command_line import EVERY, Words

CASES = ROOT / "tests" / "cases" / "data"

# Options given twice. Each value stands for itself: what it means is checked later.

OPTIONS = [
    (words, command, option)
    for words, command in EVERY
    for option in command.params
    if isinstance(option, click.Option)
]
# The options that collect what several of them give: lists with commas, and those that say so in their help.
LISTS = {
    "--task", "--regime", "--measure", "--epochs", "--lr", "--batch-size", "--max-length", "--train-examples",
    "--dev-examples", "--splits", "--columns", "--column-names", "--text-column", "--word-column", "--cells", "--grids",
    "--label-column", "--freeze", "--classes", "--dev", "--score", "--factor", "--baseline", "--own",
    "--tracker", "--text",
}  # fmt: skip


def collects(words: Words, name: str) -> bool:
    if name in ("--epochs", "--batch-size", "--warmup", "--schedule", "--weight-decay"):
        return words == ("evaluate",)
    return name in LISTS or (words, name) in (
        (("stats",), "--t"),
        (("pretrain",), "--language"),
        (("pretrain",), "--pairs"),
        (("pretrain",), "--dictionary"),
    )


def name_of(option: click.Option) -> str:
    return next(name for name in option.opts if name.startswith("--"))


def fault_of(command: click.Command, typed: list[str]) -> str:
    """The error of a command line, which is not run."""
    try:
        command.make_context(command.name, typed)
    except UsageError as error:
        return error.id
    return ""


@pytest.mark.parametrize("words", [words for words, _ in EVERY], ids=" ".join)
def test_an_option_with_two_values_is_refused_or_collects_them(words: Words) -> None:
    for _, command, option in (one for one in OPTIONS if one[0] == words):
        name = name_of(option)
        if option.is_flag:
            with suppress(click.UsageError, click.exceptions.Exit):  # an argument may be missing
                assert fault_of(command, [name, name]) in ("", "unused-option", "missing-option"), name
            if option.secondary_opts:
                ran = run(*words, name, option.secondary_opts[0], code=2)
                assert f"derivlang: {name}: is given both on and off [given-twice]" in ran.err
            continue
        for spellings in ((name, name), (option.opts[0], option.opts[-1])):
            values = {"--lr": ("0.16", "0.32"), "--warmup": ("0.16", "0.32"), "--schedule": ("linear", "constant")}.get(
                name if words == ("evaluate",) else "", ("16", "32")
            )
            typed = [spellings[0], values[0], spellings[1], values[1]]
            if collects(words, name):
                context = click.Context(command, resilient_parsing=True)
                command.parse_args(context, typed)
                assert re.findall("|".join(values), str(context.params[option.name or ""])) == list(values), name
            else:
                ran = run(*words, *typed, code=2)
                assert ran.err == f"derivlang: {name}: is given 2 times: '16', '32' [given-twice]\n  give it once\n"


def test_the_values_of_a_list_that_is_given_in_parts_are_all_used(tmp_path: Path) -> None:
    made = run("make", "--t", "inv", "demo", "--splits", "train", "--splits", "test", "-o", f"{tmp_path}/set", "--json")
    assert set(made.json["splits"]) == {"train", "test"}
    told = run("stats", "--t", "inv", "--t", "perm", "demo", "--limit", "5", "--json").out.splitlines()
    assert len(told) == 2


def test_the_same_value_twice_is_refused_too() -> None:
    assert "[given-twice]" in run("make", "--t", "inv", "-t", "inv", "demo", code=2).err


def test_a_list_in_parts_names_a_task_once() -> None:
    ran = run("evaluate", "nowhere", "--task", "pos", "--task", "pos", code=2)
    assert "a task is named twice" in ran.err


@pytest.mark.parametrize("spec", ["perm:window=2:window=3", "perm:2:window=3", "perm:2:3"])
def test_a_parameter_of_a_transform_given_twice_is_refused(spec: str) -> None:
    with pytest.raises(UsageError):
        derivlang.derive("a b .", spec)


# Texts as words.


@pytest.mark.parametrize(
    ("texts", "number"),
    [
        (["A sentence.", "Another."], 1),
        (["One", "two words"], 2),
        (["A sentence."], 1),
        (("tab\there",), 1),
        (["line\n"], 1),
        ([" lead"], 1),
        (["ideographic\u3000space"], 1),
        (["on 20 000"], 1),
        (["20 euros"], 1),
    ],
)
def test_a_list_of_texts_is_refused(texts: list[str], number: int) -> None:
    with pytest.raises(UsageError) as raised:
        derivlang.derive(texts, "inv")
    assert raised.value.id == "spaced-word"
    assert f"word {number} holds white space" in str(raised.value)
    assert "derive each text by itself" in str(raised.value)


@pytest.mark.parametrize("word", ["20 000", "20\u00a0000", "1 000 000,5", "New\u00a0York", "et\u202fal.", "x\u200by"])
def test_spaces_of_numbers_and_no_break_spaces_stand_inside_of_words(word: str) -> None:
    assert derivlang.derive([word, "euros", "."], "inv").words == ["euros", word, "."]


def test_words_of_files_may_hold_any_space(tmp_path: Path) -> None:
    """Treebanks have such words: syllables of Vietnamese, numbers of French."""
    words = ["20 000", "sinh viên", "New\u00a0York", "."]
    lines = [f"{i}\t{word}\t_\tX\t_\t_\t{i - 1}\tdep\t_\t_\n" for i, word in enumerate(words, start=1)]
    sources = [
        written(tmp_path / "a.conllu", "".join(lines).replace("\tdep", "\troot", 1) + "\n"),
        written(tmp_path / "a.jsonl", json.dumps({"tokens": words}) + "\n"),
    ]
    for source in sources:
        run("make", "--t", "inv", source, "-o", tmp_path / source.suffix)
        (row,) = rows(tmp_path / source.suffix, "train")
        assert row["tokens"] == [*reversed(words[:-1]), "."]


# Words by Unicode's own boundaries.

JOINED = {
    "می‌خواهم": ["می‌خواهم"],
    "co\u00adopera\u00adtion": ["co\u00adopera\u00adtion"],
    "क्‍ष": ["क्‍ष"],
    "👨‍👩‍👧": ["👨‍👩‍👧"],
    "Poincaré": ["Poincaré"],
    "zero\u200bwidth": ["zero", "\u200b", "width"],
    "x\u2060y": ["x\u2060y"],
    "\ufeffinner": ["\ufeff", "inner"],
    "שלום\u200f": ["שלום\u200f"],
    "don't": ["don't"],
    "(3,500.25%)": ["(", "3,500.25", "%", ")"],
    "e.g.": ["e.g", "."],
    "snake_case-x": ["snake_case", "-", "x"],
    'ל"צה': ['ל"צה'],
    "🇩🇪🇫🇷🇮": ["🇩🇪", "🇫🇷", "🇮"],
    "👍🏽!": ["👍🏽", "!"],
}


@pytest.mark.parametrize("piece", JOINED)
def test_words_of_unicode(piece: str) -> None:
    found = derivlang.derive(f"a {piece} b", "identity", words="unicode")
    assert found.source == ["a", *JOINED[piece], "b"]


def test_words_of_unicode_are_those_of_another_program() -> None:
    regex = pytest.importorskip("regex")
    boundary = regex.compile(r"(?V1w)\b")
    random = Random(1)
    letters = "aB1é٣_'\".,:;·א\u200d\u200c\u00ad\u0301日かカ👨👩🏽🇩🇪²ไ\u200b\u2060/-Ⓜ"
    pieces = ["".join(random.choices(letters[: random.choice((4, 40))], k=random.randint(1, 8))) for _ in range(3000)]
    found = derivlang.derive(" ".join(pieces), "identity", words="unicode")
    assert found.source == [word for piece in pieces for word in boundary.split(piece) if word]


def test_a_file_with_joiners_is_undone_and_names_the_version_of_unicode(tmp_path: Path) -> None:
    source = CASES / "t2_joiners.txt"
    run("make", "--t", "inv", source, "-o", tmp_path / "set", "--words", "unicode")
    words = [word for row in rows(tmp_path / "set", "train") for word in row["tokens"]]
    assert {"نمی\u200cخواهم", "مشکل\u200cها", "co\u00adopera\u00adtion"} <= set(words)
    run("undo", tmp_path / "set", "-o", tmp_path / "back.txt")
    assert (tmp_path / "back.txt").read_bytes() == source.read_bytes()
    manifest = json.loads((tmp_path / "set" / "derivlang.json").read_text("utf-8"))
    assert manifest["words"] == f"unicode {unicodedata.unidata_version}"


# Dictionaries and links of other programs.


def test_muse_reads_what_is_written_in_its_form(tmp_path: Path) -> None:
    """Lower case, and two parts in each line, as MUSE's loader asserts; the rest is left out and counted."""
    pairs = {
        "hello": "bonjour",
        "Paris": "paris",
        "paris": "Paris",
        "20\u00a0000": "x",
        "ice cream": "glace",
        "a": "b c",
    }
    given = written(tmp_path / "d.json", json.dumps({**pairs, "straße": "rue", "ü": "u", "word": "m\u2009t"}))
    ran = run("dict", "check", given, "-o", tmp_path / "clean.txt")
    lines = (tmp_path / "clean.txt").read_text("utf-8").splitlines()
    assert lines == ["hello bonjour", "straße rue", "ü u"]
    assert "6 pairs left out: MUSE reads no capitals and no white space" in ran.out
    assert run("dict", "check", given, "-o", tmp_path / "clean.tsv", "--json").json["left_out"] == 0


@pytest.mark.parametrize("more", [(), ("--coverage", 50, "--heldout", 10, "--noise", 5)])
def test_a_dictionary_in_muse_form_has_no_capitals(more: tuple[object, ...], tmp_path: Path) -> None:
    made = run("dict", "--t", "trans", "demo", "-o", tmp_path / "d.txt", "--json", *more).json
    texts = [path.read_text("utf-8") for path in tmp_path.glob("d*.txt")]
    assert len(texts) == 1 + bool(more)
    for line in "".join(texts).splitlines():
        assert line == line.lower()
        assert len(line.split()) == 2
    whole = run("dict", "--t", "trans", "demo", "-o", tmp_path / "d.tsv", "--json", *more).json
    assert whole["left_out"] == 0 < made["left_out"]
    assert made["pairs"] == len((tmp_path / "d.txt").read_text("utf-8").splitlines())


def test_a_dictionary_without_any_entry_for_muse_is_refused(tmp_path: Path) -> None:
    source = written(tmp_path / "a.tokens", " Ada Lovelace \n")
    ran = run("dict", "--t", "trans", source, "-o", tmp_path / "d.txt", code=1)
    assert "MUSE reads no entry" in ran.err
    assert not (tmp_path / "d.txt").exists()


@pytest.mark.parametrize(
    ("links", "gold", "warned"),
    [
        ("g1_hyp", "g3_gold_1based", "g3_gold_1based"),
        ("g3_gold_1based", "g1_gold", "g3_gold_1based"),
        ("g1_hyp", "g1_gold", ""),
        ("g3_gold_1based", "g3_gold_1based", ""),
    ],
)
def test_links_from_one_are_a_warning(links: str, gold: str, warned: str) -> None:
    ran = run("align", "score", CASES / f"{links}.pharaoh", CASES / f"{gold}.pharaoh")
    assert ran.err.count("no link has a 0") == bool(warned)
    assert f"{warned}.pharaoh: no link has a 0" in ran.err or not warned
