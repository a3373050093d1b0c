"""`syn` and `parse` as whole commands: gold trees, parsed text, every kind of labelled set, and what is parsed once.

Sources without trees are read with the sample package's parser (`tests/plugin`), which needs no model.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from derivlang.core.errors import UsageError
from derivlang.core.messages import DerivlangWarning
from derivlang.core.policies import Policies
from derivlang.engine import engines
from derivlang.engine.batches import Source
from derivlang.engine.job import Events, run_task
from derivlang.engine.options import MakeOptions
from derivlang.engine.parse import parse as run_parse
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from tests import commands, reference
from tests.commands import snapshot, trees
from tests.helpers import (
    conllu,
    file_bytes,
    first_blocks,
    first_lines,
    make,
    manifest,
    right,
    rows,
    same_rows,
    undone,
)
from tests.real import SHARED, needs_data
from tests.test_compose_sources import KINDS

pytestmark = pytest.mark.usefixtures("plugins", "log")


@pytest.fixture(name="log")
def _log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Parses of this test alone, and where its parser says how many words it has parsed."""
    monkeypatch.setenv("DERIVLANG_PARSES", str(tmp_path / "parses"))
    monkeypatch.setenv("DERIVLANG_SAMPLE_LOG", str(tmp_path / "parser.log"))
    return tmp_path / "parser.log"


def parsed_words(log: Path) -> int:
    return sum(int(line.split()[1]) for line in log.read_text().splitlines()) if log.exists() else 0


def parse(source: Path | str, out: Path = Path(), *, data_dir: Path | None = None, **options: Any) -> dict[str, Any]:
    """`derivlang parse`, in this process."""
    options = {"parser": "chain", **options}
    return run_parse(SourceRequest(str(source), data_dir=data_dir), MakeOptions(out, **options), Events())


