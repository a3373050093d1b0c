"""`hop`, `case`, `agree`, `lemma` and `drop`: published rows, and each rule held to plain lists on real treebanks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import derivlang
from derivlang.core.errors import DerivlangError
from derivlang.core.policies import Policies
from tests.commands import run, written
from tests.helpers import file_bytes, first_blocks, make, right, rows, undone
from tests.published_rules import Token, agree, case, hop
from tests.real import SHARED, needs_data

VERB = "Number=Sing|Person=3|Tense=Pres|VerbForm=Fin"


def treebank(*sentences: str) -> str:
    """CoNLL-U of sentences of form/lemma/UPOS/head/relation[/feats] words."""
    out = []
    for sentence in sentences:
        for number, word in enumerate(sentence.split(), 1):
            form, lemma, upos, head, relation, *feats = word.split("/")
            out.append("\t".join([str(number), form, lemma, upos, "_", *(feats or ["_"]), head, relation, "_", "_"]))
        out.append("")
    return "\n".join(out) + "\n"


def words_of(spec: str, text: str, folder: Path) -> list[str]:
    folder.mkdir(exist_ok=True)
    (folder / "a.conllu").write_text(text, "utf-8")
    number = len(list(folder.iterdir()))
    out = make(spec, folder / "a.conllu", folder / f"out{number}")
    return [" ".join(row) for row in rows(out)["tokens"].to_pylist()]


MESSY = treebank(
    f"He/he/PRON/2/nsubj cleans/clean/VERB/0/root/{VERB} his/his/PRON/5/nmod very/very/ADV/5/advmod"
    " messy/messy/ADJ/6/amod books/book/NOUN/2/obj he/he/PRON/8/nsubj lf/lf/X/2/dep ././PUNCT/2/punct"
)
SHELF = treebank(
    f"He/he/PRON/2/nsubj cleans/clean/VERB/0/root/{VERB} his/his/PRON/5/nmod very/very/ADV/5/advmod"
    " messy/messy/ADJ/6/amod bookshelf/bookshelf/NOUN/2/obj ././PUNCT/2/punct"
)
APPLES = treebank(
    "She/she/PRON/2/nsubj/Number=Sing gave/give/VERB/0/root him/he/PRON/2/iobj/Number=Sing"
    " apples/apple/NOUN/2/obj/Number=Plur ././PUNCT/2/punct",
    "The/the/DET/2/det boys/boy/NOUN/4/nsubj/Number=Plur have/have/AUX/4/aux slept/sleep/VERB/0/root ././PUNCT/4/punct",
    "They/they/PRON/3/nsubj/Number=Plur are/be/AUX/3/cop old/old/ADJ/0/root ././PUNCT/3/punct",
)


def test_the_suffixes_of_ravfogel(tmp_path: Path) -> None:
    """Suffixes and systems as in the study's program, case on the lemma of the noun and agreement on the main verb."""
    assert words_of("case:stem=lemma", APPLES, tmp_path) == [
        "shekar gave hekan appleker .",
        "The boykon have slept .",
        "theykon are old .",
    ]
    assert words_of("case:erg-abs", APPLES, tmp_path)[1:] == ["The boysker have slept .", "Theyker are old ."]
    assert words_of("case:suffix=free", APPLES, tmp_path)[0] == "She kar gave him kan apples ker ."
    assert words_of("agree:subj+obj+iobj", APPLES, tmp_path) == [
        "She gavekankarker him apples .",
        "The boys have sleptkon .",
        "They arekon old .",
    ]
    assert words_of("agree:on=aux", APPLES, tmp_path)[1:] == ["The boys havekon slept .", "They arekon old ."]


def test_an_inserted_word_goes_through_what_follows(tmp_path: Path) -> None:
    """hop,trans: the marker is transliterated; trans,hop: it is written as it is given. So is a free suffix."""
    script = derivlang.derive(["S"], "trans").words[0]
    assert words_of("hop:0:sing=S,trans", SHELF, tmp_path)[0].split()[2] == script
    assert words_of("trans,hop:0:sing=S", SHELF, tmp_path)[0].split()[2] == "S"
    marked, plain = (words_of(spec, SHELF, tmp_path)[0].split() for spec in ("inv:mark=S,trans", "trans,inv:mark=S"))
    assert [word for word in marked if word not in plain] == [script]


