"""Links by the states of an encoder: against states of single sentences, of both kinds of languages, and bad input."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from derivlang.align.bitext import encode
from derivlang.align.links import Links
from derivlang.align.similarity import METHODS, cosine
from derivlang.core.errors import UsageError
from derivlang.evaluation import encoder_links
from derivlang.evaluation.encoder_links import LinkEncoder
from tests.checkpoints import checkpoint
from tests.commands import run as cli
from tests.commands import written
from tests.tiny_runs import languages, model_of, rows_of_twins_equal, save_model, write_run

ENGLISH = ["The old dog did not see the cat .", "", "A student reads three books .", "They lowered it", "Again ."]
OTHER = ["dog old The not did see cat the", "nothing", "three books reads a student .", "", "again"]


def lines(links: Links) -> list[str]:
    return list(links.lines())


@pytest.mark.parametrize("method", sorted(METHODS))
@pytest.mark.parametrize("layer", [0, 1, 2])
def test_links_are_those_of_sentences_encoded_one_by_one(
    method: str, layer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import AutoModel, AutoTokenizer

    folder = checkpoint("bert")
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()

    def states(text: str) -> np.ndarray:
        read = tokenizer(text.split(), is_split_into_words=True)
        row = torch.tensor([[tokenizer.cls_token_id, *read["input_ids"], tokenizer.sep_token_id]])
        with torch.no_grad():
            found = model(row, output_hidden_states=True).hidden_states[layer][0].numpy()
        words = [None, *read.word_ids(), None]
        return np.stack([found[[w == i for w in words]].mean(0) for i in range(len(text.split()))])

    wanted = []
    for ours, theirs in zip(ENGLISH, OTHER, strict=True):
        links = []
        if ours and theirs:
            found = METHODS[method](cosine(states(ours), states(theirs)).astype(np.float64))
            links = [f"{i}-{j}" for i, j in zip(*found.nonzero(), strict=True)]
        wanted.append(" ".join(links))
    encoder = LinkEncoder.load(str(folder), layer, "cpu")
    for together in (256, 2):  # the result does not depend on how many pairs are read at once
        monkeypatch.setattr(encoder_links, "_PAIRS", together)
        found, n_cut = encoder.links(encode(ENGLISH, OTHER), method)
        assert (lines(found), n_cut) == (wanted, 0)
    assert sum(map(bool, wanted)) == 3


def test_a_run_reads_each_side_in_its_language(tmp_path: Path) -> None:
    """Of a model whose twins have equal embeddings the words under trans are linked in their order."""
    run = write_run(tmp_path / "run", "trans", kind="roberta")
    both = languages("trans")
    save_model(run, rows_of_twins_equal(model_of("roberta", both.size), both))
    (lexicon,) = both.pipeline.fit().steps
    text = ["the old man did not see it", "a small town ."]
    derived = [" ".join(lexicon.apply(pa.array(line.split())).to_pylist()) for line in text]
    assert derived != text
    warnings: list[str] = []
    encoder = LinkEncoder.load(str(run), None, "cpu")
    found, _ = encoder.links(encode(text, derived), "argmax", warnings.append)
    assert lines(found) == ["0-0 1-1 2-2 3-3 4-4 5-5 6-6", "0-0 1-1 2-2 3-3"]
    assert not warnings
    encoder.links(encode(derived, text), "argmax", warnings.append)
    assert [message.partition(" % of ")[2] for message in warnings] == [
        f"the sub-words of the {side} are unknown to the tokenizer of the encoder" for side in ("source", "target")
    ]


def test_words_behind_the_end_of_a_row_have_no_links() -> None:
    encoder = LinkEncoder.load(str(checkpoint("bert")), None, "cpu")
    assert (encoder.layer, encoder.longest) == (1, 140)
    long = " ".join(["dog"] * 30 + ["cat ."] * 100)
    warnings: list[str] = []
    text = encode([long, "A dog ."], [long, "A cat ."])
    found, n_cut = encoder.links(text, "itermax", warnings.append)
    assert n_cut == len(warnings) == 2
    assert "1 sentences of the source are longer than the 140 sub-words" in warnings[0]
    pieces = [len(encoder.languages.tokenizer.whole.tokenize(word)) for word in long.split()]
    fitting = int(np.searchsorted(np.cumsum(pieces), 138, "right"))
    assert fitting < len(pieces)
    (begin, end), second = pairwise(found.offsets)
    assert found.source[begin:end].max() == found.target[begin:end].max() == fitting - 1
    alone, _ = encoder.links(encode(["A dog ."], ["A cat ."]), "itermax")
    assert lines(alone) == [lines(found)[1]]
    assert second[0] < second[1]


def test_a_layer_that_is_not_there() -> None:
    with pytest.raises(UsageError, match=r"there is no layer 3: .* has the layers 0, its embeddings, to 2") as caught:
        LinkEncoder.load(str(checkpoint("bert")), 3)
    assert caught.value.id == "layer"


def test_the_command(tmp_path: Path) -> None:
    texts = [written(tmp_path / name, "\n".join(text) + "\n") for name, text in (("a", ENGLISH), ("b", OTHER))]
    command = ("align", "train", *texts, "--model", "ot", "--encoder", checkpoint("bert"), "--device", "cpu")
    told = cli(*command, "-o", tmp_path / "out", "--json").json
    assert list(told) == ["out", "model", "encoder", "layer", "cut", "sentences", "links", "seconds"]
    assert (told["layer"], told["cut"], told["sentences"]) == (1, 0, 5)
    wanted, _ = LinkEncoder.load(str(checkpoint("bert")), 1, "cpu").links(encode(ENGLISH, OTHER))
    assert (tmp_path / "out").read_text() == "".join(f"{line}\n" for line in lines(wanted))
    lower = cli(*command, "--lower", "--layer", 2, "-o", tmp_path / "lower", "--json").json
    assert lower["layer"] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--model", "ot"), "name the encoder with --encoder"),
        (("--encoder", "CHECKPOINT"), "--encoder: hmm learns only from the text"),
        (("--encoder", "CHECKPOINT", "--model", "itermx"), "did you mean itermax or"),
        (
            ("--encoder", "CHECKPOINT", "--model", "ot", "--symmetrise", "union"),
            "--symmetrise: cannot be given with --encoder",
        ),
        (
            ("--encoder", "CHECKPOINT", "--model", "ot", "--iterations", "2"),
            "--iterations: cannot be given with --encoder",
        ),
        (("--encoder", "CHECKPOINT", "--model", "ot", "--layer", "9"), "there is no layer 9"),
        (("--layer", "1"), "--layer: has no effect without --encoder"),
        (("--device", "cpu"), "--device: has no effect without --encoder"),
        (("--encoder", "nowhere", "--model", "ot"), "nowhere: is not a run"),
    ],
)
def test_bad_options(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    texts = [written(tmp_path / name, "A dog .\n") for name in "ab"]
    words = [str(checkpoint("bert")) if word == "CHECKPOINT" else word for word in options]
    ran = cli("align", "train", *texts, "-o", tmp_path / "out", *words, code=1 if "nowhere" in options else 2)
    assert message in ran.err
    assert not (tmp_path / "out").exists()