def every_word_keeps(table: list[dict[str, Any]], before: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    """Of each row: the words are those of the source, each with its values and its governor."""
    assert len(table) == len(before)
    for row, old in zip(table, before, strict=True):
        order = row["order"]
        assert sorted(order) == list(range(len(old["tokens"])))
        assert row["tokens"] == [old["tokens"][i] for i in order]
        for column in columns:
            assert row[column] == [old[column][i] for i in order]
        assert row["head"] == reference.heads(old["head"], order)


# gold trees

TREEBANKS = (
    "English-EWT",
    "English-GUM",
    "French-GSD",
    "Arabic-PUD",
    "French-ParisStories",
    "Hebrew-HTB",
    "Turkish-BOUN",
)


@needs_data
@pytest.mark.parametrize("treebank", TREEBANKS)
def test_a_treebank(treebank: str, tmp_path: Path) -> None:
    spec = "syn:fr" if treebank != "French-GSD" else "syn:en:substrate=fr"
    limit = 60
    out = make(spec, f"pos:{treebank}", tmp_path / "out", data_dir=SHARED, limit=limit)
    plain = make("identity", f"pos:{treebank}", tmp_path / "plain", data_dir=SHARED, limit=limit)
    right(out)
    assert {s: {k: e[k] for k in ("documents", "sentences", "tokens")} for s, e in manifest(out)["splits"].items()} == {
        s: {k: e[k] for k in ("documents", "sentences", "tokens")} for s, e in manifest(plain)["splits"].items()
    }
    moved = 0
    for split in manifest(out)["splits"]:
        table = rows(out, split).to_pylist()
        every_word_keeps(table, rows(plain, split).to_pylist(), ("upos", "deprel", "lemmas", "feats", "xpos"))
        moved += sum(row["order"] != sorted(row["order"]) for row in table)
        source = next((SHARED / "ud" / f"UD_{treebank}").glob(f"*-{ud_split(split)}.conllu*"))
        assert undone(out, split) == first_blocks(file_bytes(source), limit)
    assert moved > 10
    assert "parser" not in manifest(out)


def ud_split(split: str) -> str:
    return {"validation": "dev"}.get(split, split)


@needs_data
@pytest.mark.parametrize(
    "spec",
    [
        "syn:fr:punct=permute:freeze=none",
        "syn:fr:mode=argmax:nonprojective=keep-order",
        "trans,syn:fr@V,inv",
        "perm,syn:fr",
        "syn:fr@N~en@V,syn:fr:seed=7",
    ],
)
@pytest.mark.parametrize("mwt", ["free", "atomic"])
def test_specs_and_policies_on_units_of_several_sentences(spec: str, mwt: Any, tmp_path: Path) -> None:
    file = SHARED / "ud/UD_French-GSD/fr_gsd-ud-test.conllu"
    out = make(spec, file, tmp_path / "out", limit=120, policies=Policies(mwt=mwt))
    right(out)
    assert undone(out) == first_blocks(file_bytes(file), 120)
    assert any(len(row["sentences"]) > 2 for row in rows(out).to_pylist())
    if mwt == "atomic":
        assert "mwt-dissolved" not in manifest(out)["changed"]
        assert rows(out)["mwt"].to_pylist() != []
    elif spec.endswith("freeze=none") or "inv" in spec:
        assert manifest(out)["changed"]["mwt-dissolved"] > 0


TWO_SENTENCES = conllu(
    [
        (
            "t-1",
            [
                "1 He he PRON _ _ 2 nsubj _ _",
                "2 left leave VERB _ _ 0 root _ _",
                "3 home home NOUN _ _ 2 obj _ _",
                "4 . . PUNCT _ _ 2 punct _ _",
                "5 She she PRON _ _ 6 nsubj _ _",
                "6 found find VERB _ _ 2 parataxis _ _",
                "7 a a DET _ _ 9 det _ _",
                "8 red red ADJ _ _ 9 amod _ _",
                "9 hat hat NOUN _ _ 6 obj _ SpaceAfter=No",
                "10 ! ! PUNCT _ _ 2 punct _ _",
            ],
        ),
        ("t-2", ["1 Yes yes INTJ _ _ 0 root _ _", "2 . . PUNCT _ _ 1 punct _ _"]),
    ]
)


@pytest.mark.parametrize("after", ["inv", "perm", "inv:final=move", "syn:fr@N:seed=4", "trans,inv"])
def test_a_tree_over_two_sentences_goes_on_from_its_rows(after: str, tmp_path: Path) -> None:
    """What `syn` joined is one sentence to what follows, at once or read back."""
    file = tmp_path / "t.conllu"
    file.write_text(TWO_SENTENCES)
    one = make("syn:fr", file, tmp_path / "one")
    two = make(after, one, tmp_path / "two")
    both = make(f"syn:fr,{after}", file, tmp_path / "both")
    for folder in (one, two, both):
        right(folder)
        assert undone(folder) == TWO_SENTENCES.encode()
    same_rows(rows(two), rows(both))
    syn = rows(one).to_pylist()[0]
    assert syn["tokens"][-1] == "!"
    if after == "inv":
        assert rows(two).to_pylist()[0]["tokens"] == [*syn["tokens"][-2::-1], "!"]


@needs_data
@pytest.mark.parametrize("after", ["inv", "perm"])
def test_gold_units_of_several_sentences_go_on_from_their_rows(after: str, tmp_path: Path) -> None:
    source = SHARED / "ud/UD_English-GUM/en_gum-ud-dev.conllu.gz"
    one = make("syn:fr", source, tmp_path / "one", limit=200)
    two = make(after, one, tmp_path / "two")
    both = make(f"syn:fr,{after}", source, tmp_path / "both", limit=200)
    same_rows(rows(two), rows(both))
    assert undone(two) == undone(both) == first_blocks(file_bytes(source), 200)
    right(two)


# sets of every kind, parsed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spec", ["syn:fr", "trans,syn:fr,inv"])
def test_every_kind_is_made_verified_and_undone(kind: str, spec: str, tmp_path: Path) -> None:
    name, content = KINDS[kind]
    path = tmp_path / name
    path.write_bytes(content.encode())
    parser = None if kind == "conllu" else "chain"
    out = make(spec, path, tmp_path / "out", words="unicode", parser=parser, language="en")
    right(out)
    plain = make(
        "trans,inv" if "trans" in spec else "identity", path, tmp_path / "plain", words="unicode", language="en"
    )
    assert undone(out) == undone(plain)
    ours, theirs = rows(out), rows(plain)
    for name in ours.column_names:
        if name.endswith("tokens"):
            assert [sorted(row) for row in ours[name].to_pylist()] == [sorted(row) for row in theirs[name].to_pylist()]
    made = manifest(out)
    assert made.get("parser", {"name": "chain", "fingerprint": "chain-1"}) == {
        "name": "chain",
        "fingerprint": "chain-1",
    }
    assert ("parser" in made) == (kind != "conllu")


AFTER = ("inv", "perm", "syn:fr:seed=2")


@pytest.mark.parametrize(
    ("kind", "after"),
    [(kind, after) for i, kind in enumerate(KINDS) for j, after in enumerate(AFTER) if (i + j) % 2 == 0],
)
def test_every_kind_goes_on_from_its_rows(kind: str, after: str, tmp_path: Path) -> None:
    name, content = KINDS[kind]
    path = tmp_path / name
    path.write_bytes(content.encode())
    parser = None if kind == "conllu" else "chain"
    one = make("syn:fr", path, tmp_path / "one", words="unicode", parser=parser)
    two = make(after, one, tmp_path / "two")
    both = make(f"syn:fr,{after}", path, tmp_path / "both", words="unicode", parser=parser)
    same_rows(rows(two), rows(both))
    assert undone(two) == undone(both)
    right(two)


SENTENCES = [
    "The cats chased 3 small dogs .",
    "Ada Lovelace visited the old town quickly !",
    "He ( Bo ) liked it , too .",
]


def test_equal_sentences_are_ordered_alike_in_every_format(tmp_path: Path) -> None:
    words = [line.split() for line in SENTENCES]
    files = {
        "a.tokens": "\n".join([*SENTENCES[::-1], "More words came .", *SENTENCES]) + "\n",
        "b.tokens": " ".join(SENTENCES) + "\n",
        "c.tsv": "".join("".join(f"{w}\tO\n" for w in row) + "\n" for row in words),
        "d.jsonl": "".join(json.dumps({"tokens": row, "label": "neutral"}) + "\n" for row in words),
    }
    found: dict[str, set[tuple[int, ...]]] = {}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        out = make("syn:fr", tmp_path / name, tmp_path / f"{name}.out", parser="chain")
        for row in rows(out).to_pylist():
            found.setdefault(" ".join(row["source"]), set()).add(tuple(row["order"]))
    assert set(SENTENCES) <= set(found)
    assert all(len(orders) == 1 for orders in found.values())
    assert any(order != tuple(sorted(order)) for orders in found.values() for order in orders)


def spans_of(row: dict[str, Any], classes: list[str], tokens: str, tags: str) -> list[tuple[str, tuple[str, ...]]]:
    spans = reference.entity_spans([classes[tag] for tag in row[tags]])
    return sorted((kind, tuple(sorted(row[tokens][i] for i in words))) for kind, words in spans)


@needs_data
def test_entities_under_each_policy(tmp_path: Path) -> None:
    folders: dict[str, Path] = {}
    policy: Any
    for policy in ("split", "drop", "atomic"):
        spec = "syn:fr:freeze=none,perm" if policy != "atomic" else "syn:fr"
        folders[policy] = make(
            spec,
            "ner",
            tmp_path / policy,
            data_dir=SHARED,
            limit=60,
            parser="chain",
            policies=Policies(entities=policy),
        )
        right(folders[policy])
    plain = make("identity", "ner", tmp_path / "plain", data_dir=SHARED, limit=60)
    for split in manifest(plain)["splits"]:
        source = rows(plain, split).to_pylist()
        classes = next(f["classes"] for f in manifest(plain)["schema"]["fields"] if f["column"] == "ner_tags")
        before = [spans_of(row, classes, "tokens", "ner_tags") for row in source]
        tables = {name: rows(folder, split).to_pylist() for name, folder in folders.items()}
        assert [spans_of(row, classes, "tokens", "ner_tags") for row in tables["atomic"]] == before
        n_words = [sum(len(words) for _, words in row) for row in before]
        after = [spans_of(row, classes, "tokens", "ner_tags") for row in tables["split"]]
        assert [sum(len(words) for _, words in row) for row in after] == n_words
        for old, new in zip(before, (spans_of(r, classes, "tokens", "ner_tags") for r in tables["drop"]), strict=True):
            assert all(span in old for span in new)
        for name, folder in folders.items():
            assert undone(folder, split) == undone(plain, split), name
    made = {name: manifest(folder) for name, folder in folders.items()}
    assert made["split"]["changed"]["ner_tags-split"] > 0
    assert made["drop"]["dropped"]["ner_tags-dropped"] == made["split"]["changed"]["ner_tags-split"]
    assert not [key for key in made["atomic"]["changed"] if key.startswith("ner_tags")]


@needs_data
@pytest.mark.parametrize(("source", "parser"), [("xnli", "chain"), ("xnli:fr", "chain-fr")])
def test_both_sides_of_a_pair_are_parsed(source: str, parser: str, tmp_path: Path) -> None:
    spec = "syn:fr" if source == "xnli" else "syn:en:substrate=fr"
    options: dict[str, Any] = {"data_dir": SHARED, "limit": 60, "splits": ("dev",)}
    out = make(spec, source, tmp_path / "out", parser=parser, **options)
    plain = make("identity", source, tmp_path / "plain", **options)
    right(out)
    several = 0
    for split in manifest(out)["splits"]:
        for row, old in zip(rows(out, split).to_pylist(), rows(plain, split).to_pylist(), strict=True):
            assert row["label"] == old["label"]
            for side in ("premise", "hypothesis"):
                assert sorted(row[f"{side}_tokens"]) == sorted(old[f"{side}_tokens"])
                assert len(row[f"{side}_upos"]) == len(row[f"{side}_head"]) == len(row[f"{side}_tokens"])
                sizes = row[f"{side}_sentences"][::2] or [len(row[f"{side}_tokens"])] * bool(row[f"{side}_tokens"])
                assert row[f"{side}_head"].count(0) == sum(size > 0 for size in sizes)
                several += len(sizes) > 1
        assert undone(out, split) == undone(plain, split)
    assert several


@needs_data
@pytest.mark.parametrize("source", ["squad", "demo:qa"])
@pytest.mark.parametrize("answers", ["split", "atomic"])
def test_questions(source: str, answers: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"data_dir": None if source.startswith("demo") else SHARED, "limit": 4}
    out = make("syn:fr", source, tmp_path / "out", parser="chain", policies=Policies(answers=answers), **options)
    right(out)
    plain = make("identity", source, tmp_path / "plain", **options)
    split = next(iter(manifest(out)["splits"]))
    assert json.loads(undone(out, split))["data"] == json.loads(undone(plain, split))["data"]
    for row in rows(out, split).to_pylist():
        for text, start in zip(row["answers"]["text"], row["answers"]["answer_start"], strict=True):
            assert row["context"][start : start + len(text)] == text


@needs_data
def test_wikitext(tmp_path: Path, log: Path) -> None:
    path = SHARED / "text/wikitext-2/wiki.valid.tokens"
    out = make("trans,syn:fr", path, tmp_path / "out", limit=120, parser="chain")
    right(out)
    assert undone(out) == first_lines(path.read_bytes(), 120)
    table = rows(out).to_pylist()
    words = sum(len(row["tokens"]) for row in table)
    assert parsed_words(log) == words == manifest(out)["splits"]["validation"]["tokens"]
    assert sum(row["order"] != sorted(row["order"]) for row in table) > len(table) / 4


@needs_data
def test_a_big_set_goes_on_and_is_undone(tmp_path: Path) -> None:
    """Lines that cross a row group keep their own gaps."""
    path = SHARED / "text/wikitext-2/wiki.valid.tokens"
    one = make("trans", path, tmp_path / "one")
    two = make("inv", one, tmp_path / "two")
    assert undone(two) == path.read_bytes()
    assert undone(one) == path.read_bytes()


# parsed once


@pytest.fixture(name="text")
def _text(tmp_path: Path) -> Path:
    path = tmp_path / "in" / "train.tokens"
    path.parent.mkdir()
    path.write_text("\n".join(f"{line} {' '.join(SENTENCES[:2])}" for line in SENTENCES * 40) + "\n")
    return path


def test_a_second_make_parses_nothing(text: Path, tmp_path: Path, log: Path) -> None:
    one = make("syn:fr", text, tmp_path / "one", parser="chain")
    parsed = parsed_words(log)
    assert parsed == manifest(one)["splits"]["train"]["tokens"]
    make("syn:fr:seed=2", text, tmp_path / "two", parser="chain")
    make("inv,syn:fr", text, tmp_path / "three", parser="chain", shard_tokens=300)
    assert parsed_words(log) == parsed
    again = make("syn:fr", text, tmp_path / "again", parser="chain", parses=tmp_path / "elsewhere")
    assert parsed_words(log) == 2 * parsed
    assert snapshot(again) == snapshot(one)


@pytest.mark.parametrize("options", [{}, {"splits": ("test",)}, {"splits": ("train",)}, {"limit": 2}], ids=str)
def test_the_lexicon_of_a_parsed_source_is_that_of_its_whole_first_split(
    options: dict[str, Any], tmp_path: Path, log: Path
) -> None:
    """Only the wanted part is parsed, and the kept types are those of any other language of the source."""
    out = make("trans:overlap=25,syn:fr", "demo:nli", tmp_path / "syn", parser="chain", **options)
    other = make("trans:overlap=25,inv", "demo:nli", tmp_path / "inv")
    assert (out / "lexicon.tsv").read_text().partition("\n")[2] == (other / "lexicon.tsv").read_text().partition("\n")[
        2
    ]
    right(out)


def test_what_was_repaired_is_told_though_the_parse_did_it(tmp_path: Path, log: Path) -> None:
    for name in ("train", "test"):
        (tmp_path / f"{name}.tsv").write_text("Ann\tI-PER\nmet\tO\nBo\tB-PER\n.\tO\n\n", "utf-8")
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / f"{name}.tsv").rename(tmp_path / "in" / f"{name}.tsv")
    told = parse(tmp_path / "in", parser="chain", repair_tags=True)
    assert told["changed"] == {"ner_tags-repaired": 2}
    out = make("syn:fr", tmp_path / "in", tmp_path / "out", parser="chain", repair_tags=True)
    assert json.loads((out / "derivlang.json").read_text())["changed"]["ner_tags-repaired"] == 2