def test_forms_follow_the_transforms_before(tmp_path: Path) -> None:
    """trans,case: a Georgian word with a Latin suffix; case,trans and trans,lemma: all Georgian."""
    latin = re.compile("[a-z]")
    assert [bool(latin.search(word)) for word in words_of("trans,case", APPLES, tmp_path)[0].split()] == [
        True, False, True, True, False,
    ]  # fmt: skip
    for spec in ("case,trans", "trans,lemma", "lemma,trans", "agree:stem=lemma,trans", "trans,hop:0:sing=ს"):
        assert not latin.search("".join(words_of(spec, APPLES, tmp_path)))
    assert words_of("lemma,trans", APPLES, tmp_path) == words_of("trans,lemma", APPLES, tmp_path)
    assert words_of("inv,case", APPLES, tmp_path) == words_of("case,inv", APPLES, tmp_path)


def test_special_tokens_and_words_without_a_lemma_stay(tmp_path: Path) -> None:
    text = treebank("<unk>/thing/NOUN/2/nsubj/Number=Sing Saw/_/VERB/0/root it/it/PRON/2/obj/Number=Sing")
    assert words_of("case", text, tmp_path) == ["<unk> Saw itkin"]
    assert words_of("lemma", text, tmp_path) == ["<unk> Saw it"]


# plain rules

FUNCTION = {"DET", "AUX", "ADP", "SCONJ", "PART", "CCONJ"}
# By sentence: the words of a sentence and the number of words in its tail; by unit: all words of a tree.
BY_SENTENCE: dict[str, Callable[[list[Token], int], list[str]]] = {
    "hop": lambda sentence, tail: hop(sentence, tail, 4, tokens=False),
    "hop:0": lambda sentence, tail: hop(sentence, tail, 0, tokens=False),
    "hop:tokens=3": lambda sentence, tail: hop(sentence, tail, 3, tokens=True),
}
BY_UNIT: dict[str, Callable[[list[Token]], list[str]]] = {
    "case": lambda unit: case(unit, "nom-acc"),
    "case:erg-abs": lambda unit: case(unit, "erg-abs"),
    "agree": lambda unit: agree(unit, {0, 1}),
    "agree:iobj+subj+obj:on=aux": lambda unit: agree(unit, {0, 1, 2}, "aux"),
    "lemma": lambda unit: [t.lemma if t.lemma not in ("", "_") else t.form for t in unit],
    "drop": lambda unit: [t.form for t in unit if t.upos not in FUNCTION],
    "drop:punct": lambda unit: [t.form for t in unit if t.upos != "PUNCT"],
    "drop:NOUN+ADJ": lambda unit: [t.form for t in unit if t.upos not in ("NOUN", "ADJ")],
}


def expected(spec: str, row: dict[str, Any]) -> list[str]:
    """What a rule makes of a row of the source."""
    unit = [
        Token(form, lemma, UPOS[tag], feats, head - 1, relation)
        for form, lemma, tag, feats, head, relation in zip(*(row[name] for name in COLUMNS), strict=True)
    ]
    if spec in BY_UNIT:
        return BY_UNIT[spec](unit)
    out, begin = [], 0
    pairs = row["sentences"] or [len(unit), int(bool(unit) and unit[-1].upos == "PUNCT")]
    for length, tail in zip(pairs[::2], pairs[1::2], strict=True):
        out += BY_SENTENCE[spec](unit[begin : begin + length], tail)
        begin += length
    return out


COLUMNS = ("tokens", "lemmas", "upos", "feats", "head", "deprel")
# The numbers of the class label, as `datasets` has them.
UPOS = "NOUN PUNCT ADP NUM SYM SCONJ ADJ PART DET CCONJ PROPN PRON X _ ADV INTJ VERB AUX".split()


@needs_data
@pytest.mark.parametrize("bank", ["English-EWT", "French-GSD", "Turkish-BOUN"])
def test_the_rules_by_plain_lists(bank: str, tmp_path: Path) -> None:
    def made(spec: str) -> list[dict[str, Any]]:
        place = tmp_path / str(len(list(tmp_path.iterdir())))
        out = make(spec, f"pos:{bank}", place, data_dir=SHARED, limit=250, splits=("test",))
        found: list[dict[str, Any]] = rows(out, "test").to_pylist()
        return found

    source = made("identity")
    for spec in [*BY_SENTENCE, *BY_UNIT]:
        for row, plain in zip(made(spec), source, strict=True):
            assert row["tokens"] == expected(spec, plain | {"sentences": row["sentences"]}), (spec, plain["tokens"])


