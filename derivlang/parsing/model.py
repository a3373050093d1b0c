"""A parser model on disk: a folder with `model.npz` (weights in 8 bits) and `model.json` (what a person wants to know).

model.npz holds for every matrix NAME int8[R, K] and `NAME.scale` float32[R], biases and root vectors as float32, and
the vocabulary as one text. model.json: name, language, tags, relations, and where the model comes from: data, licence,
settings, scores. What is computed depends on model.npz and on `language`, `tags` and `relations` alone; the fingerprint
is a hash of these and of the rules that touch the input.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile
from zlib import error as ZlibError

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Int8
from derivlang.core.errors import DataError
from derivlang.parsing import features, normalise
from derivlang.parsing.quantised import Float32, stored

FORMAT = 1
WEIGHTS, CARD = "model.npz", "model.json"


@dataclass(frozen=True, eq=False)
class Model:
    """matrices: int8[R, K] by name; floats: float32 by name (scales, biases, roots). vocabulary: words, code - 2."""

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
    def fingerprint(self) -> str:
        """16 hex digits."""
        digest = hashlib.blake2b(digest_size=8)
        rules = [FORMAT, features.RULE_VERSION, normalise.RULE_VERSION]
        digest.update(json.dumps([rules, self.language, self.card["tags"], self.card["relations"]]).encode())
        arrays: dict[str, NDArray[Any]] = {**self.matrices, **self.floats}
        for name, array in sorted(arrays.items()):
            digest.update(f"{name}{array.shape}{array.dtype}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update("\n".join(self.vocabulary).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


def make_model(weights: Mapping[str, Float32], vocabulary: Mapping[str, int], card: Mapping[str, Any]) -> Model:
    """A model of trained float weights, by name; matrices go to 8 bits."""
    matrices: dict[str, Int8] = {}
    floats: dict[str, Float32] = {}
    for name, w in weights.items():
        if is_matrix(name, w):
            matrices[name], floats[f"{name}.scale"] = stored(w)
        else:
            floats[name] = np.asarray(w, np.float32)
    words = tuple(sorted(vocabulary, key=lambda word: vocabulary[word]))
    return Model({"format": FORMAT, **card}, matrices, floats, words)


def is_matrix(name: str, w: Any) -> bool:
    """Whether these weights are stored in 8 bits."""
    return w.ndim == 2 and not name.endswith("_root")


def save_model(model: Model, folder: Path) -> None:
    """Write the folder's two files; the same model gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    text = np.frombuffer("\n".join(model.vocabulary).encode("utf-8", "surrogatepass"), np.uint8)
    with (folder / WEIGHTS).open("wb") as out:
        np.savez_compressed(out, vocabulary=text, **model.matrices, **model.floats)  # type: ignore[arg-type]
    (folder / CARD).write_text(json.dumps(dict(model.card), indent=2, ensure_ascii=False) + "\n", "utf-8")


def load_model(folder: Path) -> Model:
    """The model of a folder. Raises DataError parser-missing, parser-damaged."""
    for name in (WEIGHTS, CARD):
        if not (folder / name).is_file():
            raise DataError(
                f"there is no parser model: {name} is missing",
                where=str(folder),
                fix="give a folder made by `derivlang parser train`, or the name of a parser (`derivlang parser ls`)",
                id="parser-missing",
            )
    try:
        card = json.loads((folder / CARD).read_text("utf-8"))
        if card["format"] != FORMAT:
            raise ValueError(f"its format is {card['format']}, this version reads {FORMAT}")
        with (folder / WEIGHTS).open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        vocabulary = arrays.pop("vocabulary").tobytes().decode("utf-8", "surrogatepass").split("\n")
        model = Model(
            card,
            {name: array for name, array in arrays.items() if array.dtype == np.int8},
            {name: array for name, array in arrays.items() if array.dtype == np.float32},
            tuple(vocabulary),
        )
        if model.matrices["words"].shape[0] != len(vocabulary) + 2:
            raise ValueError(f"it has {len(vocabulary)} words, but vectors of {len(model.matrices['words']) - 2}")
        if model.matrices["label"].shape[0] != len(model.relations):
            raise ValueError("its relations do not fit its weights")
    except (ValueError, KeyError, TypeError, OSError, EOFError, BadZipFile, ZlibError) as error:
        raise damaged(folder, error) from error
    return model


def damaged(folder: Path, error: Exception) -> DataError:
    what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
    return DataError(
        f"the parser model cannot be read: {what}",
        where=str(folder),
        fix="train it again (`derivlang parser train`), or copy it again from where it came",
        id="parser-damaged",
    )
