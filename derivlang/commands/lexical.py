"""`dictionary`, `pairs` and `tokenizer`: what is made of the words of a source or a set."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from derivlang.commands.sets import DerivedSet
from derivlang.commands.shared import PathLike, Percent, path_of, request_of
from derivlang.core.keywords import takes
from derivlang.display.bar import ProgressBar
from derivlang.sources.request import SourceRequest


@takes(SourceRequest)
def dictionary(
    source: PathLike,
    spec: str | None,
    out: PathLike,
    *,
    coverage: Percent = 100,
    by: Literal["random", "frequency", "mass", "pos"] = "random",
    level: Literal["word", "token"] = "word",
    tokenizer: PathLike | None = None,
    noise: Percent = 0,
    heldout: Percent = 0,
    seed: int = 1,
    lexicon: PathLike | None = None,
    format: Literal["muse", "tsv", "json"] | None = None,
    repair_tags: bool = False,
    force: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Write the dictionary of a language pair, as `derivlang dict` does.

    spec: None for a derived set, which has its own. coverage, noise, heldout: in percent. format: None for that of the
    file's suffix.

    Return {"out", "pairs", "types", "entries", "coverage_types", "coverage_tokens", "heldout", "noise", "spaces"}:
    numbers of lines, of vocabulary entries and of dictionary entries; percentages of types and of running words;
    numbers of held-out entries, of wrong pairs and of words with a space. Raise DerivlangError as the command; nothing
    is half-written.
    """
    from derivlang.lexical.dictionary import DictionaryOptions, make_dictionary
    from derivlang.lexical.percent import percent

    asked = DictionaryOptions(
        Path(out),
        percent(str(coverage), "--coverage"),
        by,
        level,
        None if tokenizer is None else Path(tokenizer),
        percent(str(noise), "--noise", zero=True),
        percent(str(heldout), "--heldout", zero=True, hundred=False),
        seed,
        None if lexicon is None else Path(lexicon),
        format,
        repair_tags,
        force,
    )
    with ProgressBar() as bar, bar.stage("reading"):
        return make_dictionary(spec, request_of(source, options), asked)


@takes()
def pairs(
    derived: DerivedSet | PathLike,
    out: PathLike,
    *,
    format: Literal["pharaoh", "parquet", "text", "tmx"] = "parquet",
    rate: Percent = 100,
    split: str | None = None,
    seed: int = 1,
    noise: Percent = 0,
    noise_kind: Literal["links", "pairs"] = "links",
    tokenizers: tuple[PathLike, PathLike] | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Write sentence pairs of a derived set with gold links, as `derivlang pair` does.

    rate, noise: in percent. tokenizers: of the source and of the derived language, to add sub-words.

    Return {"out", "files", "pairs", "sentences", "links", "words", "noise", "spaces"}: sentences are the pairs of the
    split, noise the wrong links or pairs, spaces the words with a space; with tokenizers also "subwords". Raise
    DerivlangError as the command; nothing is half-written.
    """
    from derivlang.lexical.pairs import PairOptions, write_pairs
    from derivlang.lexical.percent import percent

    folders = None if tokenizers is None else (Path(tokenizers[0]), Path(tokenizers[1]))
    shares = percent(str(rate), "--rate"), percent(str(noise), "--noise", zero=True)
    asked = PairOptions(Path(out), format, shares[0], split, seed, shares[1], noise_kind, folders, force)
    with ProgressBar() as bar, bar.stage("pairing"):
        return write_pairs(path_of(derived), asked)


@takes(SourceRequest)
def tokenizer(
    source: PathLike,
    out: PathLike,
    *,
    vocab_size: int = 40_000,
    min_frequency: int = 2,
    force: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Train a tokenizer on the words of a source, as `derivlang tokenizer train` does.

    Return the recipe of its folder, with "vocab_size", "merges", "words" and "fingerprint". A tokenizer that the same
    call has made is kept. Raise DerivlangError as the command; nothing is half-written.
    """
    from derivlang.lexical.train import train

    request = request_of(source, options)
    with ProgressBar():
        return train(request, Path(out), vocab_size=vocab_size, min_frequency=min_frequency, force=force)