@pytest.mark.parametrize("spec", ["case,trans", "hop:0", "agree:subj,inv", "lemma"])
def test_a_dictionary_of_words_that_change_by_their_place_is_refused(spec: str, tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(APPLES, "utf-8")
    with pytest.raises(derivlang.DerivlangError, match=r"they change by their place \[no-lexicon\]"):
        derivlang.dictionary(str(tmp_path / "a.conllu"), spec, out=tmp_path / "d.tsv")
    assert not (tmp_path / "d.tsv").exists()


def test_a_model_reads_both_languages(tmp_path: Path) -> None:
    """Markers and changed forms are text of the derived language; links join a word and its form."""
    (tmp_path / "a.conllu").write_text((APPLES + MESSY) * 40, "utf-8")
    for spec in ("hop:0,trans", "case,agree"):
        run = derivlang.pretrain(
            source=str(tmp_path / "a.conllu"), spec=spec, tokenizer_for="both", objective="xlm", vocab_size=120,
            steps=2, threads=1, out=tmp_path / spec,
        )  # fmt: skip
        assert run.record["status"] == "done"


@needs_data
@pytest.mark.parametrize(
    ("spec", "bank"),
    [
        ("hop,trans", "English-GUM"),
        ("inv,case:erg-abs:stem=lemma", "English-EWT"),
        ("case:suffix=free,agree:subj,trans", "German-GSD"),
        ("drop,shuffle", "Irish-IDT"),
    ],
)
def test_a_treebank_is_made_verified_and_undone(spec: str, bank: str, tmp_path: Path) -> None:
    out = make(spec, f"pos:{bank}", tmp_path / "out", data_dir=SHARED, limit=80, splits=("test",))
    right(out)
    source = next((SHARED / "ud" / f"UD_{bank}").glob("*-test.conllu*"))
    assert undone(out, "test") == first_blocks(file_bytes(source), 80)


def test_hop_needs_features(tmp_path: Path) -> None:
    """A parser of text finds neither features nor lemmas."""
    (tmp_path / "a.txt").write_text("He cleans his books .\n")
    result = run("make", "--t", "hop", tmp_path / "a.txt", "-o", tmp_path / "out", code=1)
    assert "hop needs feats, lemmas" in result.err


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("hop:3:tokens=2", "hop counts words or tokens, or puts markers at an edge"),
        ("hop:sing='a b'", "must be one word"),
        ("drop:WORD", "'WORD' is not a group of words"),
        ("agree:subj+subj", "names no arguments of a verb"),
        ("agree:verb", "names no arguments of a verb"),
        ("case:missing.tsv", "missing.tsv"),
    ],
)
def test_a_wrong_spec(spec: str, message: str) -> None:
    with pytest.raises(DerivlangError, match=re.escape(message)):
        derivlang.Pipeline.parse(spec)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":1: the file has no suffix"),
        ("nsubj\n", ":1: 'nsubj' is not a relation and its suffixes"),
        ("nsubj\tka\nsubject\tko\n", ":2: 'subject' is not a relation of UD v2"),
        ("nsubj\tka\nnsubj\tko\n", ":2: the relation 'nsubj' comes twice"),
        ("nsubj\tk a\n", ":1: 'nsubj\\tk a' is not a relation and its suffixes"),
    ],
)
def test_a_wrong_table_of_suffixes(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "table.tsv").write_text(text)
    with pytest.raises(DerivlangError, match=re.escape(message)):
        derivlang.Pipeline.parse(f"case:{tmp_path / 'table.tsv'}")


def test_a_sentence_may_lose_all_words(tmp_path: Path) -> None:
    text = treebank("Yes/yes/INTJ/0/root", "He/he/PRON/2/nsubj left/leave/VERB/0/root")
    assert words_of("drop:INTJ", text, tmp_path) == ["", "He left"]
    result = run("make", "--t", "drop:INTJ", tmp_path / "a.conllu", "-o", tmp_path / "again")
    assert "1 sentence lost all words and is empty" in result.out + result.err
    assert run("verify", tmp_path / "again").code == 0


