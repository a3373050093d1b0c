"""Exact percentages: 25, 12.5 and 1/3 are fractions, and p percent of n items are floor(pn/100 + 1/2) of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from derivlang.core.errors import UsageError
from derivlang.core.messages import warn

if TYPE_CHECKING:
    from fractions import Fraction

Share: TypeAlias = "Fraction | int"


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


def warn_of_fraction(text: str, option: str) -> None:
    """Warn of a percentage below 1 that is written as a fraction may be: 0.25, not 0.25%."""
    share = percent(text, option, zero=True)
    if share < 1 and "%" not in text:
        warn(f"{option} is a percentage: {text} means {text} %, not {float(100 * share):g} %; {text}% says so")


def portion(share: Share, n: int) -> int:
    """Return floor(share * n / 100 + 1/2)."""
    return int((share * n * 2 + 100) // 200)


def number(share: Share) -> int | float:
    """Return a percentage as a JSON number."""
    return int(share) if int(share) == share else float(share)
