"""A tokenizer's folder: `tokenizer.json` for `tokenizers` and `transformers`, and derivlang's recipe beside it.

    DIR/tokenizer.json             vocabulary and merges; what reads a text
    DIR/tokenizer_config.json      the names of the special tokens, for `transformers.AutoTokenizer`
    DIR/derivlang-tokenizer.json   the recipe: source, hashes, settings, figures
    DIR/words.parquet              the word types that it was trained on, and their counts (a source's tokenizer)
    DIR/lexicon.tsv, subwords.tsv  what an overlap keeps (a twin, where something was fitted)

A tokenizer sees derivlang's words joined by one space; white space divides, an end-of-word suffix marks the ends, and
no character is normalised. Special tokens are whole words (`specials.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from derivlang.core.arrow import string_array
from derivlang.core.errors import DataError, StoreError
from derivlang.lexical.bpe import SPECIAL_TOKENS, SUFFIX, Bpe, as_merge
from derivlang.lexical.specials import normalizer
from derivlang.store.disk import disk, whole_folder
from derivlang.transforms.scripts import load_script

if TYPE_CHECKING:
    import tokenizers

TOKENIZER = "tokenizer.json"
CONFIG = "tokenizer_config.json"
RECIPE = "derivlang-tokenizer.json"
WORDS = "words.parquet"
FORMAT = 1

# The roles that `transformers` gives to special tokens, as RoBERTa's.
_ROLES = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "cls_token": "<s>",
    "sep_token": "</s>",
    "unk_token": "<unk>",
    "pad_token": "<pad>",
    "mask_token": "<mask>",
}


@dataclass(frozen=True, slots=True, eq=False)
class Tokenizer:
    """bpe: entries and merges. scripts: what its text is in: (None,), a source's, or (script,), a twin's; both for a
    joint file. recipe: the folder's."""

    bpe: Bpe
    scripts: tuple[str | None, ...] = (None,)
    recipe: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """V, special tokens included."""
        return self.bpe.size

    @property
    def n_special(self) -> int:
        return self.bpe.n_special

    def entries(self) -> pa.Array:
        """Arrow strings [V]: the vocabulary by id."""
        return string_array(self.bpe.entries)

    def fingerprint(self) -> str:
        """16 hex digits: of everything that the ids of a text depend on."""
        parts = (self.bpe.entries, self.bpe.merges, self.bpe.n_special, self.scripts)
        return sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def build(self) -> tokenizers.Tokenizer:
        """The tokenizer of the library `tokenizers`; encode with add_special_tokens as you like: none are added."""
        from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers
        from tokenizers import Tokenizer as Library

        vocab = {entry: i for i, entry in enumerate(self.bpe.entries)}
        built: Any = Library(models.BPE(vocab, list(self.bpe.merges), unk_token="<unk>", end_of_word_suffix=SUFFIX))
        built.normalizer = normalizer(None if name is None else load_script(name) for name in self.scripts)
        built.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        specials = self.bpe.entries[: self.n_special]
        # A special token ends a word, but has no suffix: it gets one, so that a space follows it in decoded text.
        ends = decoders.Replace(Regex(f"^(?:{'|'.join(map(re.escape, specials))})\\K$"), SUFFIX)
        built.decoder = decoders.Sequence([ends, decoders.BPEDecoder(suffix=SUFFIX)])
        # normalized: looked for after that rule.
        built.add_special_tokens([AddedToken(token, special=True, normalized=True) for token in specials])
        return built  # type: ignore[no-any-return]

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json` and its configuration into a folder that is there."""
        config = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "clean_up_tokenization_spaces": False,
            **_ROLES,
        }
        with disk(folder):
            self.build().save(str(folder / TOKENIZER), pretty=False)
            (folder / CONFIG).write_text(dump(config), "utf-8")

    @classmethod
    def load(cls, folder: Path) -> Tokenizer:
        """A folder that derivlang wrote. StoreError if it is none, or was changed since."""
        recipe = read_recipe(folder)
        path = folder / TOKENIZER
        try:
            found = json.loads(path.read_text("utf-8"))
            model = found["model"]
            if list(model["vocab"].values()) != list(range(len(model["vocab"]))):  # `tokenizers` writes them in turn
                raise ValueError("its ids are not 0, 1, 2 …")
            merges = tuple(as_merge(merge) for merge in model["merges"])
            bpe = Bpe(tuple(model["vocab"]), merges, len(recipe["specials"]))
            tokenizer = cls(bpe, tuple(recipe["scripts"]), recipe)
        except OSError as error:
            raise StoreError(f"cannot be read: {error.strerror}", where=str(path), id="tokenizer") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(
                f"not a tokenizer that derivlang can read: {error}", where=str(path), id="tokenizer"
            ) from None
        if tokenizer.fingerprint() != recipe["fingerprint"]:
            raise StoreError(
                "is not the tokenizer of its recipe: it was changed, or belongs to another folder",
                where=str(path),
                fix="train it again, or put the right file back",
                id="tokenizer",
            )
        return tokenizer


def read_recipe(folder: Path) -> dict[str, Any]:
    """The recipe of a tokenizer's folder; StoreError where there is none, or none that this version can read."""
    path = folder / RECIPE
    if not folder.is_dir():
        raise StoreError("there is no such folder", where=str(folder), id="missing-folder")
    try:
        recipe: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if recipe["format"] != FORMAT or tuple(recipe["specials"]) != SPECIAL_TOKENS:
            raise ValueError(f"format {recipe['format']}, but this version reads {FORMAT}")
        _ = recipe["kind"], recipe["fingerprint"], recipe["scripts"]
    except FileNotFoundError:
        raise StoreError(
            f"not a tokenizer of derivlang: there is no {RECIPE}",
            where=str(folder),
            fix="make one: derivlang tokenizer train SOURCE -o DIR",
            id="not-a-tokenizer",
        ) from None
    except OSError as error:
        raise StoreError(f"cannot be read: {error.strerror}", where=str(path), id="tokenizer") from error
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"not a recipe that derivlang can read: {error}", where=str(path), id="tokenizer") from None
    return recipe


def write_folder(out: Path, write: Callable[[Path], None], *, force: bool = False) -> None:
    """Fill a folder, whole or not at all. StoreError where it holds something else, or (without force) a tokenizer."""
    check_free(out, force=force)
    whole_folder(out, write)


def check_free(out: Path, *, force: bool = False) -> None:
    """StoreError where `write_folder` would not write."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not (out / RECIPE).exists():
        raise StoreError("holds something else than a tokenizer", where=str(out), fix="another folder", id="output")
    if not force:
        raise StoreError("holds a tokenizer already", where=str(out), fix="another folder, or --force", id="output")


def dump(value: Any) -> str:
    """JSON as derivlang writes it."""
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def require_source(tokenizer: Tokenizer, where: str) -> Tokenizer:
    """The tokenizer, if it is a source's; DataError for a twin."""
    if tokenizer.recipe["kind"] != "source":
        raise DataError(
            "is a twin itself", where=where, fix="make twins of the tokenizer that it is a twin of", id="twin-of-twin"
        )
    return tokenizer
