"""Runs of several languages: a source, a language in another script, a clone with ids of its own, and another text."""

from __future__ import annotations

import json
import shutil
import warnings
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import derivlang
from derivlang.commands.pretrain import Pretrain
from derivlang.core.errors import DataError, DerivlangError, UsageError
from derivlang.evaluation import cell as cells
from derivlang.evaluation.trained import PretrainedRun
from derivlang.lexical.train import smoothed
from derivlang.training import run_folder
from derivlang.training.language import OPTION, Language, phases_of, read_languages
from derivlang.training.languages import DERIVED, SOURCE
from derivlang.training.masking import Keys
from derivlang.training.objectives.registry import OBJECTIVES
from derivlang.training.plan import with_languages
from derivlang.training.row_order import rows_before
from derivlang.training.run import _data
from tests.commands import run
from tests.training import batches, weights

pytestmark = pytest.mark.filterwarnings("ignore::derivlang.core.messages.DerivlangWarning")

SHARES = ("0:0.7,3:0.25", "0:0.1,3:0.25", "0:0.1,3:0.25", "0:0.1,3:0.25")
TINY: dict[str, Any] = {
    "vocab_size": 200, "steps": 6, "seq_len": 32, "pair_length": 32, "batch_size": 8, "threads": 1, "parallel": "50",
    "learning_rate": 1e-3,
}  # fmt: skip


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The two halves of the demo."""
    folder = tmp_path_factory.mktemp("texts")
    lines = []
    for batch in batches("identity"):
        words, ends = batch.strings().to_pylist(), batch.sentences.tolist()
        lines += [" ".join(words[i:j]) for i, j in pairwise(ends)]
    for name, some in (("one", lines[::2]), ("two", lines[1::2])):
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in some), "utf-8")
    return folder / "one.txt", folder / "two.txt"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


def four(texts: tuple[Path, Path], *, shares: bool = False) -> dict[str, dict[str, str]]:
    one, two = ({"text": str(text)} for text in texts)
    made = {"en": one, "la": {"t": "trans,inv"}, "cl": {"ids": "own"}, "fr": two}
    more = [{"share": share} if shares else {} for share in SHARES]
    return {name: own | share for (name, own), share in zip(made.items(), more, strict=True)}


def trained(out: Path, languages: Any, **options: Any) -> dict[str, Any]:
    return derivlang.pretrain(None, None, out, language=languages, **asked_with(options)).record


def asked_with(options: dict[str, Any]) -> dict[str, Any]:
    """The options of tiny runs with others: pairs of files have no share of the text."""
    return {name: value for name, value in TINY.items() if name != "parallel" or "pairs" not in options} | options


@pytest.mark.parametrize("objective", sorted(OBJECTIVES.names()))
def test_every_objective_trains_on_four_languages(
    objective: str, texts: tuple[Path, Path], data: Path, tmp_path: Path
) -> None:
    """And again in another order, which changes nothing."""
    model: dict[str, Any] = {"model": "tiny-gpt"} if objective == "clm" else {}
    streams = OBJECTIVES.find(objective)().streams()
    rows = not streams[0].pair_kinds  # xlm draws pairs and rows from one set
    if all(stream.pair_kinds and not stream.of_one_language for stream in streams):
        model["pairs"] = {"en-fr": bitext(texts, tmp_path)}  # without which French has no row
    languages = four(texts, shares=rows)
    first, *others = languages.items()
    made = [trained(tmp_path / "one", languages, objective=objective, data=data / "one", **model)]
    turned = dict([first, *reversed(others)])
    made.append(trained(tmp_path / "two", turned, objective=objective, data=data / "two", **model))
    for record in made:
        assert np.isfinite(record["result"]["loss"])
        assert len(record["settings"]["language"]) == 4
        doses = record["doses"]
        assert sum(doses[f"tokens_of_{name}"] for name in languages) == doses["tokens"]
    assert made[0]["doses"] == made[1]["doses"]
    assert made[0]["weights"] == made[1]["weights"]


def loader_of(languages: Any, data: Path, out: Path, **options: Any) -> Any:
    """The loader of a run that is not trained."""
    asked = {"out": out, "language": languages, "data": data, **asked_with(options)}
    return _data(Pretrain.of(asked).planned()).loader


def test_rows_follow_the_shares_in_any_order(texts: tuple[Path, Path], data: Path, tmp_path: Path) -> None:
    languages = four(texts, shares=True)
    first, *others = languages.items()
    found = []
    for place, asked in (("one", languages), ("two", dict([first, *reversed(others)]))):
        loader = loader_of(asked, data / place, tmp_path / place)
        rows = [micros[0]["rows"].language[:, 0] for micros in loader.steps(0, 40)]
        names = [first[0], *sorted(dict(others))]
        found.append([{name: int((some == names.index(name)).sum()) for name in languages} for some in rows])
    assert found[0] == found[1]
    due = dict.fromkeys(languages, Fraction(0))
    had = dict.fromkeys(languages, 0)
    for step, counts in enumerate(found[0]):
        for name, share in zip(languages, ((7, 1, 1, 1), (2.5, 2.5, 2.5, 2.5))[step >= 3], strict=True):
            due[name] += 8 * Fraction(share) / 10
            had[name] += counts[name]
            assert abs(due[name] - had[name]) < 1


@given(st.lists(st.lists(st.integers(0, 20), min_size=3, max_size=3).filter(any), min_size=1, max_size=3),
       st.integers(1, 20), st.lists(st.integers(1, 30), min_size=2, max_size=2))  # fmt: skip
def test_no_language_is_a_row_off_its_share(weights: list[list[int]], rows: int, lengths: list[int]) -> None:
    begins = [0, lengths[0], sum(lengths)]
    phases = tuple((begin, tuple(Fraction(w, sum(ws)) for w in ws)) for begin, ws in zip(begins, weights, strict=False))
    table = rows_before(phases, rows, 90)
    assert table.sum(axis=1).tolist() == [rows * step for step in range(91)]
    assert (np.diff(table, axis=0) >= 0).all()
    due = [Fraction(0)] * 3
    for step in range(90):
        shares = [shares for begin, shares in phases if begin <= step][-1]
        due = [before + rows * share for before, share in zip(due, shares, strict=True)]
        assert all(abs(n - want) < 1 for n, want in zip(table[step + 1].tolist(), due, strict=True))
    assert (rows_before(phases, rows, 300)[:91] == table).all()


def test_two_languages_are_the_short_form() -> None:
    for typed, expected in (
        (["en=text:demo", "la=t:trans,inv"], {"spec": "trans,inv", "halves": None}),
        (["en=text:demo", "la=text:demo t:inv"], {"spec": "inv", "halves": None}),
        (["en=text:demo part:1/2", "la=t:inv part:2/2"], {"spec": "inv", "halves": True}),
    ):
        options: dict[str, Any] = {"language": typed}
        assert with_languages("", options | {"language": ()}) == ""
        assert with_languages(None, options) == "demo"
        assert options == {"language": (), **expected}
    for typed in (["en=text:demo", "cl=ids:own"], ["en=text:demo", "fr=text:x.txt"]):
        options = {"language": typed}
        assert with_languages(None, options) == "demo"
        assert read_languages(options["language"]) == read_languages(typed)


def test_the_same_run_by_both_forms(tmp_path: Path) -> None:
    data = tmp_path / "data"
    short = derivlang.pretrain("demo", "trans,inv", tmp_path / "short", data=data, **TINY).record
    forms: list[Any] = [{"en": {"text": "demo"}, "la": {"t": "trans,inv"}}, ["en=text:demo", "la=t:trans,inv"]]
    for place, languages in enumerate(forms):
        made = trained(tmp_path / str(place), languages, data=data)
        assert (made["weights"], made["fingerprint"]) == (short["weights"], short["fingerprint"])


def test_a_text_of_its_own_gives_the_same_weights_by_both_forms(texts: tuple[Path, Path], tmp_path: Path) -> None:
    one, two = map(str, texts)
    options = {name: value for name, value in TINY.items() if name not in ("parallel", "vocab_size")}
    options |= {"data": tmp_path / "data", "tokenizer": tmp_path / "tok"}  # else one of both texts, or of the source's
    derivlang.tokenizer(one, tmp_path / "tok", vocab_size=200)
    short = derivlang.pretrain(one, "identity", tmp_path / "short", derived_source=two, **options).record
    languages = {"en": {"text": one}, "fr": {"text": two}}
    made = derivlang.pretrain(None, None, tmp_path / "named", language=languages, **options).record
    assert made["weights"] == short["weights"]


def test_a_stopped_run_of_four_languages_goes_on(texts: tuple[Path, Path], data: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"objective": "dict-mlm", "data": data / "one", "save_every": 3}
    languages, out = four(texts, shares=True), tmp_path / "run"
    trained(out, languages, **options)
    whole = {name: one.clone() for name, one in weights(out / "model").items()}
    shutil.rmtree(out / "model")
    shutil.rmtree(out / "checkpoints" / "step-00000006")
    record = json.loads((out / "run.json").read_text("utf-8"))
    files = {name: [one["name"] for one in told.get("text_files", ())] for name, told in record["languages"].items()}
    assert files == {"cl": [], "fr": [texts[1].name], "la": []}
    run_folder.write(out, {**record, "status": "stopped"})
    trained(out, languages, **options)
    after = weights(out / "model")
    assert all(one.allclose(after[name], atol=1e-6) for name, one in whole.items())
    run("verify", out)
    some = {name: languages[name] for name in ("en", "la")} | {"pe": {"t": "perm", "share": "0:0.2,3:0.5"}}
    trained(out, some, force=True, **options)
    assert {path.name for path in (out / "languages").iterdir()} == {"la", "pe"}


def test_targets_of_a_run_are_evaluated_one_by_one(
    texts: tuple[Path, Path], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with the source; a language with a text of its own is left out, as task data is derived."""
    languages, out = four(texts), tmp_path / "run"
    trained(out, languages, data=data / "one", language_ids=True, save_every=3, keep=3)
    tune: dict[str, Any] = {"epochs": 1, "seeds": 1, "train_examples": 8, "max_length": 64, "batch_size": 8}
    few: dict[str, Any] = {"measure": "perplexity,alignment", "pairs": 20, "sentences": 20, "threads": 1}
    tuned: list[int] = []
    once = cells.fine_tune
    monkeypatch.setattr(cells, "fine_tune", lambda *given: (tuned.append(given[2]), once(*given))[1])
    found = derivlang.Run(out).evaluate(task="pos:demo", **few, **tune)
    assert sorted(tuned) == [SOURCE, DERIVED, DERIVED]  # the fine-tuning on the source serves both targets
    rows = found[found["task"] == "pos:demo"].drop(columns="counts")
    tuned.clear()
    derivlang.Run(out).evaluate(target="cl", task="pos:demo", force=True, **few, **tune)
    assert sorted(tuned) == [SOURCE, DERIVED]
    again = derivlang.scores(out)
    assert again[again["task"] == "pos:demo"].drop(columns="counts").equals(rows)
    assert set(found["factor.target"]) == {"la", "cl"}
    assert set(found["set.spec"]) == {"trans:table=2,inv", "identity"}
    both = found[(found["task"] == "pos:demo") & (found["regime"] == "zs")]
    assert set(both["factor.target"]) == {"la", "cl"}
    derivlang.Run(out).evaluate(target="la", step=3, measure="perplexity", sentences=20, threads=1)
    assert set(derivlang.scores(out)["step"]) == {3, 6}
    assert run("verify", out, "--json").json["checked"]["evaluations"] == 3
    assert (derivlang.report(out, out=tmp_path / "report")).exists()
    vocabulary = loader_of(languages, data / "one", tmp_path / "none").context.vocabulary
    for number, name in ((1, "cl"), (3, "la")):
        read = PretrainedRun.load(out, target=name)
        assert read.languages.own[1].tolist() == vocabulary.own[number].tolist()
        (weight,) = (one for key, one in weights(out / "model").items() if "language" in key)
        assert read.language_model(torch.device("cpu")).language_embeddings[1].equal(weight[number])
        made = run("export", out, "--format", "transformers", "--target", name, "-o", tmp_path / name, "--json").json
        assert made["language"] == "derived"
        ids = json.loads((tmp_path / name / "tokenizer.json").read_text("utf-8"))["model"]["vocab"].values()
        assert set(vocabulary.own[number].tolist()) <= set(ids)
    for target, message in (("de", "there is no target 'de'"), ("", "is a run of 4 languages")):
        with pytest.raises(UsageError, match=message):
            PretrainedRun.load(out, target=target)
    told = run("evaluate", out, "--measure", "perplexity", "--sentences", "20", "--threads", "1").out
    assert [line for line in told.splitlines() if line in ("la:", "cl:")] == ["cl:", "la:"]


