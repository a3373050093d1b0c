"""Derived output as a source: `--t b` on the output of `--t a` is `--t a,b` on the source, row for row."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from derivlang.core.errors import DerivlangError
from derivlang.core.policies import Policies
from tests.helpers import conllu, make, manifest, right, rows, same_rows, undone

PAIRS = [
    ("inv", "trans"),
    ("perm", "perm"),
    ("perm:window=2", "inv:final=move"),
    ("trans,inv", "trans:copy,perm"),
    ("inv:final=move", "perm"),
    ("identity", "perm"),
    ("inv", "identity"),
    ("trans:overlap=50", "inv"),
    ("inv", "trans:overlap=50:by=frequency"),
    ("trans:overlap=30", "trans:copy:overlap=60:seed=2"),
]

TEXT = (
    '\n  The cat  sat .\t" I go . " he said . And more \n\n= Title =\n \nnot ended\r\n'
    "The cat sat .\n<unk> said 10 @-@ 15 ... Yes !\n\n" * 3
)
RAW = "The cat (a tabby) sat; didn't it? \"Yes!\" she said.  No.\n\nCa va? L'été. <unk>, 3.5% of it\n" * 3
NER = "Ann\tB-PER\nLee\tI-PER\nmet\tO\nBo\tB-PER\nof\tO\nAcme\tB-ORG\nInc\tI-ORG\n.\tI-ORG\n\nParis\tB-LOC\n!\tO\n"
XNLI = (
    "premise\thypothesis\tlabel\n"
    "He left. She stayed.\tHe left!\tneutral\nHe left. She stayed.\tNo one did\tcontradictory\nA b.\tc d.\tentailment\n"
)
SQUAD = json.dumps(
    {
        "version": "1.1",
        "data": [
            {
                "title": "T",
                "paragraphs": [
                    {
                        "context": "Ann lives in New York City. Bo's 5 years old.",
                        "qas": [
                            {
                                "id": "a",
                                "question": "Where does Ann live?",
                                "answers": [{"text": "New York City", "answer_start": 13}],
                            },
                            {
                                "id": "b",
                                "question": "How old?",
                                "answers": [
                                    {"text": "5 years", "answer_start": 33},
                                    {"text": "year", "answer_start": 35},
                                ],
                            },
                        ],
                    },
                    {
                        "context": "Cy is here.",
                        "qas": [{"id": "c", "question": "Who?", "answers": [{"text": "Cy", "answer_start": 0}]}],
                    },
                ],
            }
        ],
    }
)
CONLLU = conllu(
    [
        (
            "s1",
            [
                "1-2 Au _ _ _ _ _ _ _ _",
                "1 À à ADP P _ 3 case 3:case _",
                "2 le le DET D Definite=Def 3 det 3:det _",
                "3 bois bois NOUN N _ 4 obl 4:obl _",
                "4 va aller VERB V _ 0 root 0:root|4.1:conj Gloss=goes",
                "4.1 va aller VERB V _ _ _ 4:conj _",
                "5 Ann Ann PROPN N _ 4 nsubj 4:nsubj|4.1:nsubj SpaceAfter=No",
                "6 . . PUNCT . _ 4 punct 4:punct _",
            ],
        ),
        ("s2", ["1 Oui oui INTJ I _ 0 root 0:root _", "2 ! ! PUNCT . _ 1 punct 1:punct _"]),
    ]
)
KINDS: dict[str, tuple[str, str]] = {
    "text": ("a.tokens", TEXT),
    "raw text": ("a.txt", RAW),
    "ner": ("a.tsv", NER),
    "conllu": ("a.conllu", CONLLU),
    "pairs": ("a.tsv", XNLI),
    "questions": ("a.json", SQUAD),
    "jsonl": ("a.jsonl", '{"tokens":["a","b","c","."],"label":"neutral"}\n{"tokens":["d"],"label":"entailment"}\n'),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(name="source")
def _source(tmp_path: Path) -> Callable[[str], Path]:
    def write(kind: str) -> Path:
        name, content = KINDS[kind]
        path = tmp_path / name
        path.write_bytes(content.encode())
        return path

    return write


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [(kind, *pair) for i, kind in enumerate(KINDS) for j, pair in enumerate(PAIRS) if (i + j) % 2 == 0],
)
def test_one_after_the_other_is_both(
    kind: str, first: str, second: str, source: Callable[[str], Path], tmp_path: Path
) -> None:
    path = source(kind)
    one = make(first, path, tmp_path / "one", words="unicode")
    two = make(second, one, tmp_path / "two")
    both = make(f"{first},{second}", path, tmp_path / "both", words="unicode")
    same_rows(rows(two), rows(both))
    right(two)
    ours, theirs = manifest(two), manifest(both)
    for key in ("spec", "fingerprint", "schema", "dropped"):
        assert ours[key] == theirs[key], key
    for key, value in ours["vocabulary"].items():  # types are listed as they are met
        other = theirs["vocabulary"][key]
        assert sorted(value) == sorted(other) if isinstance(value, list) else value == other, key
    assert ours["source"]["name"] == theirs["source"]["name"]
    for key in ("documents", "sentences", "tokens"):
        assert ours["splits"]["train"][key] == theirs["splits"]["train"][key]
    lexicons = [folder / "lexicon.tsv" for folder in (two, both)]
    assert lexicons[0].exists() == lexicons[1].exists()
    if lexicons[0].exists():
        assert lexicons[0].read_bytes() == lexicons[1].read_bytes()


@every_kind
def test_what_was_changed_is_counted_alike(kind: str, source: Callable[[str], Path], tmp_path: Path) -> None:
    path = source(kind)
    one = make("inv", path, tmp_path / "one", words="unicode")
    two = make("perm", one, tmp_path / "two")
    both = make("inv,perm", path, tmp_path / "both", words="unicode")
    assert manifest(two)["changed"] == manifest(both)["changed"]


@every_kind
def test_undo_gives_the_first_source_back(kind: str, source: Callable[[str], Path], tmp_path: Path) -> None:
    path = source(kind)
    one = make("inv", path, tmp_path / "one", words="unicode")
    two = make("trans,perm", one, tmp_path / "two")
    both = make("inv,trans,perm", path, tmp_path / "both", words="unicode")
    back = undone(both)
    assert undone(two) == back
    if kind in ("text", "raw text", "conllu", "ner"):
        assert back == path.read_bytes()
    elif kind == "pairs":
        assert back.decode() == XNLI.replace("contradictory", "contradiction")
    elif kind == "questions":
        assert json.loads(back)["data"] == json.loads(SQUAD)["data"]
    else:
        assert [json.loads(line) for line in back.splitlines()] == [
            json.loads(line) for line in path.read_text("utf-8").splitlines()
        ]


@every_kind
def test_three_in_a_row(kind: str, source: Callable[[str], Path], tmp_path: Path) -> None:
    path = source(kind)
    folder: Path = path
    for number, spec in enumerate(("perm", "trans", "perm")):
        folder = make(spec, folder, tmp_path / str(number), words="unicode")
    same_rows(rows(folder), rows(make("perm,trans,perm", path, tmp_path / "all", words="unicode")))


@every_kind
@pytest.mark.parametrize("limit", [1, 2])
def test_a_limit_on_derived_output(kind: str, limit: int, source: Callable[[str], Path], tmp_path: Path) -> None:
    path = source(kind)
    one = make("inv", path, tmp_path / "one", words="unicode")
    two = make("perm", one, tmp_path / "two", limit=limit)
    same_rows(rows(two), rows(make("inv,perm", path, tmp_path / "both", words="unicode", limit=limit)))


def test_shards_of_derived_output(source: Callable[[str], Path], tmp_path: Path) -> None:
    path = source("text")
    one = make("inv", path, tmp_path / "one", shard_tokens=5)
    assert len(manifest(one)["splits"]["train"]["shards"]) > 3
    two = make("perm", one, tmp_path / "two")
    both = make("inv,perm", path, tmp_path / "both")
    same_rows(rows(two), rows(both))
    assert undone(two) == TEXT.encode()
    limited = make("perm", one, tmp_path / "limited", limit=4)
    same_rows(rows(limited), rows(make("inv,perm", path, tmp_path / "four", limit=4)))


def test_every_split_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for split in ("train", "dev", "test"):
        (folder / f"{split}.tsv").write_text(NER.replace("Lee", split), "utf-8")
    one = make("inv", folder, tmp_path / "one")
    two = make("perm", one, tmp_path / "two", splits=("dev", "train"))
    both = make("inv,perm", folder, tmp_path / "both", splits=("train", "dev"))
    assert list(manifest(two)["splits"]) == ["validation", "train"]
    for split in ("train", "validation"):
        same_rows(rows(two, split), rows(both, split))


def test_without_columns_that_follow_from_the_rest(source: Callable[[str], Path], tmp_path: Path) -> None:
    path = source("ner")
    one = make("inv", path, tmp_path / "one", columns=("tokens",))
    right(one)
    assert {"source", "key"}.isdisjoint(rows(one).column_names)
    two = make("perm", one, tmp_path / "two", columns=("tokens",))
    same_rows(rows(two), rows(make("inv,perm", path, tmp_path / "both", columns=("tokens",))))


def test_the_recipe_of_two_steps_is_that_of_one_command(source: Callable[[str], Path], tmp_path: Path) -> None:
    path = source("raw text")
    one = make("inv", path, tmp_path / "one", words="space", sentences="unit", columns=("source",), limit=1)
    two = make("perm", one, tmp_path / "two", words="unicode", limit=2)
    made = manifest(two)
    assert made["options"] == ["--words=space", "--limit=1", "--sentences=unit"]
    assert (made["sentences"], made["limit"]) == ("unit", 1)
    same_rows(rows(two), rows(make("inv,perm", path, tmp_path / "both", words="space", sentences="unit", limit=1)))
    with pytest.raises(DerivlangError, match="by the rule unit"):
        make("perm", one, tmp_path / "three", sentences="period")


def test_a_policy_holds_for_all_transforms_of_a_set(source: Callable[[str], Path], tmp_path: Path) -> None:
    atomic = Policies(entities="atomic")
    one = make("perm", source("ner"), tmp_path / "one", policies=atomic)
    with pytest.raises(DerivlangError, match="give --entities atomic"):
        make("inv", one, tmp_path / "two")
    assert manifest(make("inv", one, tmp_path / "two", policies=atomic))["options"] == ["--entities=atomic"]


def test_it_does_not_derive_itself_in_place(source: Callable[[str], Path], tmp_path: Path) -> None:
    one = make("inv", source("ner"), tmp_path / "one")
    before = sorted((p.name, p.read_bytes()) for p in one.rglob("*") if p.is_file())
    with pytest.raises(DerivlangError, match="over its own source"):
        make("perm", one, one)
    assert sorted((p.name, p.read_bytes()) for p in one.rglob("*") if p.is_file()) == before
