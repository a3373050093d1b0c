"""A parser model on disk: a folder with `model.npz` (weights in 8 bits) and `model.json` (the model's card).

model.json has the hash of model.npz and its own; the bundled parsers have none.
model.npz has for every matrix NAME int8[R, K] and `NAME.scale` float32[R], biases and root vectors as float32, and the
vocabulary as one text. model.json has name, language, tags, relations, and the origin: data, licence, settings, scores.
Parses depend on model.npz and on `language`, `tags` and `relations` only; the fingerprint is a hash of these and of the
versions of the rules that change the input.

A student has its teacher's words and word vectors, unchanged: nine tenths of its bytes. In this package they are stored
once. The student's card names the teacher and the hash of the file that has them: {"words_of": {"model": "english",
"sha256": "3f…"}}. A model that is trained is whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Float32, Int8
from derivlang.core.errors import DataError, parse_errors
from derivlang.core.seal import HASH, check_intact, sealed
from derivlang.parsing import features, normalise
from derivlang.parsing.base import UPOS

if TYPE_CHECKING:
    import torch

FORMAT = 1
RULE_VERSION = 3  # of the network (`inference.py`)
WEIGHTS, CARD = "model.npz", "model.json"
PACKAGE = Path(__file__).parent  # the models of this package have a folder each here
_OF_WEIGHTS = "weights_sha256"  # of the card; written only beside its own hash
_WORDS_OF = "words_of"  # of the card of a student in this package
_WORD_TABLES = ("vocabulary", "words", "words.scale", "pieces", "pieces.scale")


@dataclass(frozen=True, eq=False)
class StoredModel:
    """matrices: int8[R, K] by name. floats: float32 by name (scales, biases, roots). vocabulary: words, code - 2."""

    card: Mapping[str, Any]
    matrices: Mapping[str, Int8]
    floats: Mapping[str, Float32]
    vocabulary: tuple[str, ...]

    @property
    def relations(self) -> tuple[str, ...]:
        return tuple(self.card["relations"])

    @property
    def language(self) -> str:
        return str(self.card["language"])

    @property
    def has_hash(self) -> bool:
        """Whether the card has the hashes of the model's files."""
        return HASH in self.card

    @property
    def fingerprint(self) -> str:
        """Hash of everything that parses depend on: 16 hex digits."""
        digest = hashlib.blake2b(digest_size=8)
        rules = [FORMAT, features.RULE_VERSION, normalise.RULE_VERSION, RULE_VERSION]
        digest.update(json.dumps([rules, self.language, self.card["tags"], self.card["relations"]]).encode())
        arrays: dict[str, NDArray[Any]] = {**self.matrices, **self.floats}
        for name, array in sorted(arrays.items()):
            digest.update(f"{name}{array.shape}{array.dtype}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update("\n".join(self.vocabulary).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


def make_model(weights: Mapping[str, Float32], vocabulary: Mapping[str, int], card: Mapping[str, Any]) -> StoredModel:
    """Return the model of trained float weights, with matrices in 8 bits."""
    matrices: dict[str, Int8] = {}
    floats: dict[str, Float32] = {}
    for name, w in weights.items():
        if is_matrix(name, w):
            matrices[name], floats[f"{name}.scale"] = _in_8_bits(w)
        else:
            floats[name] = np.asarray(w, np.float32)
    words = tuple(sorted(vocabulary, key=lambda word: vocabulary[word]))
    return StoredModel({"format": FORMAT, **card}, matrices, floats, words)


def is_matrix(name: str, w: Any) -> bool:
    """Return whether these weights are stored in 8 bits."""
    return w.ndim == 2 and not name.endswith("_root")


def _in_8_bits(w: Float32) -> tuple[Int8, Float32]:
    """Return (weights int8[R, K], scales float32[R]), with the largest weight of each row at 127."""
    scale = (np.maximum(np.abs(w).max(1), 1e-8) / 127).astype(np.float32)
    return np.rint(w / scale[:, None]).astype(np.int8), scale


def rounded(w: torch.Tensor) -> torch.Tensor:
    """Return a matrix rounded to 8 bits, as the stored model has it: the last steps of a training compute with it."""
    scale = w.abs().amax(1, keepdim=True).clamp_min(1e-8) / 127
    return (w / scale).round() * scale


def save_model(model: StoredModel, folder: Path, *, words_of: str | None = None) -> None:
    """Write the two files of a model; the same model gives the same bytes.

    words_of: a model of this package with the same word tables, which are then not written again. Raises ValueError if
    it has other ones.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = np.frombuffer("\n".join(model.vocabulary).encode("utf-8", "surrogatepass"), np.uint8)
    arrays: dict[str, NDArray[Any]] = {"vocabulary": text, **model.matrices, **model.floats}
    card = {name: value for name, value in model.card.items() if name != _WORDS_OF}
    if words_of is not None:
        weights = PACKAGE / words_of / WEIGHTS
        for name, theirs in _read_arrays(weights, _WORD_TABLES).items():
            if not np.array_equal(arrays.pop(name), theirs):
                raise ValueError(f"{name} differs from the {name} of {words_of}")
        card[_WORDS_OF] = {"model": words_of, "sha256": _hash_of(weights)}
    with (folder / WEIGHTS).open("wb") as out:
        np.savez_compressed(out, **arrays)  # type: ignore[arg-type]
    card = sealed({**card, _OF_WEIGHTS: _hash_of(folder / WEIGHTS)})
    (folder / CARD).write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", "utf-8", newline="\n")


def load_model(folder: Path) -> StoredModel:
    """Load the model of a folder. Raises DataError parser-missing, parser-damaged."""
    for name in (WEIGHTS, CARD):
        with parse_errors(str(folder), "folder", id="parser-missing"):
            exists = (folder / name).is_file()
        if not exists:
            raise DataError(
                f"the folder has no parser model: {name} is missing",
                where=str(folder),
                fix="give a folder made by `derivlang parser train`, or the name of a parser (`derivlang parser ls`)",
                id="parser-missing",
            )
    with readable(folder):
        card = json.loads((folder / CARD).read_text("utf-8"))
        if card["format"] != FORMAT:
            raise ValueError(f"its format is {card['format']}, this version reads {FORMAT}")
        if card.keys() & {HASH, _OF_WEIGHTS}:  # the card of a bundled model has neither
            check_intact(card)
            if card[_OF_WEIGHTS] != _hash_of(folder / WEIGHTS):
                raise ValueError(f"{WEIGHTS} is not the one that {CARD} was written for")
        arrays = _read_arrays(folder / WEIGHTS)
        if _WORDS_OF in card:
            arrays |= _read_arrays(_weights_with_words(card[_WORDS_OF], folder), _WORD_TABLES)
        text = arrays.pop("vocabulary").tobytes().decode("utf-8", "surrogatepass")
        vocabulary = text.split("\n") if text else []  # a small treebank may have no word often enough
        model = StoredModel(
            card,
            {name: array for name, array in arrays.items() if array.dtype == np.int8},
            {name: array for name, array in arrays.items() if array.dtype == np.float32},
            tuple(vocabulary),
        )
        if model.matrices["words"].shape[0] != len(vocabulary) + 2:
            raise ValueError(f"it has {len(vocabulary)} words, but vectors of {len(model.matrices['words']) - 2}")
        for name, expected in (("label", len(model.relations)), ("tag", len(UPOS))):
            if len(model.matrices[name]) != expected:
                raise ValueError(f"{name} has {len(model.matrices[name])} rows, not {expected}")
    return model


def read_card(folder: Path) -> dict[str, Any]:
    """Return the card of a model without its format and the hashes, as a reader of it wants it.

    Raises DataError parser-damaged for a file that is not a model card.
    """
    with readable(folder):
        card = json.loads((folder / CARD).read_text("utf-8"))
        return {name: value for name, value in card.items() if name not in ("format", _WORDS_OF, _OF_WEIGHTS, HASH)}


def _read_arrays(path: Path, names: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
    """Return some arrays of a model.npz, all of them if no names are given."""
    with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
        return {name: file[name] for name in names or file.files}


def _weights_with_words(words_of: Mapping[str, str], folder: Path) -> Path:
    """Return the model.npz with the word tables of a folder's model; words_of: of its card.

    Raises DataError parser-damaged if this package has no such file.
    """
    name = words_of["model"]
    path = PACKAGE / name / WEIGHTS
    if name != Path(name).name or not path.is_file() or _hash_of(path) != words_of["sha256"]:
        raise DataError(
            f"its words are stored in {WEIGHTS} of the parser {name!r}, and this version of derivlang has another file",
            where=str(folder),
            fix="name the parser of this version (`derivlang parser ls`), install derivlang again, or train a parser",
            id="parser-damaged",
        )
    return path


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def readable(folder: Path) -> AbstractContextManager[None]:
    """Turn any exception within the block into DataError parser-damaged."""
    fix = "copy the model again, or train it again with `derivlang parser train`"
    return parse_errors(str(folder), "parser model", id="parser-damaged", fix=fix)
