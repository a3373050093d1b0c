"""Words: one value a word (UPOS, lemma, any list column as long as its words). It moves with its word."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int32
from derivlang.core.arrow import to_arrow, to_numpy
from derivlang.core.batch import Batch, Move, Policies
from derivlang.core.layers import side_columns

# CoNLL-U's notes on white space belong to a place in the source text, not to a word.
_SPACE_KEYS = ("SpaceAfter=", "SpacesAfter=", "SpacesBefore=", "SpacesInToken=")


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """name: the column. codes: int32[N] into values (Arrow [V], any type).

    filler: the value of an inserted word. classes: names, where the column is a class label; values are then
    its names and the column holds int64. spaces: values are CoNLL-U MISC, whose notes on white space go when
    the words move. side: the side that it annotates; None: all of them, as a parser does.
    """

    name: str
    codes: Int32
    values: pa.Array
    filler: str | None = None
    classes: tuple[str, ...] | None = None
    spaces: bool = False
    side: int | None = 0

    @classmethod
    def of(cls, name: str, flat: pa.Array, **options: object) -> Words:
        """From one value a word, Arrow [N]."""
        if isinstance(flat, pa.ChunkedArray):
            flat = flat.combine_chunks()
        encoded = flat if pa.types.is_dictionary(flat.type) else flat.dictionary_encode(null_encoding="encode")
        codes = to_numpy(encoded.indices).astype(np.int32)
        return cls(name, codes, encoded.dictionary, **options)  # type: ignore[arg-type]

    def realign(self, move: Move) -> Words:
        index = move.order.index
        codes, values = self.codes.take(index, mode="clip"), self.values
        if self.spaces:
            values = _without_spaces(values)
        if move.order.n_inserted:
            filler = self.filler if pa.types.is_string(values.type) else None
            found = pc.index(values, filler).as_py() if filler is not None else -1
            if found < 0:
                found = len(values)
                values = pa.concat_arrays([values, pa.array([filler], values.type)])
            codes = np.where(index < 0, np.int32(found), codes)
        return Words(self.name, codes, values, self.filler, self.classes, self.spaces, self.side)

    def columns(self, batch: Batch) -> dict[str, pa.Array]:
        values = self.values
        if self.classes is not None:  # a value that is no class (an inserted word's filler) is -1
            numbers = {name: i for i, name in enumerate(self.classes)}
            values = pa.array([numbers.get(v, -1) for v in values.to_pylist()], pa.int64())
        if self.side is None:
            flat = pa.DictionaryArray.from_arrays(to_arrow(self.codes), values)
        else:
            flat = values.take(to_arrow(self.codes))
        return side_columns(self.name, batch, flat, self.side)

    def group(self, batch: Batch, policies: Policies, inside: Bool) -> None:
        return None


def _without_spaces(values: pa.Array) -> pa.Array:
    def bare(misc: str | None) -> str | None:
        if misc is None:
            return None
        kept = [part for part in misc.split("|") if not part.startswith(_SPACE_KEYS)]
        return "|".join(kept) or "_"

    return pa.array([bare(v) for v in values.to_pylist()], values.type)
