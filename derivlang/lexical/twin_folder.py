"""Write a twin's folder from a tokenizer's folder, and read it back with its kept words and joint ids."""

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
from derivlang.core.errors import StoreError, UsageError, parse_errors
from derivlang.core.lexicon import Lexicon, special_types
from derivlang.core.version import __version__
from derivlang.lexical.bpe import SUFFIX
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
from derivlang.lexical.twin import JointIds, check_unmarked, clashes, joint_file, twin_of, under_lexicon
from derivlang.pipeline import Pipeline
from derivlang.store.manifest import LEXICON
from derivlang.store.record import check_same
from derivlang.transforms.fitting import read_lexicon
from derivlang.transforms.trans import Trans, Transliteration, map_script


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