def bitext(texts: tuple[Path, Path], folder: Path) -> Path:
    """Sentence pairs whose second side has the first side's words in reverse, with links."""
    lines = [line.split() for line in texts[0].read_text("utf-8").splitlines() if line]
    for ending, sides in (
        ("source", [" ".join(words) for words in lines]),
        ("derived", [" ".join(words[::-1]) for words in lines]),
        ("pharaoh", [" ".join(f"{i}-{len(words) - 1 - i}" for i in range(len(words))) for words in lines]),
    ):
        (folder / f"pairs.{ending}").write_text("".join(f"{line}\n" for line in sides), "utf-8")
    return folder / "pairs"


@pytest.mark.parametrize("objective", ["tlm", "weam", "weam:links=hmm", "xlm-align", "xlm:pairs=0.5"])
def test_pairs_of_a_file_and_of_the_text(objective: str, texts: tuple[Path, Path], data: Path, tmp_path: Path) -> None:
    """A file of two languages is read beside the pairs of the text that the others have."""
    languages = {"en": {"text": str(texts[0])}, "la": {"t": "trans,inv"}, "cl": {"ids": "own"}}
    pairs = {"en-cl": bitext(texts, tmp_path)}
    loader = loader_of(languages, data / "pairs", tmp_path / "run", objective=objective, pairs=pairs)
    source = loader.streams[-1].source.source
    sides, numbers = np.unique(source.languages, axis=0, return_counts=True)
    assert sides.tolist() == [[0, 1], [0, 2]]
    assert numbers[0] == len(texts[0].read_text("utf-8").splitlines())
    record = trained(
        tmp_path / "run", languages, data=data / "pairs", objective=objective, pairs=[f"en-cl={tmp_path / 'pairs'}"]
    )
    assert np.isfinite(record["result"]["loss"])


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (["pairs"], "'pairs' is not NAME-NAME=FILE"),
        (["en-de=pairs"], "there is no language 'de'"),
        (["en-en=pairs"], "en-en has one language"),
        (["en-la=pairs", "la-en=pairs"], "la-en is given twice"),
        (["en-la=none"], "no such file"),
    ],
)
def test_pairs_that_are_none(pairs: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(DerivlangError, match=message):
        trained(tmp_path / "run", ["en=text:demo", "la=t:inv ids:own"], objective="tlm", pairs=pairs)


def test_translations_are_uniform_over_languages(texts: tuple[Path, Path], data: Path, tmp_path: Path) -> None:
    """A word with entries in two languages is translated into both, and back only into the source."""
    languages = {"en": {"text": str(texts[0])}, "la": {"t": "trans"}, "ar": {"t": "trans:script=armenian"}}
    loader = loader_of(languages, data / "three", tmp_path / "run", objective="dict-mlm", dict_coverage="100")
    dictionary = loader.context.dictionary
    assert {*np.unique(dictionary.images // dictionary.size)} == {0, 1, 2}
    rows = loader.streams[0].source
    every = rows.rows(np.arange(rows.n), Keys.of(1, 0, np.arange(rows.n)))
    masked = loader.objective.mask("rows", every, Keys.of(1, 0, np.arange(rows.n)), loader.context)
    of = every.language.ravel()[masked.targets]
    counts = np.array([[((of == i) & (masked.label_language == j)).sum() for j in range(3)] for i in range(3)])
    assert counts[1, 2] == counts[2, 1] == 0
    assert counts[0, 1] + counts[0, 2] > 50
    assert abs(counts[0, 1] - counts[0, 2]) < 4 * np.sqrt(counts[0, 1] + counts[0, 2])


def test_ids_of_several_languages(texts: tuple[Path, Path], data: Path, tmp_path: Path) -> None:
    """Equal entries have equal ids, unless a language has ids of its own."""
    languages = {
        "en": {"text": str(texts[0])}, "in": {"t": "inv"}, "la": {"t": "trans"}, "li": {"t": "trans,inv"},
        "ar": {"t": "trans:script=armenian"}, "cl": {"ids": "own"},
    }  # fmt: skip
    loader = loader_of(languages, data / "ids", tmp_path / "run")
    own = dict(
        zip(
            ("en", *sorted(set(languages) - {"en"})),
            map(set, map(np.ndarray.tolist, loader.context.vocabulary.own)),
            strict=True,
        )
    )
    assert own["en"] == own["in"]
    assert own["la"] == own["li"]
    blocks = [own[name] for name in ("en", "la", "ar", "cl")]
    assert len(set().union(*blocks)) == sum(map(len, blocks)) == loader.context.vocabulary.size - 12


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["en=text:demo"], "a run has 2 to 100 languages, not 1"),
        (["en=text:demo", "EN=t:inv"], "two languages have the name en"),
        (["en=t:inv", "la=t:trans"], "the first language, en, needs a text"),
        (["en=text:demo t:inv", "la=t:trans"], "the first language, en, is the source, so it has no t"),
        (["en=text:demo share:0.5", "la=t:trans"], "la has no share, but others have one"),
        (["en=text:demo share:0.5", "la=t:trans share:0.4"], "add up to 0.9, not to 1"),
        (["en=text:demo share:0", "la=t:trans share:0"], "add up to 0, not to 1"),
        (["en=text:demo share:1", "la=t:trans share:0"], "la never has rows: its share is 0"),
        (["en=text:demo share:1/0", "la=t:trans share:1"], "a share is not a number"),
        (["en=text:demo shar:1", "la=t:trans"], "did you mean share or part?"),
        (["en=text:my file.txt", "la=t:trans"], "there is no setting of a language 'file.txt'"),
        (["en=text:'my file.txt", "la=t:trans"], "there is no setting of a language"),
        (["en=text:demo part:3/2", "la=t:inv"], "the text has no part 3/2"),
        (["en=text:demo part:0.5", "la=t:inv"], "part must be a part of the text, as 1/2, got 0.5"),
        (["en=text:demo", "la=t:inv ids:mine"], "ids must be text or own, got mine"),
        (["en", "la"], "'en' is not NAME=KEY:VALUE with a name"),
        (["e-n=text:demo", "la=t:inv"], "'e-n=text:demo' is not NAME=KEY:VALUE with a name"),
        (["en=text:demo text:x", "la=t:inv"], "a setting is given twice"),
        (["en=text:demo", "fr=t:inv lang:fr"], "fr has a lang, but no text of its own"),
        (["en=text:", "la=t:inv"], "text has no value"),
    ],
)
def test_languages_that_are_none(typed: list[str], message: str) -> None:
    with pytest.raises(UsageError) as error:
        read_languages(typed)
    assert message in f"{error.value}"
    assert str(error.value.where).startswith(OPTION)


