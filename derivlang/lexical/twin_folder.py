"""From a tokenizer's folder to its twin's, and a twin read back: which words keep their ids, and the joint ids."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import derivlang
from derivlang.core.arrays import Bool, Int32, Int64
from derivlang.core.arrow import to_arrow
from derivlang.core.batch import Batch
from derivlang.core.errors import StoreError, UsageError
from derivlang.core.lexicon import Lexicon, special_types
from derivlang.lexical.bpe import SUFFIX
from derivlang.lexical.encoding import Encoded, Encoder
from derivlang.lexical.overlap import (
    SUBWORDS,
    choose,
    of_entries,
    read_subwords,
    subword_counts,
    subwords_text,
    under_lexicon,
)
from derivlang.lexical.tokenizer import (
    FORMAT,
    RECIPE,
    Tokenizer,
    check_free,
    dump,
    require_source,
    write_folder,
)
from derivlang.lexical.train import read_words
from derivlang.lexical.twin import Compat, JointIds, clashes, joint_file, twin_of
from derivlang.pipeline import Pipeline, read_lexicon
from derivlang.store.manifest import LEXICON
from derivlang.transforms.scripts import load_script
from derivlang.transforms.trans import By, Trans, Transliteration, map_script

JOINT = "joint"


@dataclass(frozen=True, slots=True)
class Shared:
    """Sub-words that both languages share: percent, by and seed of a choice, or the file of an earlier one."""

    percent: int = 0
    by: By = "type"
    seed: int = 1
    file: Path | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Twin:
    """A twin: its tokenizer, the ids of both languages together, and the lexicon that says which words are kept."""

    tokenizer: Tokenizer
    joint: JointIds
    map: Transliteration

    @classmethod
    def load(cls, folder: Path) -> Twin:
        """A folder that `make_twin` wrote; StoreError if it is none."""
        tokenizer = Tokenizer.load(folder)
        recipe = tokenizer.recipe
        if recipe["kind"] != "twin":
            raise StoreError("is a source's tokenizer, not a twin", where=str(folder), id="no-twin")
        trans = trans_of(recipe["spec"])
        fitted = _fit(trans, folder / LEXICON if trans.needs_reference else None)
        kept = None
        if recipe["subwords"]:
            source = Tokenizer(twin_of(tokenizer, load_script(trans.script)).bpe)  # scripts are involutions
            kept = read_subwords(folder / SUBWORDS, source)
        return cls(tokenizer, JointIds(tokenizer.size, tokenizer.n_special, recipe["joint"]["compat"], kept), fitted)

    def kept(self, types: pa.Array) -> Bool:
        """bool[T]: which word types (Arrow strings, source or derived) the overlap keeps the same in both languages."""
        if not self.map.overlap:
            return np.zeros(len(types), bool)
        return self.map.kept(types, map_script(types, self.map.script))

    def ids(self, encoded: Encoded, batch: Batch) -> Int32:
        """int32[M]: the derived language's joint ids of a *source* batch's sub-words, in the source's order."""
        return self.joint.of(encoded, self.kept(batch.types)[batch.words])

    def encode(self, encoder: Encoder, batch: Batch) -> Encoded:
        """Joint ids of a *derived* batch that holds no inserted words. encoder: the source's."""
        kept = self.kept(batch.types)
        encoded = encoder.types(self.map.apply(batch.types)).take(batch.words)
        return Encoded(self.joint.of(encoded, kept[batch.words]), encoded.offsets)


