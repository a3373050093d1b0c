"""Finding a parser, and those of other packages: Stanza, spaCy, plug-ins, and one clear message for each fault."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc

from derivlang.core import plugins
from derivlang.core.arrays import Int32, Int64
from derivlang.core.errors import DataError, DerivlangError, UsageError
from derivlang.core.trees import first_fault
from derivlang.parsing import registry
from derivlang.parsing.base import UPOS, Parser, Parses
from derivlang.parsing.bundled import ModelParser
from derivlang.parsing.foreign import load_spacy, load_stanza, spacy_parser, stanza_parser
from derivlang.parsing.model import load_model, save_model
from derivlang.parsing.registry import BUNDLED, find_parser, parser_names
from tests.commands import run
from tests.helpers import Touching
from tests.leaves import changes
from tests.test_parsing import ENGLISH, parse

# finding


def test_the_bundled_parser_is_found_by_language_and_by_name() -> None:
    assert find_parser(None, "en") is find_parser("english", "en")
    assert {"english", "english-light", "stanza"} <= set(parser_names())


@pytest.mark.parametrize(
    ("spec", "language", "id", "message"),
    [
        (None, "fr", "parser-language", "no parser for the language 'fr'"),
        ("english", "fr", "parser-language", "is for the language 'en', but the source is in 'fr'"),
        ("englsh", "en", "unknown-parser", "did you mean english or english-light?"),
        ("spacy:", "en", "parser-name", "needs the name of a pipeline"),
        ("spacy:no_such_pipeline", "en", "parser-missing", "cannot load the pipeline 'no_such_pipeline'"),
        ("no/such/folder", "en", "parser-missing", "model.npz is missing"),
    ],
)
def test_what_cannot_be_found_is_said_so(spec: str | None, language: str, id: str, message: str) -> None:
    with pytest.raises(DerivlangError) as caught:
        find_parser(spec, language)
    assert caught.value.id == id
    assert message in caught.value.what
    assert caught.value.fix


def damage_weights(folder: Path) -> None:
    data = (folder / "model.npz").read_bytes()
    (folder / "model.npz").write_bytes(data[: len(data) // 2])


def damage_byte(folder: Path) -> None:
    data = bytearray((folder / "model.npz").read_bytes())
    data[len(data) // 2] ^= 255
    (folder / "model.npz").write_bytes(bytes(data))


def damage_card(folder: Path) -> None:
    (folder / "model.json").write_text("{", "utf-8")


def lose_relations(folder: Path) -> None:
    card = json.loads((folder / "model.json").read_text("utf-8"))
    (folder / "model.json").write_text(json.dumps({**card, "relations": ["root"]}), "utf-8")


def later_format(folder: Path) -> None:
    card = json.loads((folder / "model.json").read_text("utf-8"))
    (folder / "model.json").write_text(json.dumps({**card, "format": 99}), "utf-8")


def lose_a_matrix(folder: Path) -> None:
    with np.load(folder / "model.npz") as file:
        arrays = {name: file[name] for name in file.files if name != "forward1.input"}
    np.savez(folder / "model.npz", **arrays)


def misfit_a_matrix(folder: Path) -> None:
    with np.load(folder / "model.npz") as file:
        arrays = {name: file[name] for name in file.files}
    arrays["forward1.input"] = arrays["forward1.input"][:, :-8]
    np.savez(folder / "model.npz", **arrays)


@pytest.mark.parametrize(
    "damage",
    [damage_weights, damage_byte, damage_card, lose_relations, later_format, lose_a_matrix, misfit_a_matrix],
)
def test_a_damaged_model_is_one_message(damage: Any, tmp_path: Path) -> None:
    for name in ("model.npz", "model.json"):
        (tmp_path / name).write_bytes((ENGLISH / name).read_bytes())
    assert ModelParser.load(tmp_path).fingerprint == find_parser("english", "en").fingerprint
    damage(tmp_path)
    with pytest.raises(DataError) as caught:
        find_parser(str(tmp_path), "en")
    assert caught.value.id == "parser-damaged"
    assert caught.value.where == str(tmp_path)


def test_every_changed_leaf_of_a_card_and_other_weights_are_noticed(tmp_path: Path) -> None:
    """Of a model that `parser train` writes; the bundled ones have no hash."""
    model = find_parser("english", "en").model
    assert not model.has_hash
    save_model(model, tmp_path)
    assert load_model(tmp_path).has_hash
    assert load_model(tmp_path).fingerprint == model.fingerprint
    assert run("verify", tmp_path).out == f"{tmp_path}: 1 file checked, nothing is wrong\n"
    path = tmp_path / "model.json"
    good = path.read_text("utf-8")
    for _, other in changes(json.loads(good)):
        path.write_text(json.dumps(other), "utf-8")
        with pytest.raises(DataError) as caught:
            load_model(tmp_path)
        assert caught.value.id == "parser-damaged"
    path.write_text(good, "utf-8")
    with np.load(tmp_path / "model.npz") as file:
        arrays = {name: file[name] for name in file.files}
    arrays["forward1.input"] = -arrays["forward1.input"]  # of the right form
    np.savez(tmp_path / "model.npz", **arrays)
    with pytest.raises(DataError, match=r"model\.npz is not the one that model\.json was written for"):
        load_model(tmp_path)


def test_a_model_of_another_language_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.npz").write_bytes((ENGLISH / "model.npz").read_bytes())
    card = json.loads((ENGLISH / "model.json").read_text("utf-8"))
    (tmp_path / "model.json").write_text(json.dumps({**card, "language": "fr"}), "utf-8")
    assert find_parser(str(tmp_path), "fr").language == "fr"
    with pytest.raises(UsageError, match=r"is for the language 'fr', but the source is in 'en'"):
        find_parser(str(tmp_path), "en")


# a plug-in


@dataclass(frozen=True)
class Chain:
    """Every word hangs from the one before it."""

    name: str = "chain"
    language: str = "en"
    fingerprint: str = "0"

    def parse(self, words: Int32, types: pa.Array, sentences: Int64) -> Parses:
        head = np.concatenate([np.arange(n) for n in np.diff(sentences)]).astype(np.int32)
        zero = np.zeros(len(words), np.int32)
        return Parses(zero.astype(np.uint8), head, zero, ("dep",))


def test_a_plug_in_is_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {"chain": Chain, "broken": object}
    monkeypatch.setattr(plugins, "plug_ins", lambda group: made)
    monkeypatch.setattr(plugins, "load_plug_in", lambda group, name: made[name])
    assert isinstance(find_parser("chain", "en"), Parser)
    assert "chain" in parser_names()
    with pytest.raises(UsageError, match="not a derivlang Parser"):
        find_parser("broken", "en")
    registry._load.cache_clear()


# Stanza: a stand-in with the objects that the adapter touches


class Pipeline:
    """Tags all words NOUN and hangs them from the first."""

    def __init__(self, relation: str = "dep", heads: Any = lambda n: [0] + [1] * (n - 1)) -> None:
        self.config: dict[str, Any] = {}
        self.calls: list[list[int]] = []
        self.relation, self.heads = relation, heads

    def __call__(self, sentences: list[list[str]]) -> Any:
        self.calls.append([len(words) for words in sentences])
        return SimpleNamespace(
            sentences=[
                SimpleNamespace(
                    words=[
                        SimpleNamespace(upos="NOUN", head=head, deprel="root" if head == 0 else self.relation)
                        for head in self.heads(len(words))
                    ]
                )
                for words in sentences
            ]
        )


def test_stanza_gets_words_by_length_and_answers_in_place() -> None:
    pipeline = Pipeline()
    parses = parse([["a"] * 5, ["b"], [], "= c 1 @,@ 000 =".split()], stanza_parser(pipeline, "stanza", "en", "1"))
    assert pipeline.calls == [[1, 2, 5]]
    assert parses.head.tolist() == [0, 1, 1, 1, 1, 0, 2, 0, 2, 3, 3, 2]
    assert {UPOS[code] for code in parses.upos} == {"NOUN", "X", "PUNCT"}
    assert [parses.relations[code] for code in parses.deprel[-6:]] == [
        "punct", "root", "dep", "goeswith", "goeswith", "punct",
    ]  # fmt: skip


def test_stanza_gets_a_bounded_number_of_words_at_once() -> None:
    pipeline = Pipeline()
    parse([["a"] * 100] * 500, stanza_parser(pipeline, "stanza", "en", "1"))
    assert max(map(sum, pipeline.calls)) <= 20_100
    assert sum(map(len, pipeline.calls)) == 500


@pytest.mark.parametrize(
    ("pipeline", "id", "message"),
    [
        (Pipeline(heads=lambda n: [0, 0, 1][:n]), "parser-tree", "did not return a tree"),
        (Pipeline(heads=lambda n: [0]), "parser-tree", "returned 1 heads for a sentence of 3 words"),
        (Pipeline(relation="pobj"), "parser-labels", "'pobj'"),
    ],
)
def test_a_foreign_parser_that_gives_no_ud_trees_is_refused(pipeline: Pipeline, id: str, message: str) -> None:
    with pytest.raises(DerivlangError) as caught:
        parse([["a", "b", "c"]], stanza_parser(pipeline, "mine", "en", "1"))
    assert caught.value.id == id
    assert message in caught.value.what


def fake_stanza(monkeypatch: pytest.MonkeyPatch, made: Any) -> dict[str, Any]:
    seen: dict[str, Any] = {}

    def build(**options: Any) -> Any:
        seen.update(options)
        if isinstance(made, Exception):
            raise made
        return made

    module = ModuleType("stanza")
    vars(module).update(Pipeline=build, __version__="1.9")
    monkeypatch.setitem(sys.modules, "stanza", module)
    return seen


def test_stanza_is_asked_for_given_words_and_downloads_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "depparse.pt").write_bytes(b"weights")
    pipeline = Pipeline()
    pipeline.config["depparse_model_path"] = str(tmp_path / "depparse.pt")
    seen = fake_stanza(monkeypatch, pipeline)
    first = load_stanza(str(tmp_path), "fr")
    assert (seen["lang"], seen["dir"], seen["download_method"]) == ("fr", str(tmp_path), None)
    assert seen["tokenize_pretokenized"] is True
    assert (first.name, first.language) == (f"stanza:{tmp_path}", "fr")
    assert load_stanza(str(tmp_path), "fr").fingerprint == first.fingerprint
    (tmp_path / "depparse.pt").write_bytes(b"other weights")
    assert load_stanza(str(tmp_path), "fr").fingerprint != first.fingerprint


@pytest.mark.parametrize("kind", ["stanza", "spacy"])
def test_no_pickle_of_a_folder_is_loaded(kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Not even if the package asks for it, as older versions do."""
    torch.save({"weights": Touching(tmp_path / "ran")}, tmp_path / "model.pt")

    def load(*_: Any, **options: Any) -> Any:
        torch.load(tmp_path / "model.pt", weights_only=False)

    if kind == "stanza":
        fake_stanza(monkeypatch, Pipeline())
        monkeypatch.setattr(sys.modules["stanza"], "Pipeline", load)
    else:
        monkeypatch.setattr(spacy, "load", load)
    with pytest.raises(DataError) as caught:
        load_stanza(str(tmp_path), "en") if kind == "stanza" else load_spacy(str(tmp_path))
    assert caught.value.id == "parser-missing"
    assert not (tmp_path / "ran").exists()
    load()
    assert (tmp_path / "ran").exists(), "the pickle would have run, and does so outside"