def test_an_answer_that_loses_words_is_counted(tmp_path: Path) -> None:
    """Of "The old ferry", drop:DET takes a word of one answer, drop:ADJ+DET+NOUN all words of it."""
    (tmp_path / "a.json").write_text(
        '{"data": [{"title": "t", "paragraphs": [{"context": "The old ferry sank .", "qas": [{"id": "1", "question":'
        ' "What sank ?", "answers": [{"text": "The old ferry", "answer_start": 0}]}]}]}]}'
    )
    told = []
    for spec in ("drop:DET", "drop:ADJ+DET+NOUN"):
        ran = run("make", "--t", spec, tmp_path / "a.json", "--words", "space", "-o", tmp_path / str(len(told)))
        told.append(ran.out + ran.err)
    assert "1 answer of answers lost some of its words" in told[0]
    assert "1 answer of answers lost all its words and was left out" in told[1]


def test_atomic_multiword_tokens_keep_features_and_lemmas(tmp_path: Path) -> None:
    text = SHELF.replace("2\tcleans", "2-3\tcleanshis\t_\t_\t_\t_\t_\t_\t_\t_\n2\tcleans")
    (tmp_path / "a.conllu").write_text(text, "utf-8")
    for spec in ("hop:0", "case:suffix=free:stem=lemma", "agree,inv"):
        out = make(spec, tmp_path / "a.conllu", tmp_path / spec[:4], policies=Policies(mwt="atomic"))
        right(out)


def test_a_set_that_loses_all_words_is_a_set(tmp_path: Path) -> None:
    text = treebank("go/go/VERB/0/root", "run/run/VERB/0/root")
    (tmp_path / "a.conllu").write_bytes(text.encode())
    out = make("drop:VERB", tmp_path / "a.conllu", tmp_path / "out")
    right(out)
    assert rows(out)["tokens"].to_pylist() == [[], []]
    assert undone(out) == text.encode()


def test_an_empty_suffix_is_not_a_word(tmp_path: Path) -> None:
    (tmp_path / "table.tsv").write_text("nsubj\tkar\t\n")
    spec = f"case:{tmp_path / 'table.tsv'}:suffix=free"
    assert words_of(spec, APPLES, tmp_path / "x")[:2] == ["She kar gave him apples .", "The boys have slept ."]


def test_equal_languages_have_equal_specs() -> None:
    for one, other in (
        ("agree:obj+subj", "agree:subj+obj"),
        ("drop:VERB+NOUN+VERB", "drop:NOUN+VERB"),
        ("drop:SCONJ+DET+AUX+ADP+PART+CCONJ", "drop"),
    ):
        assert str(derivlang.Pipeline.parse(one)) == str(derivlang.Pipeline.parse(other))


def test_lemmas_stand_before_a_dictionary(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_text("apple pomme\n")
    spec = f"lex:{tmp_path / 'd.txt'}"
    assert words_of(f"lemma,{spec}", APPLES, tmp_path / "x")[0] == "she give he pomme ."
    for after in ("lemma", "hop", "case:stem=lemma"):
        with pytest.raises(DerivlangError, match="takes the lemma of a word"):
            derivlang.Pipeline.parse(f"{spec},{after}")
    (tmp_path / "k.txt").write_text("kar KAR\n")
    assert "kar" in words_of(f"case:suffix=free,lex:{tmp_path / 'k.txt'}", APPLES, tmp_path / "x")[0].split()


def test_groups_keep_their_tags_without_trees(tmp_path: Path) -> None:
    """Under --entities atomic a group has the tag of its first word."""
    line = {"tokens": ["The", "Old", "Town", "sleeps"], "upos": ["DET", "PROPN", "PROPN", "VERB"]}
    (tmp_path / "a.jsonl").write_text(json.dumps(line | {"ner_tags": ["O", "B-LOC", "I-LOC", "O"]}) + "\n")
    out = make("drop:DET,inv", tmp_path / "a.jsonl", tmp_path / "out", policies=Policies(entities="atomic"))
    right(out)
    assert rows(out)["tokens"].to_pylist() == [["sleeps", "Old", "Town"]]


@pytest.mark.parametrize("name", ["case", "agree"])
def test_suffixes_without_features_have_a_way_without_number(name: str, tmp_path: Path) -> None:
    row = '{"tokens":["dogs","bark"],"head":[2,0],"deprel":["nsubj","root"],"upos":["NOUN","VERB"]}\n'
    path = written(tmp_path / "a.jsonl", row)
    failed = run("make", path, "--t", name, "-o", tmp_path / "out", code=1)
    assert "add number=no, or take a treebank in CoNLL-U with features" in failed.err
    make(f"{name}:number=no", path, tmp_path / "made")