def make_twin(
    folder: Path,
    spec: str,
    out: Path,
    *,
    lexicon: Path | None = None,
    shared: Shared | None = None,
    joint: bool = False,
    compat: Compat = "exact",
    force: bool = False,
) -> dict[str, Any]:
    """Write the twin of a tokenizer's folder under the lexicon of a pipeline; gives its recipe.

    lexicon: a saved lexicon.tsv; without one an overlap is fitted on the words that the tokenizer was trained on.
    shared: sub-words that keep the source's ids. joint: one file for both, too, in `out/joint`. DerivlangError where
    something does not fit; then nothing is written.
    """
    if folder.resolve() == out.resolve():
        raise UsageError("a twin cannot be written over its source", where="-o", fix="another folder", id="output")
    check_free(out, force=force)
    trans = trans_of(spec)
    if shared is not None and trans.overlap:
        raise UsageError(
            f"{trans} keeps words, and sub-words are to be kept too", where="--t", fix="choose one", id="two-overlaps"
        )
    if joint and (shared is not None or compat == "paper"):
        what = "kept sub-words" if shared is not None else "compat=paper"
        raise UsageError(f"a joint file cannot have {what}: they are ids alone", where="--joint", id="joint")
    source = require_source(Tokenizer.load(folder), str(folder))
    types, counts = _plain_words(folder)
    pipeline = Pipeline((trans,))
    if lexicon is not None or not trans.needs_reference:
        fitted = _fit(trans, lexicon)
    else:
        fitted = _only(pipeline.fit(types, counts))
    script = load_script(trans.script)
    twin = twin_of(source, script)
    encoded = Encoder(source).types(types)
    entry_counts = subword_counts(encoded, counts, source.size)
    kept = None
    if shared is not None:
        kept = (
            read_subwords(shared.file, source)
            if shared.file is not None
            else choose(source, entry_counts, shared.percent, shared.by, shared.seed)
        )
    ids = JointIds(source.size, source.n_special, compat, kept)
    reader = Twin(twin, ids, fitted)
    overlap = under_lexicon(encoded, counts, reader.kept(types), source)
    saved = pipeline.save(Lexicon((fitted,)))
    found = clashes(source, script)
    recipe = {
        "format": FORMAT,
        "derivlang": derivlang.__version__,
        "kind": "twin",
        "fingerprint": twin.fingerprint(),
        "of": source.fingerprint(),
        "vocab_size": twin.size,
        "specials": list(twin.bpe.entries[: twin.n_special]),
        "suffix": SUFFIX,
        "scripts": list(twin.scripts),
        "spec": str(trans),
        "lexicon": sha256(saved.encode()).hexdigest() if saved else None,
        "joint": {"compat": compat, "shift": ids.shift, "size": ids.size, "file": joint},
        "clashing_entries": len(found),
        "overlap": overlap if kept is None else of_entries(entry_counts, kept, source),
        "subwords": None if shared is None or kept is None else _said(shared),
    }
    both = joint_file(source, twin, script) if joint else None

    def write(fresh: Path) -> None:
        twin.save(fresh)
        if saved is not None:
            (fresh / LEXICON).write_text(saved, "utf-8")
        if kept is not None:
            (fresh / SUBWORDS).write_text(subwords_text(source, entry_counts, kept), "utf-8")
        if both is not None:
            (fresh / JOINT).mkdir()
            both.save(fresh / JOINT)
        (fresh / RECIPE).write_text(dump(recipe), "utf-8")

    write_folder(out, write, force=force)
    return recipe


def trans_of(spec: str) -> Trans:
    """The one `trans` of a pipeline; its orders are no matter of types. UsageError where there is none, or another."""
    lexical = [t for t in Pipeline.parse(spec).transforms if t.has_lexicon]
    if len(lexical) == 1 and isinstance(lexical[0], Trans):
        return lexical[0]
    what = f"{spec} has {len(lexical)} of them" if lexical else f"{spec} has none"
    raise UsageError(
        f"a twin needs one transform that maps words through a script, and {what}",
        where="--t",
        fix="--t trans, or trans:script=NAME; `derivlang ls` lists the scripts",
        id="no-script",
    )


def _plain_words(folder: Path) -> tuple[pa.Array, Int64]:
    """The words that a tokenizer was trained on, without special tokens."""
    types, counts = read_words(folder)
    plain = ~special_types(types)
    return types.filter(to_arrow(plain)), counts[plain]


def _fit(trans: Trans, lexicon: Path | None) -> Transliteration:
    saved = None if lexicon is None else read_lexicon(lexicon)
    return _only(Pipeline((trans,)).fit(saved=saved, where=str(lexicon)))


def _only(lexicon: Lexicon) -> Transliteration:
    (step,) = lexicon.steps
    assert isinstance(step, Transliteration)
    return step


def _said(shared: Shared) -> dict[str, Any]:
    if shared.file is not None:
        return {"from": shared.file.name}
    return {"percent": shared.percent, "by": shared.by, "seed": shared.seed}
