"""A user's own transforms and sources, by entry point: used by name everywhere, without any change here.

`tests/plugin` is such a package. It is not installed, but looks so.
"""

from __future__ import annotations

import gzip
import inspect
import json
import os
import re
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import derivlang
from derivlang.core.batch import Batch
from derivlang.core.errors import LayerError, UsageError
from derivlang.core.keys import Draws
from derivlang.core.layers.base import LAYERS
from derivlang.core.layers.tree import Tree
from derivlang.core.lexicon import TypeMap
from derivlang.core.order import Order
from derivlang.core.plugins import Registry
from derivlang.core.seal import sealed
from derivlang.formats.base import FORMATS
from derivlang.parsing.registry import PARSERS
from derivlang.pipeline import Pipeline
from derivlang.sources.named import SOURCES
from derivlang.store.verify import verify
from derivlang.transforms.base import Transform
from derivlang.transforms.registry import TRANSFORMS
from derivlang.transforms.word_order import Stride
from tests.commands import forked
from tests.commands import run as in_process
from tests.helpers import ROOT, cli, manifest, rows
from tests.strategies import batch_of, with_trees
from tests.tiny_runs import write_run

PLUGIN = ROOT / "tests" / "plugin"
TREES = PLUGIN / "derivlang_sample" / "sample-test.conllu"
NER = "Ann\tB-PER\nLee\tI-PER\nmet\tO\nBo\tB-PER\n.\tO\n\nIn\tO\nNew\tB-LOC\nYork\tI-LOC\n"


@pytest.fixture(scope="module")
def site(plugin_site: Path) -> Path:
    return plugin_site


def run(site: Path, *arguments: object, code: int = 0) -> str:
    done = forked(*arguments, path=[site], code=code)
    return done.out if code == 0 else done.err


