"""Shares in percent, exact: 25, 12.5 and 1/3 are fractions, and a part of n things is floor(pn/100 + 1/2) of them."""

from __future__ import annotations

from fractions import Fraction

from derivlang.core.errors import UsageError

Share = Fraction | int


def percent(text: str, where: str, *, zero: bool = False, hundred: bool = True) -> Fraction:
    """What a user wrote as a share; UsageError unless it lies above 0 (zero: from 0) and up to 100 (else below it)."""
    try:
        share = Fraction(text.strip().removesuffix("%"))
    except (ValueError, ZeroDivisionError):
        raise UsageError(
            f"{text!r} is no number of percent", where=where, fix="e.g. 25 or 12.5", id="bad-value"
        ) from None
    if not (0 <= share <= 100) or (share == 0 and not zero) or (share == 100 and not hundred):
        span = f"{'from' if zero else 'above'} 0 {'to' if hundred else 'and below'} 100"
        raise UsageError(f"{text} is no share: percent must be {span}", where=where, id="bad-value")
    return share


def portion(share: Share, n: int) -> int:
    """floor(share * n / 100 + 1/2)."""
    return int((share * n * 2 + 100) // 200)


def number(share: Share) -> int | float:
    """A share as a number of JSON."""
    return int(share) if int(share) == share else float(share)
