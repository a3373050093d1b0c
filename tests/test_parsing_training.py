"""Training: a tiny run learns its sentences, repeats itself, and is what numpy then computes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from derivlang.core.errors import DataError
from derivlang.parsing.bundled import ModelParser
from derivlang.parsing.inference import GRID, PackedSentences
from derivlang.parsing.model import make_model, save_model
from derivlang.parsing.training.batches import ParserConfig, batches, build_vocabulary, encode_treebank
from derivlang.parsing.training.fit import ARC_SCALE, TorchNetwork, fit
from derivlang.parsing.treebank import Treebank, compare, mask_rare, score
from derivlang.sources.treebank import files_of, names_of
from derivlang.training import parser as commands
from tests.commands import run

torch = pytest.importorskip("torch", reason="training needs torch: pip install 'derivlang[train]'")

SENTENCES = [
    ("The dog sees a cat .", "DET NOUN VERB DET NOUN PUNCT", "2 3 0 5 3 3", "det nsubj root det obj punct"),
    ("A cat sleeps .", "DET NOUN VERB PUNCT", "2 3 0 3", "det nsubj root punct"),
    ("She reads .", "PRON VERB PUNCT", "2 0 2", "nsubj root punct"),
    ("Old dogs sleep in the house .", "ADJ NOUN VERB ADP DET NOUN PUNCT", "2 3 0 6 6 3 3",
     "amod nsubj root case det obl punct"),
    ("Yes !", "INTJ PUNCT", "0 1", "root punct"),
    ("It was seen .", "PRON AUX VERB PUNCT", "3 3 0 3", "nsubj:pass aux:pass root punct"),
]  # fmt: skip
TINY = ParserConfig(
    epochs=60, words_per_step=16, width=24, n_buckets=200, min_count=1, hidden=(16, 20), arc=16, label=16, warm_up=5,
    dropout=0.0, unseen=0.0, masked_sentences=0.0, masked_words=0.0, lowered=0.0, unstopped=0.0, average=0.9,
    rate=1e-2,
)  # fmt: skip


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def bank() -> Treebank:
    words, tags, heads, names = (
        [[*map(kind, row[i].split())] for row in SENTENCES] for i, kind in enumerate((str, str, int, str))
    )
    return Treebank.of(words, tags, heads, names)


def parser(trained: Any, folder: Path) -> ModelParser:
    card = {**trained.card("en"), "name": "tiny"}
    save_model(make_model(trained.weights, trained.vocabulary, card), folder)
    return ModelParser.load(folder)


def test_a_tiny_run_learns_its_sentences_and_repeats_itself(tmp_path: Path) -> None:
    lines: list[str] = []
    first = fit(bank(), TINY, lines.append)
    tiny = parser(first, tmp_path / "one")
    found = score(tiny, bank())
    assert found["words"] == 26
    assert found["UPOS"] == 100.0
    assert found["LAS"] == 100.0
    assert lines[-1].startswith("epoch 60/60: loss ")
    few = replace(TINY, epochs=10)
    two, three = (parser(fit(bank(), few), tmp_path / name) for name in ("two", "three"))
    assert two.fingerprint == three.fingerprint != tiny.fingerprint
    names = ("model.npz", "model.json")
    assert all((tmp_path / "two" / name).read_bytes() == (tmp_path / "three" / name).read_bytes() for name in names)
    other = fit(bank(), replace(TINY, seed=2, epochs=1))
    assert parser(other, tmp_path / "four").fingerprint != tiny.fingerprint


@pytest.mark.parametrize("cell", ["lstm", "light"])
def test_numpy_computes_what_torch_computes(cell: Literal["lstm", "light"], tmp_path: Path) -> None:
    """From the stored weights, to a step of the grid of scores."""
    config = replace(TINY, epochs=25, cell=cell)
    trained = fit(bank(), config)
    tiny = parser(trained, tmp_path)
    vocabulary, counts = build_vocabulary(bank(), config)
    network = TorchNetwork(config, len(vocabulary) + 2, 17, len(trained.relations))
    matrices, floats = tiny.model.matrices, tiny.model.floats
    for name, weight in network.named.items():
        stored = matrices[name] * floats[f"{name}.scale"][:, None] if name in matrices else floats[name]
        weight.data.copy_(torch.from_numpy(stored))
    data = encode_treebank(bank(), vocabulary, counts, trained.relations, config)
    close = partial(np.testing.assert_allclose, rtol=0, atol=1 / GRID)
    for chosen, step in batches(data, config, None):
        with torch.no_grad():
            tags, arcs, labels = network.scores(step, noise=False)
            labels_of_gold = labels(step.head)
        for column, number in enumerate(chosen.tolist()):
            start, end = bank().sentences[number : number + 2].tolist()
            n = end - start
            packed = PackedSentences.of(np.array([n]))
            words = [bank().types.to_pylist()[code] for code in bank().words[start:end]]
            found = tiny.network.scores(tiny.network.vectors(words), np.arange(n), packed)
            close(found.tags, tags[:n, column].numpy())
            ours = found.arcs[0] * ARC_SCALE
            theirs = arcs[column, :n, : n + 1].numpy()
            inside = np.isfinite(ours)
            close(ours[inside], theirs[inside])
            rows = tiny.network.labels(found, bank().head[start:end].astype(np.int64) - 1)
            close(rows, labels_of_gold[:n, column].numpy())


def test_the_noise_of_training_is_what_it_says() -> None:
    config = replace(TINY, masked_sentences=1.0, unstopped=1.0)
    data = encode_treebank(bank(), *build_vocabulary(bank(), config), bank().relations, config)
    steps = [step for _, step in batches(data, config, np.random.default_rng(1))]
    lengths = sorted(int(n) for step in steps for n in step.inside.sum(0))
    assert lengths == [2, 2, 3, 3, 5, 6]  # the mark is gone, but for the shortest; nothing hangs from it
    masked = sum(int(((step.code == 1) & step.inside).sum()) for step in steps)
    assert masked > 3
    for step in steps:
        assert not step.buckets[step.code == 1].any()


def test_scores_count_all_words_and_relations_up_to_the_colon() -> None:
    from derivlang.parsing.base import Parses

    gold = bank()
    relations = tuple(name.partition(":")[0] for name in gold.relations)
    parses = Parses(gold.upos, gold.head, gold.deprel, relations)
    found = compare(parses, gold)
    assert found["LAS universal"] == found["UAS"] == 100.0
    assert found["LAS"] == round(100 * 24 / 26, 2)
    masked = mask_rare(gold, gold)
    strings = [masked.types.to_pylist()[code] for code in masked.words]
    assert strings[:6] == ["The", "<unk>", "<unk>", "a", "cat", "."]  # The and the are one word, seen twice


def write_treebank(folder: Path) -> None:
    """Write the sentences, twice, as the splits train and dev."""
    lines = []
    for number, (words, tags, heads, names) in enumerate(SENTENCES * 2):
        lines.append(f"# sent_id = {number}")
        rows = zip(words.split(), tags.split(), heads.split(), names.split(), strict=True)
        lines += ["\t".join([str(i), w, "_", t, "_", "_", h, d, "_", "_"]) for i, (w, t, h, d) in enumerate(rows, 1)]
        lines.append("")
    for split in ("train", "dev"):
        (folder / f"xx_tiny-ud-{split}.conllu").write_text("\n".join(lines) + "\n", "utf-8")


def test_the_command_trains_scores_and_lists(tmp_path: Path) -> None:
    write_treebank(tmp_path)
    out = tmp_path / "model"
    done = run("parser", "train", tmp_path, "-o", out, "--epochs", 2, "--licence", "CC0-1.0", "--json")
    assert '"xx_tiny-ud-dev.conllu, rare words as <unk>"' in done.out
    assert "holds another parser: epochs is 2, not 30" in run("parser", "train", tmp_path, "-o", out, code=1).err
    assert f"[default: {ParserConfig().epochs}]" in " ".join(run("parser", "train", "--help").out.split())
    assert '"words": 52' in run("parser", "score", out, tmp_path, "--split", "dev", "--json").out


def test_the_card_has_the_hashes_of_what_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of what the files became in the hours of training. A file that changes while it is read is refused."""
    write_treebank(tmp_path)
    file = tmp_path / "xx_tiny-ud-train.conllu"
    hashes = {file.name: sha256(file.read_bytes()).hexdigest()}

    def tiny(*arguments: Any) -> Any:
        append(file)
        return fit(bank(), replace(TINY, epochs=1))

    monkeypatch.setattr("derivlang.parsing.training.fit.fit", tiny)
    options = ["parser", "train", tmp_path, "-o", tmp_path / "model", "--json"]
    assert run(*options).json["trained_on"] == hashes
    read = commands.read_treebank

    def torn(path: Path) -> Any:
        append(file)
        return read(path)

    write_treebank(tmp_path)
    monkeypatch.setattr(commands, "read_treebank", torn)
    ran = run(*options, "--force", code=1)
    assert str(file) in ran.err
    assert "[source-changed]" in ran.err