def test_stanza_without_models_names_the_command_that_fetches_them(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_stanza(monkeypatch, FileNotFoundError("resources.json"))
    with pytest.raises(DataError, match=r"models for tagging and parsing 'de'") as caught:
        load_stanza(None, "de")
    assert caught.value.fix is not None
    assert "stanza.download('de')" in caught.value.fix


def test_stanza_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stanza", None)
    with pytest.raises(DerivlangError, match="needs the package stanza") as caught:
        load_stanza(None, "en")
    assert caught.value.fix == "pip install 'derivlang[stanza]'"


# spaCy: tiny pipelines made here


@Language.component("test_chain", assigns=["token.head", "token.dep"])
def _chain(doc: Doc) -> Doc:
    """Every word hangs from the first, all other words are its objects."""
    for token in doc:
        token.head = doc[0]
        token.dep_ = "ROOT" if token.i == 0 else "obj"
    return doc


@Language.component("test_tags", assigns=["token.pos"])
def _tags(doc: Doc) -> Doc:
    for token in doc:
        token.pos_ = "NOUN"
    return doc


def pipeline(*components: str) -> Any:
    nlp = spacy.blank("en")
    for component in components:
        nlp.add_pipe(component)
    return nlp


def test_a_spacy_pipeline_parses_given_words() -> None:
    parser = spacy_parser(pipeline("test_tags", "test_chain"), "spacy:mine")
    parses = parse([["Don't", "stop", "."], ["Yes"], []], parser)
    assert parses.head.tolist() == [0, 1, 1, 0]
    assert [parses.relations[code] for code in parses.deprel] == ["root", "obj", "obj", "root"]
    assert isinstance(parser, Parser)


def trained(labels: dict[str, str]) -> Any:
    """A pipeline with spaCy's own tagger and parser, trained for some steps on two sentences."""
    from spacy.training import Example

    nlp = spacy.blank("en")
    nlp.add_pipe("morphologizer")
    nlp.add_pipe("parser", config={"min_action_freq": 1, "learn_tokens": False})
    words = ["She", "reads", "books", "."]
    deps = [labels.get(name, name) for name in ("nsubj", "ROOT", "obj", "punct")]
    gold = {"words": words, "heads": [1, 1, 1, 1], "deps": deps, "pos": ["PRON", "VERB", "NOUN", "PUNCT"]}
    data = [Example.from_dict(Doc(nlp.vocab, words=words), gold)] * 2
    spacy.util.fix_random_seed(1)
    optimizer = nlp.initialize(lambda: data)
    for _ in range(12):
        nlp.update(data, sgd=optimizer)
    return nlp


def test_a_trained_spacy_pipeline_from_a_folder(tmp_path: Path) -> None:
    nlp = trained({})
    nlp.add_pipe("sentencizer", first=True)
    nlp.to_disk(tmp_path)
    parser = find_parser(f"spacy:{tmp_path}", "en")
    offsets = np.array([0, 4, 8])
    parses = parse([["She", "reads", "books", "."], [".", "a", ".", "b"]], parser)
    assert first_fault(parses.head, offsets) is None
    assert parses.head[:4].tolist() == [2, 0, 2, 2]
    assert [UPOS[code] for code in parses.upos[:4]] == ["PRON", "VERB", "NOUN", "PUNCT"]
    assert len(parser.fingerprint) == 16
    assert load_spacy(str(tmp_path)).fingerprint == parser.fingerprint
    with pytest.raises(UsageError, match="is for the language 'en', but the source is in 'fr'"):
        find_parser(f"spacy:{tmp_path}", "fr")


def test_a_pipeline_with_labels_that_are_not_ud_is_refused() -> None:
    with pytest.raises(DerivlangError, match=r"its relations are dobj") as caught:
        spacy_parser(trained({"obj": "dobj"}), "spacy:en_core_web_sm")
    assert caught.value.id == "parser-labels"


@pytest.mark.parametrize(
    ("components", "missing"), [(["test_tags"], "parser"), (["test_chain"], "tagger"), ([], "parser")]
)
def test_a_pipeline_that_does_not_tag_or_parse_is_refused(components: list[str], missing: str) -> None:
    with pytest.raises(DerivlangError, match=f"has no {missing}") as caught:
        spacy_parser(pipeline(*components), "spacy:mine")
    assert caught.value.id == "parser-incomplete"


# the command line


def test_parsers_are_listed() -> None:
    found = {row["name"]: row for row in run("parser", "ls", "--json").json}
    for name in BUNDLED["en"]:
        assert found[name]["language"] == "en"
        assert found[name]["licence"] == "CC-BY-SA-4.0"
    assert "taught by english" in found["english-light"]["summary"]
    assert {"stanza", "spacy:NAME"} <= set(found)
    assert run("parser", "ls").out.startswith("english ")


def test_faults_are_one_line_each(tmp_path: Path) -> None:
    assert "[unknown-parser]" in run("parser", "score", "englsh", tmp_path / "a.conllu", code=2).err
    (tmp_path / "a.conllu").write_text("1\ta\t_\tFOO\t_\t_\t0\troot\t_\t_\n\n", "utf-8")
    assert "[upos]" in run("parser", "score", "english", tmp_path / "a.conllu", code=1).err
    assert run("parser", "score", "english", tmp_path, code=1).err.count("[missing-file]") == 1