@pytest.fixture(scope="module")
def trees(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package's source under its transforms, with ours between."""
    out = tmp_path_factory.mktemp("trees") / "out"
    run(site, "make", "--t", "turn,trans,mark", "sample", "-o", out)
    return out


@pytest.fixture(scope="module")
def layers(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source of the package that has a kind of layer of its own."""
    out = tmp_path_factory.mktemp("layers") / "out"
    run(site, "make", "--t", "inv", "pronouns", "-o", out)
    return out


@pytest.fixture(scope="module")
def entities(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("entities")
    (folder / "test.tsv").write_text(NER)
    run(site, "make", "--t", "turn:1,mark:<m>", folder / "test.tsv", "-o", folder / "out")
    return folder / "out"


def test_they_are_listed(site: Path) -> None:
    found = json.loads(run(site, "ls", "--json"))
    names = {entry["name"] for entry in found["transforms"]}
    assert {"turn", "mark", "inv", "trans"} <= names
    turn = next(entry for entry in found["transforms"] if entry["name"] == "turn")
    assert turn["summary"] == "Neighbouring words change places; the final marks stay last."
    assert turn["parameters"][0]["name"] == "skip"
    assert "sample" in {entry["name"] for entry in found["sources"]}
    assert "echo" in {entry["name"] for entry in found["generators"]}
    assert "turn" in cli("ls", path=[site]).stdout


def test_a_generated_source(site: Path, tmp_path: Path) -> None:
    done = cli("make", "--t", "inv", "source:echo=3:n=50", "-o", tmp_path / "out", "--workers", 2, path=[site])
    assert done.returncode == 0, done.stderr
    run(site, "verify", tmp_path / "out")
    found = rows(tmp_path / "out", "train")["tokens"].to_pylist()
    assert len(found) == 50
    assert {tuple(words) for words in found} == {("e0", "e0"), ("e1", "e1"), ("e2", "e2")}


def test_without_the_package_they_are_unknown(site: Path, tmp_path: Path) -> None:
    done = cli("make", "--t", "turn", "demo", "-o", tmp_path / "out")
    assert done.returncode == 2
    assert "there is no transform 'turn'" in done.stderr
    assert "did you mean mark" in run(site, "make", "--t", "marc", "demo", "-o", tmp_path / "out", code=2)


def test_show_knows_them(site: Path) -> None:
    shown = json.loads(run(site, "show", "--t", "turn", "Welcome to ACL .", "--json"))
    assert shown["tokens"] == "to Welcome ACL .".split()
    shown = json.loads(run(site, "show", "--t", "mark,inv", "Welcome to ACL .", "--json"))
    assert shown["tokens"] == "ACL to Welcome MARK .".split()
    assert shown["order"] == [2, 1, 0, -1, 3]


def test_verify_knows_them(site: Path, trees: Path, entities: Path) -> None:
    for folder in (trees, entities):
        assert json.loads(run(site, "verify", folder, "--json"))["ok"]


OPENING = (  # every command that opens a set
    ["show"],
    ["verify"],
    ["undo"],
    ["export", "--format", "text"],
    ["pair", "--format", "pharaoh"],
    ["make", "--t", "trans"],
    ["dict", "--t", "trans"],
    ["parse"],
    ["tokenizer", "train"],
    ["pretrain", "--t", "trans", "--source"],
)


@pytest.mark.parametrize("command", OPENING, ids=lambda words: words[0])
@pytest.mark.parametrize("kind", ["transform", "layer"])
def test_a_set_made_with_a_package_that_is_missing_names_it(
    command: list[str], kind: str, trees: Path, layers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if command[0] == "pretrain":
        pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    folder, name = {"transform": (trees, "turn"), "layer": (layers, "referents")}[kind]
    told = in_process(*command, folder, code=1).err
    assert f"{folder}{os.sep}derivlang.json: this was made with the {kind} {name!r}" in told
    assert "[missing-plug-in]" in told
    assert "install the package that provides it (derivlang-sample, " in told
    assert list(tmp_path.rglob("*.*")) == []


def test_the_manifest_names_the_packages_of_plug_ins_alone(
    site: Path, trees: Path, layers: Path, tmp_path: Path
) -> None:
    assert manifest(trees)["plug_ins"] == {f"transform {name}": "derivlang-sample" for name in ("turn", "mark")}
    assert manifest(layers)["plug_ins"] == {"layer referents": "derivlang-sample"}
    run(site, "make", "--t", "inv", "moods", "-o", tmp_path / "format")
    run(site, "make", "--t", "trans", tmp_path / "format", "-o", tmp_path / "again")
    for name in ("format", "again"):  # both are undone to it
        assert manifest(tmp_path / name)["plug_ins"] == {"format blocks": "derivlang-sample"}
    run(site, "make", "--t", "trans,inv", "demo", "-o", tmp_path / "none")
    assert "plug_ins" not in manifest(tmp_path / "none")


def test_a_run_made_with_a_package_that_is_missing_names_the_transform(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    folder = write_run(tmp_path / "run", "trans,inv")
    record = json.loads((folder / "run.json").read_text("utf-8"))
    (folder / "run.json").write_text(json.dumps(sealed(record | {"spec": "trans:table=2,turn"})), "utf-8")
    told = in_process("evaluate", folder, "--measure", "retrieval", code=1).err
    assert f"{folder}{os.sep}run.json: this was made with the transform 'turn'" in told
    assert "install the package that provides it" in told


@pytest.mark.parametrize("registry", [TRANSFORMS, LAYERS, FORMATS, PARSERS, SOURCES], ids=lambda r: r.kind)
def test_an_unknown_name_may_be_that_of_a_plug_in(registry: Registry[Any]) -> None:
    with pytest.raises(UsageError, match="a plug-in needs its package to be installed"):
        registry.find("nowhere")


def test_undo_gives_the_source_back(site: Path, trees: Path, entities: Path, tmp_path: Path) -> None:
    run(site, "undo", trees, "-o", tmp_path / "trees")
    assert (tmp_path / "trees").read_bytes() == TREES.read_bytes()
    run(site, "undo", entities, "-o", tmp_path / "tags")
    assert (tmp_path / "tags").read_text() == NER


def test_labels_of_trees(trees: Path) -> None:
    first, second = rows(trees, "test").to_pylist()
    assert first["order"] == [-1, 1, 0, 3, 2, 4, 5]
    assert first["tokens"][0] == "MARK"
    assert first["tokens"][1] == "ტო"
    upos = "NOUN PUNCT ADP NUM SYM SCONJ ADJ PART DET CCONJ PROPN PRON X _ ADV INTJ VERB AUX".split()
    assert [upos[tag] for tag in first["upos"]] == ["X", "ADP", "INTJ", "PUNCT", "PROPN", "PROPN", "PUNCT"]
    assert first["deprel"] == ["dep", "case", "root", "punct", "obl", "vocative", "punct"]
    assert first["head"] == [2, 5, 0, 6, 3, 3, 3]
    assert first["deps"] == ["2:dep", "5:case", "0:root", "6:punct", "3:obl:to", "3:vocative", "3:punct"]
    assert first["lemmas"][0] == "_"
    assert first["feats"] == ["_", "_", "_", "_", "Number=Sing", "Number=Sing", "_"]
    assert second["order"] == [-1, 1, 0, 3, 2]
    assert second["mwt"] == []
    assert second["head"] == [2, 4, 4, 0, 4]
    assert first["text"] == " ".join(first["tokens"])


def test_labels_of_entities(entities: Path) -> None:
    first, second = rows(entities, "test").to_pylist()
    classes = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    assert first["tokens"] == "<m> Ann met Lee Bo .".split()
    assert [classes[tag] for tag in first["ner_tags"]] == ["O", "B-PER", "O", "B-PER", "B-PER", "O"]
    assert second["tokens"] == "<m> In York New".split()
    assert [classes[tag] for tag in second["ner_tags"]] == ["O", "O", "B-LOC", "I-LOC"]


EXPORTS: dict[str, list[str]] = {
    "text": ["MARK ტო Წელცომე ， ᲐᲪᲚ Ანნ ．", "MARK ცა Ი სტაყ ნ＇ტ"],
    "pharaoh": ["0-2 1-1 2-4 3-3 4-5 5-6", "0-2 1-1 2-4 3-3"],
}


@pytest.mark.parametrize("kind", ["text", "pharaoh"])
def test_export_of_lines(kind: str, site: Path, trees: Path) -> None:
    assert run(site, "export", trees, "--format", kind, "-o", "-").splitlines() == EXPORTS[kind]


def test_export_of_the_source(site: Path, trees: Path) -> None:
    text = run(site, "export", trees, "--format", "text", "--source", "-o", "-")
    assert text.splitlines() == ["Welcome to ACL , Ann .", "I ca n't stay"]


def test_export_of_trees(site: Path, trees: Path) -> None:
    blocks = run(site, "export", trees, "--format", "conllu", "-o", "-").split("\n\n")
    lines = blocks[0].splitlines()
    assert "# text = MARK ტო Წელცომე ， ᲐᲪᲚ Ანნ ．" in lines
    assert lines[-7].split("\t") == ["1", "MARK", "_", "X", "X", "_", "2", "dep", "2:dep", "_"]
    assert [line.split("\t")[6] for line in lines[-7:]] == ["2", "5", "0", "6", "3", "3", "3"]
    assert all("SpaceAfter" not in block for block in blocks)


def test_what_conllu_export_writes_can_be_read(site: Path, trees: Path, tmp_path: Path) -> None:
    run(site, "export", trees, "--format", "conllu", "-o", tmp_path / "a.conllu")
    run(site, "make", "--t", "identity", tmp_path / "a.conllu", "-o", tmp_path / "out")
    assert rows(tmp_path / "out")["tokens"].to_pylist() == rows(trees, "test")["tokens"].to_pylist()


def test_export_of_rows(site: Path, trees: Path) -> None:
    lines = [json.loads(line) for line in run(site, "export", trees, "--format", "jsonl", "-o", "-").splitlines()]
    assert [line["order"] for line in lines] == rows(trees, "test")["order"].to_pylist()
    assert all(len(line["key"]) == 16 for line in lines)


def test_export_of_tags(site: Path, trees: Path, entities: Path) -> None:
    text = run(site, "export", entities, "--format", "tsv", "-o", "-")
    assert text == "<m>\tO\nAnn\tB-PER\nmet\tO\nLee\tB-PER\nBo\tB-PER\n.\tO\n\n<m>\tO\nIn\tO\nYork\tB-LOC\nNew\tI-LOC\n"
    assert run(site, "export", trees, "--format", "tsv", "-o", "-").splitlines()[:2] == ["MARK\tX", "ტო\tADP"]


def test_export_refuses_what_does_not_fit(site: Path, entities: Path, tmp_path: Path) -> None:
    message = run(site, "export", entities, "--format", "squad", "-o", tmp_path / "x.json", code=2)
    assert "does not fit the format squad" in message


def test_verify_finds_an_order_that_depends_on_the_batch(tmp_path: Path) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Rotated(Transform):
        """Each sentence rotated by the number of sentences in the batch."""

        name = "rotated"

        def order(self, batch: Batch, draws: Draws) -> Order:
            parts = [np.roll(np.arange(a, b), len(batch.tails)) for a, b in pairwise(batch.sentences)]
            return Order(np.concatenate(parts).astype(np.int32), batch.sentences, batch.tails, batch.n_words)

    derivlang.register(Rotated)
    try:
        made = derivlang.make("demo", "rotated", tmp_path / "out")
        (problem, *_) = verify(made.path)["problems"]
    finally:
        del TRANSFORMS.added["rotated"]
    assert problem["what"] == "derived by itself it is another row: a plug-in looks beyond the sentence"


def test_their_output_is_a_source(site: Path, trees: Path, tmp_path: Path) -> None:
    run(site, "make", "--t", "inv", trees, "-o", tmp_path / "after")
    run(site, "make", "--t", "turn,trans,mark,inv", "sample", "-o", tmp_path / "both")
    ours, theirs = (rows(tmp_path / name, "test") for name in ("after", "both"))
    assert ours.to_pylist() == theirs.to_pylist()
    assert json.loads(run(site, "verify", tmp_path / "after", "--json"))["ok"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("derivlang_sample.source:FOLDER", "is not a derivlang Transform"),
        ("derivlang_nowhere:Turn", "derivlang_nowhere"),
        ("derivlang_sample.transforms:Nope", "Nope"),
        ("derivlang_sample.transforms:Turn", "is a transform whose class has the name 'turn'"),
    ],
)
def test_a_plug_in_that_is_broken_is_named(value: str, message: str, site: Path, tmp_path: Path) -> None:
    info = tmp_path / "broken-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(f"[derivlang.transforms]\nbroken = {value}\n")
    done = forked("show", "--t", "broken", "a b .", path=[tmp_path, site], code=None)
    assert done.code in (1, 2)
    assert message in done.err
    assert "Traceback" not in done.err
    forked("show", "--t", "inv", "a b .", path=[tmp_path, site])


def test_the_code_of_a_plug_in_is_of_its_language(tmp_path: Path) -> None:
    info = tmp_path / "edited-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: edited\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[derivlang.transforms]\nedited = edited:Edited\n")
    text = (PLUGIN / "derivlang_sample" / "transforms.py").read_text("utf-8")
    text = text.replace("class Turn", "class Edited").replace('"turn"', '"edited"')
    make = ("make", "--t", "edited", "demo", "-o", tmp_path / "out")
    for edited, code, told in ((text, 0, "sentences"), (text, 0, "complete"), (f"{text}\n# more\n", 1, "other")):
        (tmp_path / "edited.py").write_text(edited, "utf-8")
        done = forked(*make, path=[tmp_path], code=code)
        assert told in done.out + done.err


def test_a_source_that_is_broken_spoils_no_other(site: Path, tmp_path: Path) -> None:
    info = tmp_path / "broken-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[derivlang.sources]\nbroken = derivlang_nowhere:source\n")
    forked("make", "--t", "inv", "sample", "-o", tmp_path / "out", path=[tmp_path, site])
    asked = forked("make", "--t", "inv", "broken", "-o", tmp_path / "no", path=[tmp_path, site], code=None)
    assert asked.code in (1, 2)
    assert "Traceback" not in asked.err


MOODS = PLUGIN / "derivlang_sample" / "sample-test.blocks"


@pytest.mark.parametrize("source", ["moods", MOODS, "folder", "gz"])
def test_a_format_of_a_package_is_made_verified_and_undone(source: Any, site: Path, tmp_path: Path) -> None:
    """By its source's name, by the suffix of a file, in a folder, packed."""
    if source == "folder":
        source = tmp_path / "in"
        source.mkdir()
        (source / "x.test.blocks").write_bytes(MOODS.read_bytes())
    elif source == "gz":
        source = tmp_path / "x.test.blocks.gz"
        source.write_bytes(gzip.compress(MOODS.read_bytes()))
    run(site, "make", "--t", "trans,inv", source, "-o", tmp_path / "out")
    table = rows(tmp_path / "out", "test")
    assert table["source"].to_pylist() == [["Ann", "met", "Bo", "."], ["Bo", "left", "!"]]
    assert table["order"].to_pylist() == [[2, 1, 0, 3], [1, 0, 2]]
    assert table["mood"].to_pylist() == ["glad", "sad"]
    assert json.loads(run(site, "verify", tmp_path / "out", "--json"))["ok"]
    assert run(site, "undo", tmp_path / "out", "-o", "-").encode() == MOODS.read_bytes()


def test_formats_of_a_package_are_listed(site: Path) -> None:
    listed = {entry["name"]: entry["suffixes"] for entry in json.loads(run(site, "ls", "--json"))["formats"]}
    assert listed["blocks"] == [".blocks"]
    assert listed["text"] == [".txt", ".tokens"]
    assert ".blocks" in run(site, "ls")


@pytest.mark.parametrize("content", ["words: a b\nmood: bored\n", "words: a b\nmood\n"])
def test_whatever_a_reader_of_a_package_raises_is_one_error(content: str, site: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.test.blocks"
    path.write_text(content)
    told = run(site, "make", "--t", "inv", path, "-o", tmp_path / "out", code=1)
    assert str(path) in told
    assert "Traceback" not in told
    assert not (tmp_path / "out" / "derivlang.json").exists()


def test_a_format_that_is_missing_is_named(site: Path, tmp_path: Path) -> None:
    """The set verifies without the package (its labels are columns), but its form cannot be written."""
    run(site, "make", "--t", "inv", "moods", "-o", tmp_path / "out")
    done = forked("undo", tmp_path / "out", "-o", "-", code=None)
    assert done.code in (1, 2)
    assert "this was made with the format 'blocks'" in done.err
    assert "install the package that provides it (derivlang-sample, " in done.err
    forked("verify", tmp_path / "out")
    known = forked("make", "--t", "inv", MOODS, "-o", tmp_path / "no", code=2)
    assert "no format has the suffix '.blocks'" in known.err


PRONOUNS = PLUGIN / "derivlang_sample" / "sample-test.jsonl"


def test_a_layer_of_a_package_is_made_verified_and_undone(site: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(site, "make", "--t", "mark,inv", "pronouns", "-o", out)
    first, second = rows(out, "test").to_pylist()
    assert first["tokens"] == "waved he : Bo met Ann MARK .".split()
    assert first["refers"] == [0, 4, 0, 0, 0, 0, 0, 0]
    assert (first["source_refers"], second["source_refers"]) == (None, None)
    assert json.loads(run(site, "verify", out, "--json"))["ok"]
    back = run(site, "undo", out, "-o", "-").splitlines()
    assert [json.loads(line) for line in back] == [json.loads(line) for line in PRONOUNS.read_text().splitlines()]
    again = tmp_path / "again"
    run(site, "make", "--t", "inv", out, "-o", again)
    assert rows(again, "test")["refers"].to_pylist()[0] == [0, 0, 0, 0, 0, 4, 0, 0]


def test_a_task_of_a_package_is_fine_tuned_and_reported(site: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("matplotlib")
    from tests.tiny_runs import write_run

    model = write_run(tmp_path / "run", fingerprint="0", steps=1)
    (tmp_path / "sets").mkdir()
    for split in ("train", "dev", "test"):
        (tmp_path / "sets" / f"{split}.blocks").write_bytes(MOODS.read_bytes())
    words = ("--task", f"mood:{tmp_path}/sets", "--seeds", 1, "--measure", "none", "--threads", 1, "--json")
    ((name, found),) = json.loads(run(site, "evaluate", model, *words)).items()
    assert re.fullmatch("mood:sets-[0-9a-f]{8}", name)
    assert (found["settings"]["epochs"], found["settings"]["test"]) == (3, 2)
    assert {row["value"] for row in found["scores"] if row["regime"] == "chance"} == {50.0}
    assert "mood" in {entry["name"] for entry in json.loads(run(site, "ls", "--json"))["tasks"]}
    # without the package its scores can be reported, and its name is unknown
    assert "there is no task 'mood'" in forked("evaluate", model, *words, code=2).err
    other = write_run(tmp_path / "other", "trans", steps=1)
    run(site, "evaluate", other, *words)
    is_in_every_form((model, other), tmp_path / "report", name, "accuracy")


def is_in_every_form(runs: tuple[Path, ...], out: Path, label: str, metric: str) -> None:
    """A score is in the page, the text table, and a table of its own: without its package."""
    forked("report", *runs, "-o", out)
    assert label in (out / "index.html").read_text("utf-8")
    lines = (out / "scores.tsv").read_text("utf-8").splitlines()
    assert any(f"\t{label}\t{metric}\t" in line for line in lines)
    data = json.loads((out / "report.json").read_text("utf-8"))
    stem = re.sub("[^a-z0-9]+", "-", label.lower())
    assert any(name.startswith("tables/") and stem in name for name in data["files"])


def test_an_objective_of_a_package_trains_on_a_stream_of_its_own(site: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    sizes = ("--vocab-size", 300, "--batch-size", 4, "--steps", 2, "--threads", 1, "--data", tmp_path / "data")
    words = ("pretrain", "--source", "demo", "--t", "trans,inv", "--objective", "derived-mlm", *sizes)
    run(site, *words, "-o", tmp_path / "run")
    streams = json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))["streams"]
    assert list(streams) == ["derived"]
    assert streams["derived"]["rows_per_step"] == 4
    assert "there is no objective 'derived-mlm'" in forked(*words, "-o", tmp_path / "without", code=2).err


def test_register_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    from derivlang.transforms import registry

    monkeypatch.setattr(registry.TRANSFORMS, "added", {})

    @derivlang.register
    @dataclass(frozen=True, kw_only=True)
    class Nothing(derivlang.Transform):
        """Does nothing at all."""

        name = "nothing"
        level: Any = derivlang.param(3, "how much of it")

        def order(self, batch: Batch, draws: Draws) -> Order:
            return super().order(batch, draws)

    assert str(derivlang.Pipeline.parse("nothing,inv")) == "nothing,inv"
    assert derivlang.derive("a b .", "nothing,inv").text == "b a ."
    assert "nothing" in registry.transform_names()


def test_parameters_of_a_base_class_stand_first() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Longer(Stride):
        """Goes on."""

        name = "longer"
        by: int = derivlang.param(7, "words more", positional=True)

    longer = Longer.from_values(["3", "5"], {})
    assert (longer.k, longer.by) == (3, 5)
    assert Longer.from_values(["3"], {"by": "5"}) == longer
    assert str(longer) == "longer:3:5"


class Named(Transform):
    """A transform that could be used, but for its name."""

    name = "a:b"

    def order(self, batch: Batch, draws: Draws) -> Order:
        return super().order(batch, draws)


class Nameless(Named):
    name = ""


class Taken(Named):
    name = "inv"


class Misspelt(Transform):
    """The name of its method is misspelt."""

    name = "misspelt"

    def ordr(self, batch: Batch, draws: Draws) -> Order:
        return super().order(batch, draws)


@dataclass(frozen=True, kw_only=True)
class PlainField(Named):
    """A field without `param`."""

    name = "plain"
    by: int = 2


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Named, "'a:b' is not a name of a transform"),
        (Nameless, "'' is not a name of a transform"),
        (Taken, "derivlang has a transform named 'inv'"),
        (Misspelt, "the transform 'misspelt' does nothing: its class does not define order or fit or forms"),
        (PlainField, "plain: the field by is not declared as a parameter"),
        (dict, "is not a derivlang Transform"),
    ],
)
def test_register_refuses(kind: Any, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        derivlang.register(kind)
    assert caught.value.id == "plug-in"


def test_broken_plug_ins_are_listed_as_warnings(site: Path, tmp_path: Path) -> None:
    info = tmp_path / "broken-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(
        "[derivlang.transforms]\ngone = derivlang_sample.transforms:Gone\ninv = derivlang_sample.transforms:Turn\n"
        "[derivlang.objectives]\nlossless = derivlang_lossless:Lossless\n"
    )
    (tmp_path / "derivlang_lossless.py").write_text(
        "from derivlang.training.objectives.base import Objective\nclass Lossless(Objective):\n    name = 'lossless'\n"
    )
    done = forked("ls", path=[tmp_path, site])
    assert "  turn " in done.out
    for told in (
        "the plug-in 'gone' (derivlang_sample.transforms:Gone) cannot be loaded",
        "the plug-in 'inv' (derivlang_sample.transforms:Turn) is ignored: derivlang has a transform of this name",
        "the objective 'lossless' does nothing: its class does not define loss; it is left out",
    ):
        assert told in done.err
    for line in (("make", "demo", "-o", tmp_path / "out"), ("show", "It rained .")):
        assert "the plug-in 'inv'" in forked(*line, "--t", "inv", path=[tmp_path, site]).err


class Fitless(Transform):
    name = "fitless"

    def fit(self, types: pa.Array, counts: Any, draws: Draws) -> TypeMap:
        return {}  # type: ignore[return-value]


def test_a_fit_that_returns_something_else_is_refused() -> None:
    with pytest.raises(UsageError, match="`fit` of the transform fitless returned dict, not a TypeMap"):
        Pipeline((Fitless(),)).fit()


def test_a_measure_of_a_package(site: Path, tmp_path: Path) -> None:
    run_folder = write_run(tmp_path / "run", "trans,inv")
    # a measure may be named as a task
    words = ("--task", "centroids", "--measure", "retrieval", "--pairs", 9, "--threads", 1)
    assert "centroids, layer 2: cosine " in run(site, "evaluate", run_folder, *words)
    stored = json.loads((run_folder / "evaluation.json").read_text("utf-8"))
    assert sorted(stored["measures"]) == ["centroids", "retrieval"]
    assert set(pq.read_table(run_folder / "evaluation" / "centroids.parquet")["layer"].to_pylist()) == {0, 1, 2}
    assert "centroids" in [measure["name"] for measure in json.loads(run(site, "ls", "--json"))["measures"]]
    # without the package, what it measured is kept, and is reported
    forked("evaluate", run_folder, "--measure", "alignment", "--threads", 1)
    kept = json.loads((run_folder / "evaluation.json").read_text("utf-8"))
    assert sorted(kept["measures"]) == ["alignment", "centroids", "retrieval"]
    is_in_every_form((run_folder,), tmp_path / "report", "centroids", "cosine")
    assert "did you mean" in run(site, "evaluate", run_folder, "--measure", "centroid", code=2)
    forked("evaluate", run_folder, "--measure", "centroids", code=2)


class Failing(Transform):
    """A transform with a fault in one of its methods."""

    name = "failing"

    def order(self, batch: Batch, draws: Draws) -> Order:
        return Order.identity(batch.sentences, batch.tails.take(9))  # numpy raises, two calls further

    def fit(self, types: pa.Array, counts: Any, draws: Draws) -> TypeMap:
        raise KeyError("no such type")


@pytest.mark.parametrize(
    ("method", "what"),
    [
        ("order", "`order` of the transform failing failed: IndexError: index 9 is out of bounds"),
        ("fit", "`fit` of the transform failing failed: KeyError: 'no such type'"),
    ],
)
def test_an_exception_in_a_transform_is_one_message_with_its_line(method: str, what: str) -> None:
    pipeline = Pipeline((Failing(),))
    call = partial(pipeline.order, batch_of([["a", "."]])) if method == "order" else pipeline.fit
    with pytest.raises(UsageError) as caught:
        call()
    lines, first = inspect.getsourcelines(getattr(Failing, method))
    assert caught.value.id == "plug-in"
    assert caught.value.what.startswith(what)
    assert caught.value.where == f"{__file__}:{first + len(lines) - 1}"


def test_a_message_of_a_transform_is_left_as_it_is() -> None:
    class Refusing(Transform):
        name = "refusing"

        def order(self, batch: Batch, draws: Draws) -> Order:
            raise LayerError("not these words", id="order")

    with pytest.raises(LayerError, match="not these words"):
        Pipeline((Refusing(),)).order(batch_of([["a"]]))


def test_trees_and_tags_of_a_batch() -> None:
    batch = with_trees(batch_of([["a", "b"], ["c"]], rule="unit"))
    tree = batch.layers["head"]
    assert isinstance(tree, Tree)
    heads = tree.head.tolist()
    assert batch.trees().parent.tolist() == [heads[0] - 1, heads[1] - 1, -1]
    assert batch.trees().relation.tolist() == [tree.deprel.values[code].as_py() for code in tree.deprel.codes]
    assert len(batch.tags()) == 3
    bare = batch_of([["a"]])
    with pytest.raises(LayerError, match=r"no trees \[needs-layer\]\n  declare `needs = \(\"head\",\)`"):
        bare.trees()
    with pytest.raises(LayerError, match="no tags"):
        bare.tags()
