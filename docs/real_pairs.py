"""Train each method of alignment on pairs of real languages, and print gold alignment error rates before and after.

    python docs/real_pairs.py DATA OUT [--pairs en-fr] [--forms bert] [--methods weam:links=hmm] [--steps 200]

DATA is a folder with align/, as the guide on aligners has it. For each pair of languages and form of checkpoint, OUT
gets the bitext as derivlang reads it, a tokenizer that is trained on it, a small checkpoint with random weights, and a
run of each method from it. What is there already is not made again. No gold link is used in training.
"""

from __future__ import annotations

import argparse
import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from derivlang.align.align import align_bitext
from derivlang.align.bitext import Bitext, encode
from derivlang.align.links import Links, parse_lines, score
from derivlang.cli.main import main as derivlang
from derivlang.commands.evaluate import Evaluate

# The first language is the source; de-en is the order of the gold links.
PAIRS = ("en-fr", "de-en")
FORMS = ("bert", "roberta", "xlm-roberta")
DICTIONARIES = {"en-fr": "en-fr.txt", "de-en": "en-de.txt"}  # the second is turned
OBJECTIVES = ("dict-tlm:switch=100", "weam:links=hmm", "ppa:queue=500:shortest=1", "xlm-align")
TRAINING = ("--batch-size", 16, "--seq-len", 64, "--pair-length", 64, "--learning-rate", 2e-3)
LAYERS, WIDTH, ENTRIES, SHORTEST, LONGEST, MOST = 2, 64, 4000, 3, 16, 5_000
# (method, layer): how words are linked.
LINKERS = (("argmax", 0), ("argmax", 1), ("argmax", 2), ("transport", 2))
_TOKEN = re.compile(r"\w+['’](?=\w)|\w+|[^\w\s]")


def bitext(data: Path, pair: str) -> Iterator[tuple[str, str]]:
    """Yield pairs of tokenised, lower-cased sentences: Tatoeba for en-fr, Multi30k for de-en."""
    folder = data / "align" / "bitext"
    if pair == "de-en":
        files = [folder / f"multi30k/train.lc.norm.tok.{language}.gz" for language in ("de", "en")]
        yield from zip(*(gzip.decompress(f.read_bytes()).decode().split("\n")[:-1] for f in files), strict=True)
        return
    with gzip.open(folder / "tatoeba/en-fr.tsv.gz", "rt", encoding="utf-8") as stream:
        for row in stream:
            source, target = row.lower().rstrip("\n").split("\t")
            yield " ".join(_TOKEN.findall(source)), " ".join(_TOKEN.findall(target))


def gold(data: Path, pair: str) -> tuple[list[str], list[str], Links]:
    """Return the lower-cased sentences of a gold set and its links."""
    first, second = pair.split("-")
    read = [
        (data / "align" / pair / f"test.{end}").read_text("utf-8").split("\n")[:-1] for end in (first, second, "gold")
    ]
    return [line.lower() for line in read[0]], [line.lower() for line in read[1]], parse_lines(read[2])


def write_text(data: Path, pair: str, out: Path) -> None:
    """Write PREFIX.source and PREFIX.derived, and both one after the other as running text of both languages."""
    if out.with_suffix(".txt").exists():
        return
    short = [
        (a, b) for a, b in bitext(data, pair) if all(SHORTEST <= side.count(" ") + 1 <= LONGEST for side in (a, b))
    ]
    step = max(1, len(short) // MOST)  # Tatoeba is sorted by length
    some = short[::step][:MOST]
    source, target, _ = gold(data, pair)
    sides = [a for a, _ in some] + source, [b for _, b in some] + target
    out.parent.mkdir(parents=True, exist_ok=True)
    for ending, lines in ((".source", sides[0]), (".derived", sides[1]), (".txt", sides[0] + sides[1])):
        out.with_suffix(ending).write_text("".join(f"{line}\n" for line in lines), "utf-8")


def write_dictionary(data: Path, pair: str, out: Path) -> None:
    """Write the dictionary of words, with words of the source first."""
    text = (data / "dict" / DICTIONARIES[pair]).read_text("utf-8")
    lines = [re.split("[ \t]+", line) for line in text.split("\n")[:-1]]
    turned = not DICTIONARIES[pair].startswith(pair)
    out.write_text("".join(f"{' '.join(line[::-1] if turned else line)}\n" for line in lines), "utf-8")


def tokenizer_of(form: str, text: Path) -> Any:
    """Return a fast tokenizer of the form's kind: word pieces, bytes with a space before words, or a unigram model."""
    from transformers import PreTrainedTokenizerFast

    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    if form != "bert":
        specials = ["<pad>", "<unk>", "<s>", "</s>", "<mask>"]
    options: dict[str, Any] = {"vocab_size": ENTRIES, "special_tokens": specials, "show_progress": False}
    if form == "bert":
        made: Any = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        made.normalizer = normalizers.BertNormalizer(lowercase=True)
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        made.decoder = decoders.WordPiece()
        trainer: Any = trainers.WordPieceTrainer(**options)
    elif form == "roberta":
        made = Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
        made.post_processor = processors.ByteLevel(trim_offsets=True)
        trainer = trainers.BpeTrainer(initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), **options)
    else:
        made = Tokenizer(models.Unigram())
        made.normalizer = normalizers.NFKC()
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        made.decoder = decoders.Metaspace()
        trainer = trainers.UnigramTrainer(unk_token="<unk>", **options)
    made.train([str(text)], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=made, **dict(zip(names, specials, strict=True)))