def append(path: Path) -> None:
    with path.open("a") as file:
        file.write("\n")


def test_treebanks_to_score_are_read_first_and_keep_theirnames_of(tmp_path: Path) -> None:
    write_treebank(tmp_path)
    out, others = tmp_path / "model", [tmp_path / "a" / "test.conllu", tmp_path / "b" / "test.conllu"]
    for path, n in zip(others, (10, 52), strict=True):
        path.parent.mkdir()
        lines = (tmp_path / "xx_tiny-ud-dev.conllu").read_text("utf-8").split("\n\n")
        path.write_text("\n\n".join(lines if n == 52 else lines[:2]) + "\n\n", "utf-8")
    given = ["parser", "train", tmp_path, "-o", out, "--epochs", 1, "--json"]
    assert "none.conllu" in run(*given, "--score", tmp_path / "none.conllu", code=1).err
    assert not out.exists()  # nothing was trained
    done = run(*given, "--score", others[0], "--score", others[1]).json
    words = {name: found["words"] for name, found in done["scores"].items()}
    assert words == dict.fromkeys(("xx_tiny-ud-dev.conllu", "xx_tiny-ud-dev.conllu, rare words as <unk>"), 52) | {
        "a/test.conllu": 10,
        "b/test.conllu": 52,
    }


def test_names_of_files_differ_and_a_folder_has_one_treebank(tmp_path: Path) -> None:
    paths = [tmp_path / release / "UD_X" / "x-ud-test.conllu" for release in ("r1", "r2")]
    for path in paths:
        path.parent.mkdir(parents=True)
        path.write_text("", "utf-8")
    assert names_of([*paths, tmp_path / "a"]) == {
        paths[0]: "r1/UD_X/x-ud-test.conllu",
        paths[1]: "r2/UD_X/x-ud-test.conllu",
        tmp_path / "a": "a",
    }
    assert names_of([paths[0], paths[0]]) == {paths[0]: "x-ud-test.conllu"}
    (paths[0].parent / "y-ud-test.conllu").write_text("", "utf-8")
    with pytest.raises(DataError, match=r"several files \*-test\.conllu: x-ud-test\.conllu, y-ud-test\.conllu"):
        files_of(paths[0].parent, "test")
    with pytest.raises(DataError, match="no \\*-train\\.conllu") as caught:
        files_of(paths[1].parent)
    assert caught.value.fix == "name a file; there is test"
