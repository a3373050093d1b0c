"""A parser model on disk: a folder with `model.npz` (weights in 8 bits) and `model.json` (the model's card).

model.json has the hash of model.npz and its own; the bundled parser, and models of earlier versions, have none.
model.npz has for every matrix NAME int8[R, K] and `NAME.scale` float32[R], biases and root vectors as float32, and the
vocabulary as one text. model.json has name, language, tags, relations, and the origin: data, licence, settings, scores.
Parses depend on model.npz and on `language`, `tags` and `relations` only; the fingerprint is a hash of these and of the
versions of the rules that change the input.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Float32, Int8
from derivlang.core.errors import DataError
from derivlang.core.parse_errors import parse_errors
from derivlang.core.seal import HASH, check_intact, sealed
from derivlang.parsing import features, normalise
from derivlang.parsing.quantised import stored

FORMAT = 1
WEIGHTS, CARD = "model.npz", "model.json"
_OF_WEIGHTS = "weights_sha256"  # of the card; written only beside its own hash


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
        rules = [FORMAT, features.RULE_VERSION, normalise.RULE_VERSION]
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
            matrices[name], floats[f"{name}.scale"] = stored(w)
        else:
            floats[name] = np.asarray(w, np.float32)
    words = tuple(sorted(vocabulary, key=lambda word: vocabulary[word]))
    return StoredModel({"format": FORMAT, **card}, matrices, floats, words)


def is_matrix(name: str, w: Any) -> bool:
    """Return whether these weights are stored in 8 bits."""
    return w.ndim == 2 and not name.endswith("_root")


def save_model(model: StoredModel, folder: Path) -> None:
    """Write the two files of a model; the same model gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    text = np.frombuffer("\n".join(model.vocabulary).encode("utf-8", "surrogatepass"), np.uint8)
    with (folder / WEIGHTS).open("wb") as out:
        np.savez_compressed(out, vocabulary=text, **model.matrices, **model.floats)  # type: ignore[arg-type]
    card = sealed({**model.card, _OF_WEIGHTS: _hash_of(folder / WEIGHTS)})
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
        check_intact(card, [_OF_WEIGHTS])
        if HASH in card and card.get(_OF_WEIGHTS) != _hash_of(folder / WEIGHTS):
            raise ValueError(f"{WEIGHTS} is not the one that {CARD} was written for")
        with (folder / WEIGHTS).open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
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
        if model.matrices["label"].shape[0] != len(model.relations):
            raise ValueError("its relations do not fit its weights")
    return model


def read_card(folder: Path) -> dict[str, Any]:
    """Return the card of a model without its format and the hashes, as a reader of it wants it.

    Raises DataError parser-damaged for a file that is not a model card.
    """
    with readable(folder):
        card = json.loads((folder / CARD).read_text("utf-8"))
        return {name: value for name, value in card.items() if name not in ("format", _OF_WEIGHTS, HASH)}


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def readable(folder: Path) -> AbstractContextManager[None]:
    """Turn any exception within the block into DataError parser-damaged."""
    fix = "copy the model again, or train it again with `derivlang parser train`"
    return parse_errors(str(folder), "parser model", id="parser-damaged", fix=fix)
