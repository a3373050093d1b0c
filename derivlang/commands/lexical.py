"""`dictionary`, `pairs`, `tokenizer` and `twin`: what is made of the words of a source or a set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from derivlang.commands.sets import DerivedSet
from derivlang.commands.shared import PathLike, local, path_of, request_of
from derivlang.core.keywords import takes
from derivlang.core.settings import given
from derivlang.display.bar import ProgressBar
from derivlang.formats.places import located
from derivlang.lexical.settings import DictionaryOptions, PairOptions, TokenizerOptions, TwinOptions
from derivlang.sources.request import SourceRequest


@takes(SourceRequest, DictionaryOptions)  # both have a format: the dictionary has the argument
def dictionary(source: PathLike, spec: str | None, out: PathLike, **options: Any) -> dict[str, Any]:
    """Write the dictionary of a language pair, as `derivlang dict` does.

    spec: None for a derived set, which has its own. Percentages are numbers, or texts such as 100/3.

    Return {"out", "pairs", "types", "entries", "coverage_types", "coverage_tokens", "heldout", "noise", "left_out"}:
    numbers of lines, of vocabulary entries and of dictionary entries; percentages of types and of running words;
    numbers of held-out entries, of wrong pairs and of chosen pairs that the format cannot hold. Raise DerivlangError
    where the command would fail; no file is left half-written.
    """
    from derivlang.lexical.dictionary import make_dictionary

    settings = DictionaryOptions(out=located(out), **given(DictionaryOptions, options))
    with ProgressBar() as bar, bar.stage("reading"):
        return make_dictionary(spec, request_of(source, options), settings)


@takes(PairOptions)
def pairs(derived: DerivedSet | PathLike, out: PathLike, **options: Any) -> dict[str, Any]:
    """Write sentence pairs of a derived set with gold links, as `derivlang pair` does.

    Percentages are numbers, or texts such as 100/3.

    Return {"out", "files", "pairs", "sentences", "links", "words", "noise", "spaces"}: sentences are the pairs of the
    split, noise the wrong links or pairs, spaces the words with a space; with tokenizers also "subwords". Raise
    DerivlangError where the command would fail; no file is left half-written.
    """
    from derivlang.lexical.pairs import write_pairs

    settings = PairOptions(out=located(out), **given(PairOptions, options))
    with ProgressBar() as bar, bar.stage("pairing"):
        return write_pairs(path_of(derived), settings)


@takes(TokenizerOptions, SourceRequest)
def tokenizer(source: PathLike, out: PathLike, **options: Any) -> dict[str, Any]:
    """Train a tokenizer on the words of a source, as `derivlang tokenizer train` does.

    Return the recipe of its folder, with "vocab_size", "merges", "words" and "fingerprint". A tokenizer that the same
    call has made is kept. Raise DerivlangError where the command would fail; no file is left half-written.
    """
    from derivlang.lexical.train import train

    settings = TokenizerOptions(**given(TokenizerOptions, options))
    with ProgressBar():
        return train(request_of(source, options), local(out, "tokenizers"), settings)


@takes(TwinOptions)
def twin(tokenizer: PathLike, spec: str, out: PathLike, **options: Any) -> dict[str, Any]:
    """Make the twin of a tokenizer for a derived language, as `derivlang tokenizer twin` does.

    tokenizer: the folder of the source's. spec: the transforms, `trans` among them; orders are ignored.

    Return the recipe of its folder, with "vocab_size", "joint", "overlap" and "fingerprint". A twin that the same call
    has made is kept. Raise DerivlangError where the command would fail; no file is left half-written.
    """
    from derivlang.lexical.twin_folder import make_twin

    settings = TwinOptions(**given(TwinOptions, options))
    with ProgressBar():
        return make_twin(Path(tokenizer), spec, local(out, "tokenizers"), settings)