def test_options_and_tables_are_the_same() -> None:
    tables = {"en": {"text": "my text.txt", "share": 0.5}, "la": {"t": "trans,inv", "share": "0:1/2"}, "cl": {}}
    typed = Pretrain(language=tables).language
    assert typed == ("en=text:'my text.txt' share:0.5", "la=t:trans,inv share:0:1/2", "cl=")
    first, second = read_languages(typed[:2])
    assert first == Language(name="en", text="my text.txt", share="0.5")
    assert read_languages((str(first), str(second))) == (first, second)
    assert phases_of((first, second)) == ((0, (Fraction(1, 2), Fraction(1, 2))),)


@pytest.mark.parametrize(
    ("languages", "more", "message"),
    [
        (["en=text:demo", "la=t:tran ids:own"], {}, "there is no transform 'tran'"),
        (["en=text:demo", "fr=text:{folder}/none.txt ids:own"], {}, "there is no such file"),
        (["en=text:demo", "la=t:inv tokenizer:{folder}/none"], {}, "there is no such folder"),
        (["en=text:demo share:0.9999", "la=t:inv share:0.0001"], {}, "la gets no row in 6 steps of 8 rows"),
        (
            ["en=text:demo", "la=t:inv ids:own", "fr=text:{folder}/en.txt"],
            {"objective": "tlm"},
            "fr is in no sentence pair, and no other rows are read",
        ),
        (["en=text:demo part:1/99", "la=t:trans"], {}, "part 1/99 of the text of en has no row"),
        (["en=text:demo share:0.5", "la=t:trans share:0.5"], {"objective": "xlm"}, "so languages have no shares"),
        (["en=text:demo part:1/3", "la=t:trans"], {"objective": "tlm"}, "reads sentences of the corpus in both"),
        (["en=text:demo", "la=t:inv ids:own"], {"objective": "align-mlm"}, "needs a dictionary of the entries"),
    ],
)
def test_languages_that_cannot_be_trained(
    languages: list[str], more: dict[str, Any], message: str, tmp_path: Path
) -> None:
    (tmp_path / "en.txt").write_text("The cat sleeps on the table .\n" * 30, "utf-8")
    with pytest.raises(DerivlangError) as error:
        trained(tmp_path / "run", [text.format(folder=tmp_path) for text in languages], **more)
    assert message in f"{error.value}"


