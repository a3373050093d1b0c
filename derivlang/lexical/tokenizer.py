"""A tokenizer's folder: `tokenizer.json` for `tokenizers` and `transformers`, and derivlang's recipe beside it.

    DIR/tokenizer.json             vocabulary and merges
    DIR/tokenizer_config.json      the names of the special tokens, for `transformers.AutoTokenizer`
    DIR/derivlang-tokenizer.json   the recipe: source, hashes, settings, figures
    DIR/words.parquet              the word types of the training text and their counts (not of a twin)
    DIR/lexicon.tsv                the types that a fitted overlap keeps (a twin)

A tokenizer reads words joined by one space. It splits at white space and marks the end of a word by a suffix. It
normalises no character. Special tokens are whole words (`bpe.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from derivlang.core.arrow import string_array
from derivlang.core.errors import DataError, StoreError, parse_errors
from derivlang.lexical.bpe import SPECIAL_TOKENS, SUFFIX, Bpe, as_merge, normalizer
from derivlang.store.artifact import ArtifactKind, check_hashes
from derivlang.store.manifest import LEXICON
from derivlang.store.record import read_record, record_text
from derivlang.transforms.scripts import is_script, load_script, script_names

if TYPE_CHECKING:
    import tokenizers

TOKENIZER = "tokenizer.json"
CONFIG = "tokenizer_config.json"
RECIPE = "derivlang-tokenizer.json"
WORDS = "words.parquet"
JOINT = "joint"
FILES = (TOKENIZER, CONFIG, RECIPE, WORDS, LEXICON, f"{JOINT}/{TOKENIZER}", f"{JOINT}/{CONFIG}")
FORMAT = 1
# What the tokenizer was trained on; a twin is made of a source's tokenizer.
KINDS = ("source", "twin", "derived", "both")
_RECIPE = {
    "format": FORMAT,
    "kind": re.compile("|".join(KINDS)),
    "fingerprint": str,
    "files": dict,
    "specials": list,
    "scripts": [str | None],
}

AGAIN = "make it again with --force, or restore the right file"
# The roles of the special tokens in `transformers`, as in RoBERTa.
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
    """A tokenizer as data.

    bpe: entries and merges. scripts: the scripts of its text: (None,) for a source's tokenizer, (script,) for a twin,
    both for a joint file. recipe: the recipe of its folder.
    """

    bpe: Bpe
    scripts: tuple[str | None, ...] = (None,)
    recipe: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The vocabulary size V, special tokens included."""
        return self.bpe.size

    @property
    def n_special(self) -> int:
        return self.bpe.n_special

    @property
    def special_ids(self) -> tuple[int, ...]:
        """The ids of the begin, padding, end and mask tokens."""
        return tuple(self.bpe.entries.index(entry) for entry in ("<s>", "<pad>", "</s>", "<mask>"))

    @property
    def unknown(self) -> int:
        """The id of text that the tokenizer cannot represent."""
        return self.bpe.entries.index("<unk>")

    def entries(self) -> pa.Array:
        """Return the vocabulary by id, Arrow strings [V]."""
        return string_array(self.bpe.entries)

    def fingerprint(self) -> str:
        """Return 16 hex digits that identify everything the ids of a text depend on."""
        parts = (self.bpe.entries, self.bpe.merges, self.bpe.n_special, self.scripts)
        return sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def build(self) -> tokenizers.Tokenizer:
        """Return the tokenizer of the library `tokenizers`. It adds no special tokens, even with add_special_tokens."""
        from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers
        from tokenizers import Tokenizer as Library

        vocab = {entry: i for i, entry in enumerate(self.bpe.entries)}
        built: Any = Library(models.BPE(vocab, list(self.bpe.merges), unk_token="<unk>", end_of_word_suffix=SUFFIX))
        built.normalizer = normalizer(None if name is None else load_script(name) for name in self.scripts)
        built.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        specials = self.bpe.entries[: self.n_special]
        # Special tokens have no suffix, so the decoder would put no space after them. It adds the suffix first.
        ends = decoders.Replace(Regex(f"^(?:{'|'.join(map(re.escape, specials))})\\K$"), SUFFIX)
        built.decoder = decoders.Sequence([ends, decoders.BPEDecoder(suffix=SUFFIX)])
        # normalized=True: special tokens are searched after the normalizer has parted false ones (`bpe.py`).
        built.add_special_tokens([AddedToken(token, special=True, normalized=True) for token in specials])
        return built  # type: ignore[no-any-return]

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json` and its configuration into a folder."""
        config = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "clean_up_tokenization_spaces": False,
            **_ROLES,
        }
        self.build().save(str(folder / TOKENIZER), pretty=False)
        (folder / CONFIG).write_text(record_text(config), "utf-8", newline="\n")

    @classmethod
    def load(cls, folder: Path) -> Tokenizer:
        """Read a folder that derivlang wrote. Raise StoreError if it is not one, or was changed since."""
        recipe = read_recipe(folder)
        path = folder / TOKENIZER
        with parse_errors(str(path), "tokenizer", error=StoreError, id="tokenizer", fix=AGAIN):
            content = json.loads(path.read_text("utf-8"))
            model = content["model"]
            if list(model["vocab"].values()) != list(range(len(model["vocab"]))):  # `tokenizers` writes them in order
                raise ValueError("its ids are not 0, 1, 2 …")
            merges = tuple(as_merge(merge) for merge in model["merges"])
            bpe = Bpe(tuple(model["vocab"]), merges, len(recipe["specials"]))
            tokenizer = cls(bpe, tuple(recipe["scripts"]), recipe)
            fingerprint = tokenizer.fingerprint()
        if fingerprint != recipe["fingerprint"]:
            raise StoreError(
                "is not the tokenizer of its recipe: it was changed, or belongs to another folder",
                where=str(path),
                fix=AGAIN,
                id="tokenizer",
            )
        check_hashes(folder, recipe, names={TOKENIZER}, fix=AGAIN)
        return tokenizer


def read_recipe(folder: Path) -> dict[str, Any]:
    """Return the recipe of a tokenizer's folder. Raise StoreError if it is missing or this version cannot read it."""
    path = folder / RECIPE
    if not folder.is_dir():
        raise StoreError("there is no such folder", where=str(folder), id="missing-folder")
    if not path.exists():
        raise StoreError(
            f"not a tokenizer of derivlang: there is no {RECIPE}",
            where=str(folder),
            fix="make one: derivlang tokenizer train SOURCE -o DIR",
            id="not-a-tokenizer",
        )
    return read_record(path, "recipe of a tokenizer", _RECIPE, _check, sealed=True, id="tokenizer", fix=AGAIN)


def _check(recipe: dict[str, Any]) -> None:
    """Raise ValueError for other special tokens, and for an unknown script."""
    if tuple(recipe["specials"]) != SPECIAL_TOKENS:
        raise ValueError(f"its special tokens are {recipe['specials']}, not {', '.join(SPECIAL_TOKENS)}")
    if not all(name is None or is_script(name) for name in recipe["scripts"]):
        raise ValueError(f"its scripts are {recipe['scripts']}; there are: {', '.join(script_names())}, offset=N")


def check_tokenizer(folder: Path) -> None:
    """Raise StoreError if the tokenizer of a folder does not match its recipe."""
    Tokenizer.load(folder)


def files_of(recipe: Mapping[str, Any]) -> Iterator[str]:
    """Yield the files of a whole folder besides the recipe."""
    yield from (TOKENIZER, CONFIG)
    if recipe["kind"] != "twin":
        yield WORDS
    if recipe.get("lexicon"):
        yield LEXICON
    if (recipe.get("joint") or {}).get("file"):
        yield from (f"{JOINT}/{TOKENIZER}", f"{JOINT}/{CONFIG}")


TOKENIZERS = ArtifactKind(
    noun="tokenizer",
    record=RECIPE,
    names=FILES,
    read=read_recipe,
    files=files_of,
    check=check_tokenizer,
    hashed=True,
)


def require_source(tokenizer: Tokenizer, where: str) -> Tokenizer:
    """Return the tokenizer if it is a source's. Raise DataError for a twin, or one of a derived language's text."""
    kind = tokenizer.recipe["kind"]
    if kind == "twin":
        raise DataError(
            "is a twin itself", where=where, fix="use the source's tokenizer of this twin", id="twin-of-twin"
        )
    if kind != "source":
        text = "the text of both languages" if kind == "both" else "the text of a derived language"
        fix = "give a tokenizer of the source's text"
        raise DataError(f"was trained on {text}, so it has no twin", where=where, fix=fix, id="twin-of-twin")
    return tokenizer
