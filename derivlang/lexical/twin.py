"""The twin of a tokenizer: every entry and merge mapped through a script. It gives derived text the source's ids.

    twin.encode(f(text)) = source.encode(text), id by id

The suffix and special tokens are not mapped. *Joint* ids number a common vocabulary of both languages. The source
keeps its ids, and a twin's id i becomes i + (V - n_special) unless it is a special token:

    0 … n_special - 1 | source's n_special … V - 1 | twin's V … 2V - n_special - 1

With an overlap, kept words have the source's ids. If all are kept, as under an order of words, there is one block of
ids, 0 … V - 1. One *file* for both languages is exact only if no entry is the image of an entry.

Write a twin's folder from a tokenizer's folder, and read it back with its kept words and joint ids.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Bool, Int32, Int64
from derivlang.core.arrow import to_arrow
from derivlang.core.batch import Batch
from derivlang.core.errors import DataError, StoreError, UsageError, parse_errors
from derivlang.core.lexicon import Lexicon, special_types
from derivlang.core.version import __version__
from derivlang.lexical.bpe import SPECIAL_TOKENS, SUFFIX, Bpe, is_listed
from derivlang.lexical.encoding import Encoded, SubwordEncoder
from derivlang.lexical.settings import TwinOptions
from derivlang.lexical.tokenizer import (
    FORMAT,
    JOINT,
    RECIPE,
    TOKENIZERS,
    Tokenizer,
    require_source,
)
from derivlang.lexical.train import read_words
from derivlang.pipeline import Pipeline
from derivlang.store.manifest import LEXICON
from derivlang.store.record import check_same
from derivlang.transforms.fitting import read_lexicon
from derivlang.transforms.scripts import Script
from derivlang.transforms.trans import Trans, Transliteration, map_script

_LISTED = 20


def twin_of(source: Tokenizer, script: Script) -> Tokenizer:
    """Return the twin in a script.

    Raise DataError if two entries have the same image, which does not occur in derivlang's own tokenizers.
    """
    image = images(source.bpe, script)
    entries = tuple(image[entry] for entry in source.bpe.entries)
    if len(set(entries)) < len(entries):
        seen: set[str] = set()
        twice = [entry for entry in entries if entry in seen or seen.add(entry)]  # type: ignore[func-returns-value]
        raise DataError(f"entries have the same image in {script.name}: {_some(twice)}", id="clash")
    merges = tuple((image[left], image[right]) for left, right in source.bpe.merges)
    return Tokenizer(Bpe(entries, merges, source.n_special), (script.name,))


def check_unmarked(source: Tokenizer, script: Script) -> None:
    """Raise DataError if an offset script turns a character of an entry into `<` or `[` (`bpe.py`)."""
    letters = set() if is_listed(script) else {script.map_text(token[0]) for token in SPECIAL_TOKENS}
    held = [entry for entry in source.bpe.entries if not letters.isdisjoint(entry)]
    if held:
        raise DataError(
            f"{script.name} turns characters of the vocabulary into < or [, which begin special tokens: {_some(held)}",
            where="--t",
            fix="use another offset, or a tokenizer of text without them",
            id="clash",
        )


def images(bpe: Bpe, script: Script) -> dict[str, str]:
    """Return the image of each entry."""
    out = {entry: entry for entry in bpe.entries[: bpe.n_special]}
    for entry in bpe.entries[bpe.n_special :]:
        stem = entry.removesuffix(SUFFIX)
        out[entry] = script.map_text(stem) + entry[len(stem) :]
    return out


def clashes(source: Tokenizer, script: Script) -> list[str]:
    """Return the entries, without special tokens, that are the image of an entry."""
    plain = source.bpe.entries[source.n_special :]
    known, image = set(plain), images(source.bpe, script)
    return [image[entry] for entry in plain if image[entry] in known]


def joint_file(source: Tokenizer, twin: Tokenizer, script: Script) -> Tokenizer:
    """Return one tokenizer for both languages with joint ids. Raise DataError if an entry is the image of another.

    It is exact for text whose characters are in the source's vocabulary. Others are `<unk>` for the source's tokenizer,
    but may be letters of the twin here.
    """
    clashing = clashes(source, script)
    if clashing:
        raise DataError(
            f"one file for both languages cannot be exact: {len(clashing):,} entries are also the image of one in "
            f"{script.name}: {_some(clashing)}",
            where="--joint",
            fix="leave --joint out (two files and the joint ids are exact), or use another script (private)",
            id="joint-clash",
        )
    entries = source.bpe.entries + twin.bpe.entries[twin.n_special :]
    bpe = Bpe(entries, source.bpe.merges + twin.bpe.merges, source.n_special)
    return Tokenizer(bpe, (*source.scripts, *twin.scripts))


@dataclass(frozen=True, slots=True, eq=False)
class JointIds:
    """The joint ids of a source and its twin.

    vocab_size: V of either tokenizer. same: whether all words have the source's ids. after: the first id of a twin
    whose entries do not follow the source's; 0 if they do. separate: whether no word has the source's ids.
    """

    vocab_size: int
    n_special: int
    same: bool = False
    after: int = 0
    separate: bool = False

    @property
    def shift(self) -> int:
        """The number that is added to a twin's id; 0 if the languages share all ids."""
        return 0 if self.same else (self.after or self.vocab_size) - self.n_special

    @property
    def size(self) -> int:
        """The number of rows of a joint embedding."""
        return self.vocab_size + self.shift

    def table(self) -> Int32:
        """Return int32[V]: the joint id of each id of the twin."""
        ids = np.arange(self.vocab_size, dtype=np.int32)
        return np.where(ids >= self.n_special, ids + np.int32(self.shift), ids)

    def of(self, encoded: Encoded, kept_words: Bool | None = None) -> Int32:
        """Return int32[M]: the derived language's joint ids of the sub-words of N source words, in their order.

        kept_words: bool[N], words that the lexicon keeps. Their sub-words have the source's ids.
        """
        ids = self.table().take(encoded.ids)
        if self.separate or kept_words is None or not kept_words.any():
            return ids
        return np.where(np.repeat(kept_words, np.diff(encoded.offsets)), encoded.ids, ids)