def write_checkpoint(form: str, text: Path, out: Path) -> None:
    """Write a checkpoint with random weights as `transformers` does, and its tokenizer."""
    import torch
    from transformers import AutoConfig, AutoModelForMaskedLM

    if (out / "tokenizer.json").exists():
        return
    tokenizer = tokenizer_of(form, text)
    config = AutoConfig.for_model(
        form,
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=2,
        intermediate_size=2 * WIDTH,
        max_position_embeddings=300,
        initializer_range=0.05,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.cls_token_id,
        eos_token_id=tokenizer.sep_token_id,
    )
    torch.manual_seed(1)
    AutoModelForMaskedLM.from_config(config).save_pretrained(out)
    tokenizer.save_pretrained(out)


def train(prefix: Path, checkpoint: Path, method: str, dictionary: Path, steps: int, out: Path) -> Path:
    """Train a method on the pairs of PREFIX from a checkpoint, and return the folder of the run."""
    run = out / re.sub(r"\W+", "-", method)
    if (run / "model").exists():
        return run
    own = ("--dictionary", dictionary) if method.startswith("dict-tlm") else ()
    arguments = ("--source", prefix.with_suffix(".txt"), "--words", "space", "--t", "identity", "--objective", method,
                 "--init", checkpoint, "--pairs", prefix, *own, *TRAINING, "--steps", steps, "--save-every", steps,
                 "--data", out / "data", "--resume", "--json", "-o", run)  # fmt: skip
    derivlang(["pretrain", *map(str, arguments)], standalone_mode=False)
    return run


def error_rates(gold: Path, run: Path | None = None, **checkpoint: Any) -> list[float]:
    """Return AER, in percent, of the links of each of LINKERS, of a run or a checkpoint. It is kept in the folder."""
    found = Evaluate(run, measure=f"links:{gold}", device="cpu", **checkpoint)()
    return [found.set_index(["metric", "layer"])["value"][name, layer] for name, layer in LINKERS]


def baselines(text: Bitext, wanted: Links, prefix: Path) -> dict[str, float]:
    """Return AER, in percent, of a random word for each, of the word at the same place, and of the HMM aligner."""
    sizes = [np.diff(offsets) for offsets in (text.source.offsets, text.target.offsets)]
    rows = np.repeat(np.arange(len(text)), sizes[0])
    place = np.concatenate([np.arange(n) for n in sizes[0]])
    random = (np.random.default_rng(1).random(len(rows)) * sizes[1][rows]).astype(np.int32)
    diagonal = np.round(place * (sizes[1] - 1)[rows] / np.maximum(sizes[0] - 1, 1)[rows]).astype(np.int32)
    found = {
        name: Links.of(rows, place.astype(np.int32), target, len(text))
        for name, target in (("random", random), ("same place", diagonal))
    }
    sides = [prefix.with_suffix(ending).read_text("utf-8").split("\n")[:-1] for ending in (".source", ".derived")]
    lines = list(align_bitext(encode(*sides)).lines())[-len(text) :]
    found["`hmm`"] = parse_lines(lines)
    return {name: 100 * score(links, wanted).aer for name, links in found.items()}


def main() -> None:
    """Print the tables as Markdown."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--pairs", nargs="+", default=PAIRS)
    parser.add_argument("--forms", nargs="+", default=FORMS)
    parser.add_argument("--methods", nargs="+", default=OBJECTIVES)
    parser.add_argument("--steps", type=int, default=200)
    asked = parser.parse_args()
    titles = [f"`{method}`, {layer}" for method, layer in LINKERS]
    for pair in asked.pairs:
        prefix = asked.out / pair / "text"
        dictionary = asked.out / pair / "words.txt"
        write_text(asked.data, pair, prefix)
        write_dictionary(asked.data, pair, dictionary)
        source, target, wanted = gold(asked.data, pair)
        text, known = encode(source, target), prefix.with_name("gold")
        for ending, lines in (("source", source), ("derived", target), ("pharaoh", wanted.lines())):
            known.with_name(f"gold.{ending}").write_text("".join(f"{line}\n" for line in lines), "utf-8")
        print(", ".join(f"{name} {aer:.1f}" for name, aer in baselines(text, wanted, prefix).items()), flush=True)
        print(_row(["languages", "checkpoint", "method", *titles]))
        print(_row(["---"] * 3 + ["---:"] * len(titles)), flush=True)
        for form in asked.forms:
            out = asked.out / pair / form
            write_checkpoint(form, prefix.with_suffix(".txt"), out / "checkpoint")
            plain = {"source": str(prefix.with_suffix(".txt")), "spec": "identity", "out": out / "before"}
            before = error_rates(known, init=str(out / "checkpoint"), **plain)
            print(_row([pair, form, "before", *(f"{aer:.1f}" for aer in before)]), flush=True)
            for method in asked.methods:
                run = train(prefix, out / "checkpoint", method, dictionary, asked.steps, out)
                after = error_rates(known, run)
                print(_row([pair, form, f"`{method}`", *(f"{aer:.1f}" for aer in after)]), flush=True)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