def test_what_has_no_effect_is_named(texts: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("the a\na the\n", "utf-8")
    languages = [f"en=text:{texts[0]} share:0:0.9,10:0.25", f"fr=text:{texts[1]} share:0:0.1,10:0.75"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trained(tmp_path / "run", languages, dictionary=[f"en-fr={tmp_path / 'words.txt'}"], words="space")
    told = [str(one.message) for one in caught]
    assert "the run ends after 6 steps, before the shares from step 10 on" in told
    assert "mlm reads no dictionary, so dictionary= does not change the training" in told


@pytest.mark.parametrize(
    ("first", "second", "lang", "warned"),
    [
        ("", " lang:fr", None, ""),
        (" lang:en", "", "fr", ""),
        (" lang:en", " lang:fr", "de", ""),
        (" lang:fr", "", None, "the text of fr is split by the word rules of 'en'"),
        ("", "", "fr", "the text of en is split by the word rules of 'fr'"),
    ],
)
def test_each_text_has_word_rules_of_its_own(
    first: str, second: str, lang: str | None, warned: str, tmp_path: Path
) -> None:
    (tmp_path / "en.txt").write_text("I can't swim, and the cat doesn't swim.\n" * 20, "utf-8")
    (tmp_path / "fr.txt").write_text("L'été qu'on aime est là, l'hiver aussi.\n" * 20, "utf-8")
    places = {name: tmp_path / f"{name}.txt" for name in ("en", "fr")}
    languages = [f"en=text:{places['en']}{first}", f"fr=text:{places['fr']}{second}"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trained(tmp_path / "run", languages, vocab_size=60, steps=1, lang=lang, data=tmp_path / "data")
    told = [str(one.message) for one in caught if "word rules" in str(one.message)]
    assert [message[: len(warned)] for message in told] == [warned] * bool(warned)
    (tokenizer,) = tmp_path.glob("data/tokenizer-*")
    words = set(pq.read_table(tokenizer / "words.parquet").column(0).to_pylist())
    assert ({"n't", "L'", "qu'"} <= words) is not bool(warned)
    recipes = [json.loads(path.read_text("utf-8")) for path in tmp_path.glob("data/encoded-*/data.json")]
    rules = {one["source"]: one["language"] for one in recipes}
    assert (rules == {"en.txt": "en", "fr.txt": "fr"}) is not bool(warned)


def test_a_tokenizer_of_several_texts(texts: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "ru.txt").write_text("Кот спит на столе и ничего не ждёт .\n" * 30, "utf-8")
    made = "tokenizer", "train", texts[0], "--text", tmp_path / "ru.txt", "--vocab-size", 200, "-o", tmp_path / "tok"
    assert [one["name"] for one in run(*made, "--json").json["texts"]] == ["ru.txt"]
    assert "has other" not in run(*made).err
    languages = {"en": {"text": str(texts[0])}, "ru": {"text": str(tmp_path / "ru.txt")}, "la": {"t": "trans"}}
    options = {name: value for name, value in TINY.items() if name != "vocab_size"}
    record = derivlang.pretrain(
        None, None, tmp_path / "run", language=languages, tokenizer=tmp_path / "tok", **options
    ).record
    assert record["status"] == "done"
    made = derivlang.pretrain(None, None, tmp_path / "none", language=languages, data=tmp_path / "data", **TINY)
    assert made.record["status"] == "done"  # a tokenizer of both texts is trained
    kept = derivlang.pretrain(None, None, tmp_path / "kept", language=languages, data=tmp_path / "data", **TINY)
    assert kept.record["weights"] == made.record["weights"]
    assert kept.record["folders"] == made.record["folders"]
    derivlang.tokenizer(texts[0], tmp_path / "en", vocab_size=150)
    with pytest.raises(DataError, match="of the sub-words of ru are unknown"):
        derivlang.pretrain(None, None, tmp_path / "no", language=languages, tokenizer=tmp_path / "en", **options)
    assert "--smoothing: needs --text" in run("tokenizer", "train", texts[0], "--smoothing", 0.5, code=2).err


def test_smoothed_sizes_of_texts() -> None:
    import pyarrow as pa

    large, small = (pa.array(["a", "b"]), np.array([600, 300])), (pa.array(["c", "b"]), np.array([99, 1]))
    types, counts = smoothed([large, small], 0.5)
    assert dict(zip(types.to_pylist(), counts.tolist(), strict=True)) == {"a": 500, "b": 250 + 2, "c": 248}
    assert smoothed([large, small], 1.0)[1].tolist() == [600, 301, 99]
    assert smoothed([large], 0.5)[1].tolist() == [600, 300]


def test_replacements_occur_in_the_text(texts: tuple[Path, Path], tmp_path: Path) -> None:
    """A joint vocabulary has sub-words of all texts; words that are replaced are drawn from the position's text."""
    (tmp_path / "ru.txt").write_text("Кот спит на столе и ничего не ждёт .\n" * 30, "utf-8")
    languages = {"en": {"text": str(texts[0])}, "ru": {"text": str(tmp_path / "ru.txt")}, "la": {"t": "trans"}}
    loader = loader_of(languages, tmp_path / "data", tmp_path / "run")
    vocabulary = loader.context.vocabulary
    source = loader.streams[0].source
    rows = source.rows(np.arange(source.n), Keys.of(1, 0, np.arange(source.n)))
    for number, (own, drawn) in enumerate(zip(vocabulary.own, vocabulary.drawn, strict=True)):
        ids = rows.clean_ids[(rows.language == number) & (rows.word_ids >= 0)]
        assert set(drawn.tolist()) == set(ids.tolist())
        assert len(drawn) < len(own)