def test_parse_alone_is_what_make_finds(text: Path, tmp_path: Path, log: Path) -> None:
    result = parse(text)
    parsed = parsed_words(log)
    assert parsed == result["splits"]["train"]["tokens"]
    make("syn:fr", text, tmp_path / "out", parser="chain")
    assert parsed_words(log) == parsed


@pytest.mark.parametrize(
    "change", [{"parser": "chain-too"}, {"sentences": "unit"}, {"limit": 3}, {"policies": Policies(entities="atomic")}]
)
def test_what_changes_the_trees_is_another_parse(
    change: dict[str, Any], text: Path, tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from derivlang.core.plugins import plug_ins
    from derivlang.parsing import registry
    from tests.plugin.derivlang_sample.parser import Chain

    class Point:
        value = "chain-too"

        def load(self) -> Callable[[], Chain]:
            return lambda: Chain("chain-too")

    points = plug_ins(registry.PARSERS.group)
    monkeypatch.setitem(points, "chain-too", Point())  # type: ignore[arg-type]
    parse(text)
    parsed = parsed_words(log)
    out = make("syn:fr", text, tmp_path / "out", **{"parser": "chain", **change})
    assert parsed_words(log) > parsed
    right(out)


def test_another_file_is_another_parse(text: Path, tmp_path: Path, log: Path) -> None:
    parse(text)
    parsed = parsed_words(log)
    text.write_text(text.read_text().replace("small", "large", 1))
    out = make("syn:fr", text, tmp_path / "out", parser="chain")
    assert parsed_words(log) == 2 * parsed
    assert undone(out) == text.read_bytes()


def test_make_from_a_parsed_set_is_make_from_the_source(text: Path, tmp_path: Path, log: Path) -> None:
    parse(text, tmp_path / "trees")
    right(tmp_path / "trees")
    assert undone(tmp_path / "trees") == text.read_bytes()
    parsed = parsed_words(log)
    ours = make("trans,syn:fr", tmp_path / "trees", tmp_path / "ours")
    assert parsed_words(log) == parsed
    theirs = make("trans,syn:fr", text, tmp_path / "theirs", parser="chain")
    same_rows(rows(ours), rows(theirs))
    assert undone(ours) == text.read_bytes()
    assert manifest(ours)["parser"] == manifest(theirs)["parser"]


@needs_data
@pytest.mark.parametrize("source", ["ner", "xnli"])
def test_make_from_a_parsed_labelled_set(source: str, tmp_path: Path) -> None:
    parse(source, tmp_path / "trees", data_dir=SHARED, limit=40)
    ours = make("syn:fr,inv", tmp_path / "trees", tmp_path / "ours")
    theirs = make("syn:fr,inv", source, tmp_path / "theirs", data_dir=SHARED, limit=40, parser="chain")
    right(ours)
    for split in manifest(theirs)["splits"]:
        same_rows(rows(ours, split), rows(theirs, split))
        assert undone(ours, split) == undone(theirs, split)


class StopError(Exception):
    pass


@pytest.mark.parametrize("alone", [True, False])
def test_a_parse_that_was_stopped_goes_on(
    alone: bool, text: Path, tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("derivlang.engine.parse.SHARD_TOKENS", 400)
    whole = make("syn:fr", text, tmp_path / "whole", parser="chain", parses=tmp_path / "other")
    total = parsed_words(log)
    log.unlink()
    done = []

    def stop(*given: Any) -> Any:
        done.append(run_task(*given))
        if len(done) == 2:
            raise StopError
        return done[-1]

    def start() -> None:
        if alone:
            parse(text)
        else:
            make("syn:fr", text, tmp_path / "out", parser="chain")

    with monkeypatch.context() as patch:
        patch.setattr(engines, "run_task", stop)
        with pytest.raises(StopError):
            start()
    assert not (tmp_path / "out").exists()
    before = parsed_words(log)
    assert 0 < before < total
    out = make("syn:fr", text, tmp_path / "out", parser="chain")
    assert parsed_words(log) == total
    assert snapshot(out) == snapshot(whole)


def test_two_workers_give_the_same_bytes(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("derivlang.engine.parse.SHARD_TOKENS", 1000)
    found = []
    for workers in (1, 2):
        parses = tmp_path / f"parses{workers}"
        options: dict[str, Any] = {"parser": "chain", "shard_tokens": 800, "workers": workers, "parses": parses}
        found.append((snapshot(make("trans,syn:fr", text, tmp_path / f"out{workers}", **options)), snapshot(parses)))
    assert found[0] == found[1]
    assert len([name for name in found[0][1] if name.endswith(".parquet")]) > 2


@pytest.mark.parametrize(
    ("spec", "language", "told"),
    [
        ("syn:fr", "ja", "pass substrate=ja or substrate=none"),
        ("trans,syn:hi", "pt-BR", "pass substrate=none"),
        ("syn:fr", "en", ""),
        ("syn:fr:substrate=ja", "ja", ""),
        ("syn:fr:substrate=none", "ja", ""),
        ("syn:fr:mix=0", "ja", ""),
        ('syn:fr:model="side=0.75"', "ja", ""),
    ],
)
def test_a_substrate_of_another_language_than_the_source_is_told(
    spec: str, language: str, told: str, tmp_path: Path
) -> None:
    options = ("--t", spec, trees(tmp_path), "--lang", language)
    for command in (("make", "-o", tmp_path / "out"), ("stats",), ("show",)):
        messages = commands.run(*command, *options).err
        assert told in messages
        assert messages.count("mixes in the word order of en") == bool(told)


def test_a_parser_for_trees_that_are_there_is_told() -> None:
    with pytest.warns(DerivlangWarning, match="demo has trees already, so --parser has no effect on it"):
        Source.open(Pipeline.parse("syn:fr"), SourceRequest("demo"), parser="english")


def test_parse_refuses_what_has_trees(tmp_path: Path) -> None:
    file = tmp_path / "t.conllu"
    file.write_text(TWO_SENTENCES)
    with pytest.raises(UsageError, match=r"has trees already"):
        parse(file)
