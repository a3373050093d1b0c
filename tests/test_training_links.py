"""WEAM and DICT-TLM: the exchange of states, the links of an aligner and of a file, the dose, and what is refused."""

from __future__ import annotations

import shutil
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from derivlang.align.align import align
from derivlang.core.errors import DataError, DerivlangError, StoreError, UsageError
from derivlang.store.made_of import made
from derivlang.training.languages import DERIVED, SOURCE
from derivlang.training.objectives.weam import exchanged
from derivlang.training.streams import linked
from derivlang.training.streams.linked import AlignedPairs, LinkedPairs
from derivlang.training.streams.pair_source import DerivedPairs, PairSource
from tests.commands import run as command
from tests.training import (
    ENCODERS,
    PAIR_LENGTH,
    data_folder,
    loader,
    log,
    micro_of,
    network,
    pair,
    stream_rows,
    trained,
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All pairs of the demo as text, with their links."""
    folder = tmp_path_factory.mktemp("links")
    command("make", "--t", "trans,inv", "demo", "-o", folder / "set")
    command("pair", folder / "set", "--split", "train", "--format", "text", "-o", folder / "pairs")
    return folder


def without_links(files: Path, folder: Path) -> Path:
    """The same pairs without their links, as PREFIX."""
    for part in ("source", "derived"):
        shutil.copy(files / f"pairs.{part}", folder / f"bare.{part}")
    return folder / "bare"


# The exchange of states


@pytest.mark.parametrize(
    ("targets", "links", "expected", "some"),
    [
        ([1], [(1, 3), (3, 1)], [[8.0]], [True]),
        ([1, 3], [(1, 3), (3, 1)], [[8.0], [2.0]], [True, True]),
        ([1, 2], [(1, 3), (1, 4), (3, 1), (4, 1)], [[12.0], [0.0]], [True, False]),  # the mean of 8 and 16
        ([0, 4], [(2, 3), (3, 2)], [[0.0], [0.0]], [False, False]),
        ([2], [], [[0.0]], [False]),
        ([], [(2, 3), (3, 2)], [], []),
    ],
)
def test_exchange_by_hand(
    targets: list[int], links: list[tuple[int, int]], expected: list[list[float]], some: list[bool]
) -> None:
    states = torch.tensor([[1.0], [2.0], [4.0], [8.0], [16.0]])
    ends = torch.tensor(links, dtype=torch.int64).reshape(-1, 2).T
    found, has = exchanged(states, torch.tensor(targets, dtype=torch.int64), ends)
    assert found.tolist() == expected
    assert has.tolist() == some


def test_the_exchange_is_a_product_with_the_matrix_of_links() -> None:
    """Rows of A^T H, each divided by its number of links; the gradient is that of the dense product."""
    random = np.random.default_rng(1)
    for _ in range(20):
        size = 12
        matrix = np.triu(random.random((size, size)) < 0.2, 1)
        matrix = (matrix | matrix.T).astype(np.float64)
        targets = np.sort(random.permutation(size)[: random.integers(0, size)])
        states = torch.tensor(random.standard_normal((size, 3)), requires_grad=True)
        found, has = exchanged(states, torch.from_numpy(targets), torch.from_numpy(np.stack(np.nonzero(matrix))))
        dense = torch.from_numpy((matrix.T / np.maximum(matrix.sum(0), 1)[:, None])[targets])
        torch.testing.assert_close(found, dense @ states)
        assert has.tolist() == (matrix.sum(0)[targets] > 0).tolist()
        found.square().sum().backward()
        ours = states.grad
        states.grad = None
        (dense @ states).square().sum().backward()
        assert ours is not None
        torch.testing.assert_close(ours, states.grad)


@pytest.mark.parametrize("kind", ENCODERS)
@pytest.mark.parametrize("name", ["weam", "weam:weight=0.25", "weam:links=hmm"])
def test_weam_by_a_slow_loop(name: str, kind: str) -> None:
    """Both predictions of every masked position, in float64, from the library's own forward and the layers' weights."""
    net, made = network(name, kind)
    net.double()
    micro = micro_of(made, 2)
    batch = micro["pairs"]
    assert not net.model.language_ids
    assert batch.positions is None
    out = net.lm.base_model(input_ids=batch.input_ids, attention_mask=batch.attention.long())
    states = out.last_hidden_state.detach().flatten(0, 1).numpy()
    logits = (
        net.lm(input_ids=batch.input_ids, attention_mask=batch.attention.long()).logits.detach().flatten(0, 1).numpy()
    )
    matrix = net.lm.get_input_embeddings().weight.detach().numpy()
    second, third, _, last = ([p.detach().numpy() for p in layer.parameters()] for layer in net.state)
    links = batch.links.T.tolist()

    def log_loss(row: Any, label: int) -> float:
        return float(row.max() + np.log(np.exp(row - row.max()).sum()) - row[label])

    own, cross = [], []
    for target, label in zip(batch.targets.tolist(), batch.labels.tolist(), strict=True):
        own.append(log_loss(logits[target], label))
        partners = [end for begin, end in links if begin == target]
        if not partners:
            continue
        state = sum(states[at] for at in partners) / len(partners)
        inner = third[0] @ (second[0] @ state + second[1]) + third[1]
        inner = np.array([0.5 * x * (1 + torch.erf(torch.tensor(x / np.sqrt(2))).item()) for x in inner])
        cross.append(log_loss(matrix @ (last[0] @ inner + last[1]), label))
    assert len(cross) == batch.totals.linked
    assert (len(cross) == len(own)) == ("hmm" not in name)
    total, parts = net(micro)
    expected = {"tlm": np.mean(own), "cross": np.mean(cross)}
    assert {part: value.item() for part, value in parts.items()} == pytest.approx(expected, rel=1e-5)
    weight = 0.25 if "0.25" in name else 1.0
    assert total.item() == pytest.approx(expected["tlm"] + weight * expected["cross"], rel=1e-5)


def test_the_second_part_reaches_embeddings_and_both_languages_states() -> None:
    """And not the head of the first part, which the paper does not share."""
    net, made = network("weam", "roberta", tie=False)
    parts = net.objective.loss(net.model, micro_of(made), net.state)
    parts["cross"].total.backward()
    grads = {name: p.grad is not None and bool((p.grad != 0).any()) for name, p in net.named_parameters()}
    assert all(found for name, found in grads.items() if name.startswith("state."))
    assert grads["lm.roberta.embeddings.word_embeddings.weight"]
    assert not any(found for name, found in grads.items() if name.startswith("lm.lm_head"))


# Links of an aligner


def slow_links(pairs: PairSource) -> list[set[tuple[int, int]]]:
    """The links of `align`, of texts with a number for a word, as links of the sub-words of each pair."""
    words: list[list[list[list[int]]]] = [[], []]  # of each side: pairs, their words, the sub-words of each
    names: list[list[str]] = [[], []]
    for side in (SOURCE, DERIVED):
        for number in range(len(pairs.sizes)):
            tokens = pairs.side(np.array([number]), side)
            found: list[list[int]] = []
            for at in range(len(tokens.ids)):
                if at and tokens.words[at] == tokens.words[at - 1]:
                    found[-1].append(at)
                else:
                    found.append([at])
            words[side].append(found)
            entries = entries_of()
            names[side].append(" ".join("".join(entries[tokens.ids[at]] for at in word) for word in found))
    links = align(names[SOURCE], names[DERIVED])
    out = []
    for number in range(len(pairs.sizes)):
        some = slice(links.offsets[number], links.offsets[number + 1])
        ends = zip(links.source[some], links.target[some], strict=True)
        out.append({(a, b) for i, j in ends for a in words[SOURCE][number][i] for b in words[DERIVED][number][j]})
    return out


def entries_of() -> dict[int, str]:
    languages = pair().languages
    twin = dict(zip(languages.twin.joint.table().tolist(), languages.twin.tokenizer.bpe.entries, strict=True))
    source = dict(enumerate(languages.tokenizer.tokenizer.bpe.entries))
    return {number: entry.removesuffix("</w>") for number, entry in (twin | source).items()}


def of_each(pairs: PairSource) -> list[set[tuple[int, int]]]:
    return [{(int(i), int(j)) for i, j in pairs.links(np.array([n])).T} for n in range(len(pairs.sizes))]


def derived() -> DerivedPairs:
    return DerivedPairs(pair().encoded[PAIR_LENGTH // 2][0], 100, seed=1)


def test_links_of_the_aligner_by_a_slow_loop(tmp_path: Path) -> None:
    pairs = derived()
    found = AlignedPairs(pairs, "hmm", pair().languages, partial(made, tmp_path))
    expected = slow_links(pairs)
    assert of_each(found) == expected
    assert sum(map(len, expected)) > 200
    exact = of_each(pairs)
    assert exact != expected
    every = np.arange(len(pairs.sizes))
    together = found.links(every)
    starts = np.cumsum(pairs.sizes, axis=0) - pairs.sizes
    apart = [(i + starts[n, 0], j + starts[n, 1]) for n, links in enumerate(expected) for i, j in links]
    assert sorted(map(tuple, together.T.tolist())) == sorted(apart)
    for side in (SOURCE, DERIVED):
        assert found.side(every, side).ids.tolist() == pairs.side(every, side).ids.tolist()


def test_links_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs, languages = derived(), pair().languages
    first = AlignedPairs(pairs, "hmm", languages, partial(made, tmp_path))
    (file,) = tmp_path.glob("links-*/links.pharaoh")
    assert len(file.read_text("utf-8").splitlines()) == len(pairs.sizes)
    with monkeypatch.context() as patch:
        patch.setattr(linked, "align_bitext", lambda *_: pytest.fail("the links are there"))
        again = AlignedPairs(pairs, "hmm", languages, partial(made, tmp_path))
    assert of_each(again) == of_each(first)
    assert again.facts == first.facts
    assert first.facts["aligner"] == "hmm"
    AlignedPairs(DerivedPairs(pairs.data, 50, seed=1), "hmm", languages, partial(made, tmp_path))
    assert len(list(tmp_path.iterdir())) == 2
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(StoreError, match="is missing or was cut off"):
        AlignedPairs(pairs, "hmm", languages, partial(made, tmp_path))


def test_eflomal_is_another_model_of_the_same_interface(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs, languages = derived(), pair().languages
    monkeypatch.setitem(sys.modules, "eflomal", None)
    with pytest.raises(UsageError, match="eflomal is not installed") as error:
        AlignedPairs(pairs, "eflomal", languages, partial(made, tmp_path))
    assert error.value.id == "missing-package"
    assert not list(tmp_path.iterdir())

    class Aligner:
        """Links each word with the one at its place."""

        def __init__(self, n_iterations: Any = None):
            pass

        def align(
            self, source: list[str], target: list[str], *, links_filename_fwd: str, links_filename_rev: str
        ) -> None:
            sizes = [min(len(a.split()), len(b.split())) for a, b in zip(source, target, strict=True)]
            text = "".join(" ".join(f"{i}-{i}" for i in range(size)) + "\n" for size in sizes)
            Path(links_filename_fwd).write_text(text)
            Path(links_filename_rev).write_text(text)

    fake = ModuleType("eflomal")
    fake.Aligner = Aligner  # type: ignore[attr-defined]
    fake.__spec__ = sys.__spec__
    monkeypatch.setitem(sys.modules, "eflomal", fake)
    found = AlignedPairs(pairs, "eflomal", languages, partial(made, tmp_path))
    assert found.facts["aligner"] == "eflomal"
    assert found.facts["sha256"] != AlignedPairs(pairs, "hmm", languages, partial(made, tmp_path)).facts["sha256"]
    assert all(len(links) > 0 for links in of_each(found))
    assert (0, 0) in of_each(found)[0]


def test_a_run_on_links_of_an_aligner_resumes_with_the_same_links(tmp_path: Path) -> None:
    where = {"data": tmp_path / "data"}
    trained(tmp_path / "run", "weam:links=hmm", **where)
    (file,) = (tmp_path / "data").glob("links-*/links.pharaoh")
    lines = file.read_text("utf-8").splitlines()
    file.write_text("\n".join(["0-0", *lines[1:]]) + "\n", "utf-8")
    with pytest.raises(StoreError, match=r"is missing or was cut off"):
        trained(tmp_path / "run", "weam:links=hmm", resume=True, **where)


# Links of a file


def test_links_of_a_file_replace_those_of_the_pairs(files: Path, tmp_path: Path) -> None:
    whole = trained(tmp_path / "gold", "weam", pairs=files / "pairs")
    bare = without_links(files, tmp_path)
    path = shutil.copy(files / "pairs.pharaoh", tmp_path / "own links.txt")
    same = trained(tmp_path / "same", f"weam:links={path}", pairs=bare)
    assert same["parts"] == whole["parts"]
    path.write_text("\n".join("0-0" for _ in path.read_text().splitlines()) + "\n")
    other = trained(tmp_path / "other", f"weam:links={path}", pairs=files / "pairs")
    assert other["parts"]["cross"] != whole["parts"]["cross"]
    with pytest.raises(StoreError, match="its sentence pairs are others"):
        trained(tmp_path / "same", f"weam:links={path}", pairs=bare, resume=True)
    aligned = trained(tmp_path / "hmm", "weam:links=hmm", pairs=bare)
    assert set(aligned["parts"]) == {"tlm", "cross"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "is neither gold, hmm, eflomal nor a file that is there"),
        ("", "lines of links, but"),
        ("0-0", "1 line of links, but"),
        ("\n" * 80, "its sentence pairs have no links"),
        ("0-0\n" * 79 + "0-99\n", "the link 0-99 is to target word 99"),
        ("0-0\n" * 79 + "0:1\n", "'0:1' is not a link"),
    ],
)
def test_files_of_links(text: str | None, message: str, files: Path, tmp_path: Path) -> None:
    path = tmp_path / "links.txt"
    if text is not None:
        path.write_text(text)
    with pytest.raises(DerivlangError) as error:
        trained(tmp_path / "run", f"weam:links={path}", pairs=files / "pairs")
    assert message in str(error.value)
    assert str(path) in str(error.value)
    assert not (tmp_path / "run").exists()


def test_pairs_without_links(files: Path, tmp_path: Path) -> None:
    bare = without_links(files, tmp_path)
    with pytest.raises(DataError, match="its sentence pairs have no links") as error:
        trained(tmp_path / "run", "weam", pairs=bare)
    assert (error.value.id, error.value.where) == ("no-links", str(bare))
    trained(tmp_path / "tlm", "tlm", pairs=bare)  # needs none
    links = shutil.copy(files / "pairs.pharaoh", tmp_path / "links.txt")
    with pytest.raises(UsageError, match="but the pairs come from the corpus"):
        trained(tmp_path / "run", f"weam:links={links}")
    assert not (tmp_path / "run").exists()


def test_exact_links_are_those_of_sentence_pairs() -> None:
    made = loader("weam")
    rows, _ = stream_rows(made, "pairs", 0, 3)
    plain = stream_rows(loader("tlm:reset=no"), "pairs", 0, 3)[0]
    assert rows.clean_ids.tolist() == plain.clean_ids.tolist()
    assert rows.links is not None
    assert rows.links.shape[1] == (rows.word_ids >= 0).sum()  # one for each sub-word
    assert isinstance(made.streams[0].stream, LinkedPairs)


# DICT-TLM


@pytest.mark.parametrize(("switch", "coverage"), [(15, "25"), (100, "25"), (100, "100"), (0, "25")])
def test_the_dose_of_code_switching_by_a_slow_count(switch: int, coverage: str, tmp_path: Path) -> None:
    """Masked positions of the copy whose label is not the sub-word of the first half; the log has their share."""
    name = f"dict-tlm:switch={switch}"
    made = loader(name, coverage=coverage)
    found = []
    for (micro,) in made.steps(0, 6):
        batch, translated, words = micro["switched"], 0, 0
        width = batch.input_ids.shape[1]
        label = dict(zip(batch.targets.tolist(), batch.labels.tolist(), strict=True))
        for row in range(len(batch.input_ids)):
            halves = [np.flatnonzero((batch.word_ids[row] >= 0) & (batch.side[row] == side)) for side in (0, 1)]
            for one, two in zip(*halves, strict=True):
                if (at := row * width + int(two)) in label:
                    assert label[at] == batch.clean_ids[row, two]
                    translated += batch.clean_ids[row, one] != batch.clean_ids[row, two]
            for side in halves:
                for word in np.unique(batch.word_ids[row, side]):
                    columns = np.flatnonzero(batch.word_ids[row] == word)
                    assert len({row * width + int(c) in label for c in columns}) == 1  # whole words
                    words += 1
        assert micro.counts["translated"] == translated
        found.append((translated, len(label)))
    assert switch == 15 or (sum(n for n, _ in found) > 3) == (switch > 0)
    if coverage == "25":
        trained(tmp_path / "run", name, log_every=6, save_every=6)
        (entry,) = log(tmp_path / "run")
        translated, masked = np.sum(found, axis=0).tolist()
        assert entry.get("translated_percent", 0) == round(100 * translated / masked, 2)


def test_a_dictionary_without_an_entry_in_the_text(tmp_path: Path) -> None:
    """Its one entry is a sub-word that is never a whole word."""
    prepared = pair()
    words = prepared.data.begins
    pieces = np.arange(len(prepared.data.pieces) - 1)
    ids = prepared.data.tokens(pieces, np.zeros_like(pieces)).ids
    alone = set(ids[:-1][(words[:-1] == 1) & (words[1:] == 1)].tolist())
    n_special = prepared.languages.tokenizer.n_special
    number = next(i for i in range(n_special, prepared.languages.tokenizer.size) if i not in alone)
    both = (prepared.languages.tokenizer.tokenizer, prepared.languages.twin.tokenizer)
    path = tmp_path / "dictionary.tsv"
    path.write_text("\t".join(found.bpe.entries[number] for found in both) + "\n", "utf-8")
    with pytest.raises(DataError, match="no word of the text has an entry in the dictionary") as error:
        trained(tmp_path / "run", "dict-tlm", dictionary=path)
    assert error.value.id == "no-entry"
    assert not (tmp_path / "run").exists()
    assert data_folder().exists()


@pytest.mark.parametrize("name", ["dict-tlm", "weam"])
def test_a_run_that_begins_from_one_of_its_kind_has_other_rows_and_masks(name: str, tmp_path: Path) -> None:
    """With the same seed: else the second stage would replay the first."""
    trained(tmp_path / "cold", name, log_every=1)
    trained(tmp_path / "begins", name, log_every=1, init=str(tmp_path / "cold"))
    cold, begins = ([(e["tokens"], e["masked_percent"]) for e in log(tmp_path / run)] for run in ("cold", "begins"))
    assert not set(cold) & set(begins)