def subword_counts(encoded: Encoded, counts: Int64, vocab_size: int) -> Int64:
    """Return int64[V]: the frequency of each entry in the running words. encoded, counts [T]: of the word types."""
    weights = np.repeat(counts, np.diff(encoded.offsets))
    return np.bincount(encoded.ids, weights, minlength=vocab_size).astype(np.int64)


def under_lexicon(encoded: Encoded, counts: Int64, kept: Bool, tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the shared types and tokens if the words of `kept`, bool[T], are the same in both languages.

    encoded, counts [T]: of the source's word types. Types are entries in use; an entry is shared if a kept word
    contains it. Tokens are running sub-words; shared are those in kept words of the derived text, and in
    `source_tokens_percent` all occurrences of shared entries in the source text.
    """
    all_counts = subword_counts(encoded, counts, tokenizer.size)[tokenizer.n_special :]
    # The same types with the frequency 0 for words that change: what is left occurs in kept words.
    ours = subword_counts(encoded, np.where(kept, counts, 0), tokenizer.size)[tokenizer.n_special :]
    used, shared = all_counts > 0, ours > 0
    tokens = int(all_counts.sum())
    return {
        "words": _shares(len(counts), int(kept.sum()), int(counts.sum()), int(counts[kept].sum())),
        "subwords": {
            **_shares(int(used.sum()), int(shared.sum()), tokens, int(ours.sum())),
            "source_tokens_percent": _percent(int(all_counts[shared].sum()), tokens),
        },
    }


def _shares(types: int, shared_types: int, tokens: int, shared_tokens: int) -> dict[str, Any]:
    return {
        "types": types,
        "shared_types": shared_types,
        "shared_types_percent": _percent(shared_types, types),
        "tokens": tokens,
        "shared_tokens": shared_tokens,
        "shared_tokens_percent": _percent(shared_tokens, tokens),
    }


def _percent(part: int, whole: int) -> float:
    """Return a percentage with three decimals; 0 of 0 is 0."""
    return round(100 * part / max(whole, 1), 3)


def _some(entries: list[str]) -> str:
    return ", ".join(entries[:_LISTED]) + (" …" if len(entries) > _LISTED else "")


@dataclass(frozen=True, slots=True, eq=False)
class Twin:
    """A twin: its tokenizer, the joint ids of both languages, and the map that keeps or changes words."""

    tokenizer: Tokenizer
    joint: JointIds
    map: Transliteration

    @classmethod
    def load(cls, folder: Path) -> Twin:
        """Read a folder that `make_twin` wrote. Raise StoreError if it is not one."""
        tokenizer = Tokenizer.load(folder)
        recipe = tokenizer.recipe
        if recipe["kind"] != "twin":
            raise StoreError("is a source's tokenizer, not a twin", where=str(folder), id="no-twin")
        with parse_errors(str(folder / RECIPE), "recipe of a twin", error=StoreError, id="tokenizer"):
            try:
                trans = trans_of(Pipeline.from_stored(recipe["spec"], where=str(folder / RECIPE)))
            except UsageError as error:
                raise ValueError(error.what) from error
            digest = recipe["lexicon"]
        lexicon = folder / LEXICON
        saved = read_lexicon(lexicon) if trans.needs_reference else None
        if digest != _digest(saved):
            raise StoreError("is not the lexicon of the twin's recipe", where=str(lexicon), id="tokenizer")
        fitted = _only(Pipeline((trans,)).fit(saved=saved, where=str(lexicon)))
        return cls(tokenizer, _joint(tokenizer, trans), fitted)

    def kept(self, types: pa.Array) -> Bool:
        """Return bool[T]: the word types (Arrow strings, source or derived) that the overlap keeps unchanged."""
        if not self.map.overlap:
            return np.zeros(len(types), bool)
        return self.map.kept(types, map_script(types, self.map.script))

    def ids(self, encoded: Encoded, batch: Batch) -> Int32:
        """Return int32[M]: the derived language's joint ids of a *source* batch's sub-words, in source order."""
        return self.joint.of(encoded, self.kept(batch.types)[batch.words])

    def encode_words(self, encoder: SubwordEncoder, types: pa.Array, words: Int32) -> Encoded:
        """Return the joint ids of *derived* words. encoder: the source's; words: int32[N], codes into types."""
        encoded = encoder.types(self.map.apply(types)).take(words)
        return Encoded(self.joint.of(encoded, self.kept(types)[words]), encoded.offsets)


TWINS = replace(
    TOKENIZERS,
    check=Twin.load,
    words={
        "of": "it is of another tokenizer",
        "fingerprint": "its entries are others",
        "lexicon": "its lexicon is another one",
        "overlap": "other words are shared",
    },
)


def make_twin(
    folder: Path,
    spec: str,
    out: Path,
    options: TwinOptions = TwinOptions(),
    *,
    found: Callable[[Path], None] = lambda out: None,
) -> dict[str, Any]:
    """Write the twin of a tokenizer's folder under the lexicon of a pipeline, and return its recipe.

    found: called if the folder already holds the same twin, which is kept. Raise DerivlangError if something does not
    fit; nothing is written then.
    """
    if folder.resolve() == out.resolve():
        raise UsageError("a twin cannot be written over its source", where="-o", fix="give another folder", id="output")
    TWINS.check_free(out)
    trans = trans_of(Pipeline.parse(spec))
    source = require_source(Tokenizer.load(folder), str(folder))
    types, counts = _plain_words(folder)
    pipeline = Pipeline((trans,))
    if options.lexicon is not None or not trans.needs_reference:
        given = None if options.lexicon is None else read_lexicon(options.lexicon)
        fitted = _only(pipeline.fit(saved=given, where=str(options.lexicon)))
    else:
        fitted = _only(pipeline.fit(types, counts))
    script = trans.loaded
    check_unmarked(source, script)
    twin = twin_of(source, script)
    encoded = SubwordEncoder(source).types(types)
    ids = _joint(source, trans)
    saved = pipeline.save(Lexicon((fitted,)))
    clashing = clashes(source, script)
    recipe = {
        "format": FORMAT,
        "derivlang": __version__,
        "kind": "twin",
        "fingerprint": twin.fingerprint(),
        "of": source.fingerprint(),
        "vocab_size": twin.size,
        "specials": list(twin.bpe.entries[: twin.n_special]),
        "suffix": SUFFIX,
        "scripts": list(twin.scripts),
        "spec": trans.stored,
        "lexicon": _digest(saved),
        "joint": {"shift": ids.shift, "size": ids.size, "file": options.joint},
        "clashing_entries": len(clashing),
        "overlap": under_lexicon(encoded, counts, Twin(twin, ids, fitted).kept(types), source),
    }
    both = joint_file(source, twin, script) if options.joint else None

    def write(fresh: Path) -> dict[str, Any]:
        twin.save(fresh)
        if saved is not None:
            (fresh / LEXICON).write_text(saved, "utf-8", newline="\n")
        if both is not None:
            (fresh / JOINT).mkdir()
            both.save(fresh / JOINT)
        return recipe

    return TWINS.make(out, recipe, write, found, force=options.force)


def check_twin(twin: Tokenizer, tokenizer: Tokenizer, spec: str, folder: Path, fix: str) -> None:
    """Raise StoreError, with this advice, for a twin of another tokenizer, or of another `trans` (a stored spec)."""
    check_same(
        {**twin.recipe, "entries": twin.size},
        {"entries": tokenizer.size, "of": tokenizer.fingerprint(), "spec": spec},
        "is another twin",
        where=str(folder),
        fix=fix,
        id="other-twin",
        words={**TWINS.words, "entries": f"it has {twin.size:,} entries, the tokenizer {tokenizer.size:,}"},
    )


def trans_of(pipeline: Pipeline) -> Trans:
    """Return the only `trans` of a pipeline, ignoring orders. Raise UsageError if it has no or another lexicon."""
    lexical = [t for t in pipeline.transforms if t.has_lexicon]
    if len(lexical) == 1 and isinstance(lexical[0], Trans):
        return lexical[0]
    names = " and ".join(one.name for one in lexical) or "none"
    raise UsageError(
        f"a twin needs trans as the only transform that changes words, but {pipeline} has {names}",
        where="--t",
        fix="give --t trans, or trans:script=NAME; `derivlang ls` lists the scripts",
        id="no-script",
    )


def _joint(tokenizer: Tokenizer, trans: Trans) -> JointIds:
    return JointIds(tokenizer.size, tokenizer.n_special, trans.overlap == 100)


def _plain_words(folder: Path) -> tuple[pa.Array, Int64]:
    """Return the training words of a tokenizer and their counts, without special tokens."""
    types, counts = read_words(folder)
    plain = ~special_types(types)
    return types.filter(to_arrow(plain)), counts[plain]


def _digest(lexicon: str | None) -> str | None:
    return sha256(lexicon.encode()).hexdigest() if lexicon else None


def _only(lexicon: Lexicon) -> Transliteration:
    (step,) = lexicon.steps
    assert isinstance(step, Transliteration)
    return step
