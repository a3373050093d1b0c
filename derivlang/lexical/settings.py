"""Settings of dictionaries, sentence pairs, tokenizers and twins, declared once (core/settings.py).

Help pages import this module, which therefore imports nothing heavy. Percentages are texts, such as 25, 12.5 or 100/3,
since they are exact fractions; `shares` has their values. p percent of n items are floor(pn/100 + 1/2) of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from derivlang.core.errors import UsageError
from derivlang.core.messages import warn
from derivlang.core.settings import Settings, declared, replaces, setting
from derivlang.core.takes import Names, Percent
from derivlang.formats.places import OptionalPath

if TYPE_CHECKING:
    from fractions import Fraction

Share: TypeAlias = "Fraction | int"
By = Literal["random", "frequency", "mass"]
DictionaryFormat = Literal["muse", "tsv", "json"]
PairFormat = Literal["pharaoh", "parquet", "text"]


def percent(text: str, where: str, *, zero: bool = False, hundred: bool = True) -> Fraction:
    """Return the percentage that a user wrote.

    Raise UsageError unless it is above 0 (zero: at least 0) and at most 100 (not hundred: below 100).
    """
    from fractions import Fraction  # imported late: help pages load this module, but read no percentage

    try:
        share = Fraction(text.strip().removesuffix("%"))
    except (ValueError, ZeroDivisionError):
        raise UsageError(
            f"{text!r} is not a percentage", where=where, fix="give a number such as 25 or 12.5", id="bad-value"
        ) from None
    if not (0 <= share <= 100) or (share == 0 and not zero) or (share == 100 and not hundred):
        span = f"{'at least' if zero else 'above'} 0 and {'at most' if hundred else 'below'} 100"
        raise UsageError(f"a percentage must be {span}, got {text}", where=where, id="bad-value")
    return share


def warn_of_fractions(kind: type, values: Mapping[str, Any]) -> None:
    """Warn of each percentage below 1 that is written as a fraction may be: 0.25, not 0.25%.

    kind: of settings; the help of one says whether it is a percentage. values: by the names of fields; None: not given.
    """
    for name, one in declared(kind).items():
        text = str(values.get(name) or "0")
        if one.help_text.startswith("Percentage ") and "%" not in text:
            share = percent(text, one.where, zero=True)
            if 0 < share < 1:
                fix = f"write {text}% if you mean it"
                warn(f"{one.where} is a percentage: {text} means {text} %, not {float(100 * share):g} %; {fix}")


def portion(share: Share, n: int) -> int:
    """Return floor(share * n / 100 + 1/2)."""
    return int((share * n * 2 + 100) // 200)


def number(share: Share) -> int | float:
    """Return a percentage as a JSON number."""
    return int(share) if int(share) == share else float(share)


_seed = partial(setting, minimum=0, maximum=2**63 - 1)
_from_zero = partial(percent, zero=True)


@dataclass(frozen=True, kw_only=True)
class DictionaryChoice(Settings):
    """What `dict` takes besides the pipeline, the source and the file to write.

    coverage, noise, heldout: percentages. tokenizer: the folder of `tokenizer.json`, for level
    token. format: None to follow the file's suffix.
    """

    coverage: Percent = setting("100", "Percentage of the entries.", check=percent)
    by: By = setting("random", "Choice of the entries: random, by frequency or by token mass.")
    level: Literal["word", "token"] = setting("word", "Level of the entries: words, or the sub-words of --tokenizer.")
    tokenizer: OptionalPath = setting(None, "Folder of a tokenizer, for --level token.")
    noise: Percent = setting("0", "Percentage of the pairs with a wrong translation.", check=_from_zero)
    heldout: Percent = setting(
        "0", "Percentage of the entries held out for tests.", check=partial(percent, zero=True, hundred=False)
    )
    seed: int = _seed(1, "Seed of the choice of entries.")
    lexicon: OptionalPath = setting(None, "Saved lexicon.tsv to use.", file=True)
    format: DictionaryFormat | None = setting(None, "Format to write.", unset="by the suffix of --out, else muse")
    repair_tags: bool = setting(False, "Repair ill-formed tags of entities, without losing a label.")
    force: bool = replaces()

    @property
    def shares(self) -> dict[str, Fraction]:
        """The exact percentages: coverage, heldout and noise."""
        return {name: _from_zero(getattr(self, name), f"--{name}") for name in ("coverage", "heldout", "noise")}


@dataclass(frozen=True, kw_only=True)
class DictionaryOptions(DictionaryChoice):
    """What `dict` takes besides the pipeline and the source. out: the file to write."""

    out: Path


@dataclass(frozen=True, kw_only=True)
class PairChoice(Settings):
    """What `pair` takes besides the derived set and the file to write.

    rate: a percentage. split: None for the only one. tokenizer, twin: the folders of the source's and of the derived
    language's tokenizer, to add sub-words and their links.
    """

    rate: Percent = setting("100", "Percentage of the sentence pairs of the split.", check=percent)
    format: PairFormat = setting(
        "parquet", "Format to write; text is three files: OUT.source, OUT.derived and OUT.pharaoh."
    )
    split: str | None = setting(None, "Split to take.", unset="the only one")
    seed: int = _seed(1, "Seed of the choice of pairs.")
    tokenizer: OptionalPath = setting(
        None, "Tokenizer of the source, to add sub-words and their gold links.", requires="--twin"
    )
    twin: OptionalPath = setting(None, "Tokenizer of the derived language.", requires="--tokenizer")
    force: bool = setting(False, "Replace files that hold something else.")

    @property
    def share(self) -> Fraction:
        """The exact percentage."""
        return percent(str(self.rate), "--rate")

    @property
    def tokenizers(self) -> tuple[Path, Path] | None:
        """The folders of both tokenizers, or None."""
        return None if self.tokenizer is None or self.twin is None else (self.tokenizer, self.twin)


@dataclass(frozen=True, kw_only=True)
class PairOptions(PairChoice):
    """What `pair` takes besides the derived set. out: the file to write."""

    out: Path


@dataclass(frozen=True, kw_only=True)
class TokenizerOptions(Settings):
    """What `tokenizer train` takes besides the source and the folder. Raises UsageError for a value out of bounds."""

    vocab_size: int = setting(40_000, "Number of entries, special tokens included.", minimum=1)
    min_frequency: int = setting(2, "Minimum frequency of a pair to merge.", minimum=1)
    text: Names = setting((), "Another text to train on, a name or a path; may be repeated.")
    smoothing: float = setting(
        1,
        "Exponent of the sizes of several texts: with 1 all words count alike, with 0 all texts (XLM has 0.5).",
        minimum=0,
        maximum=1,
        requires="--text",
    )
    force: bool = setting(False, "Replace an existing tokenizer in the output folder.")


@dataclass(frozen=True, kw_only=True)
class TwinOptions(Settings):
    """What `tokenizer twin` takes besides the folders and the spec. Raises UsageError for a value out of bounds.

    lexicon: without one, an overlap is fitted on the training words of the tokenizer. joint: also write one file for
    both languages, in `out/joint`.
    """

    lexicon: OptionalPath = setting(None, "Saved lexicon.tsv with the types to keep.", file=True)
    joint: bool = setting(False, "Also write OUT/joint, one tokenizer for both languages; an error if inexact.")
    force: bool = setting(False, "Replace an existing tokenizer in the output folder.")
