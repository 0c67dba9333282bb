"""Numbers as people read them; no figure is ever cut."""

import math
from collections.abc import Sequence


def figure(value: float | None, *, missing: str = "n/c") -> str:
    """Three places or so: `6.21`, `0.004`, `2.1e-6`, `0`, `inf`; `missing` for None."""
    if value is None:
        return missing
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    if size == 0:
        return "0"
    if 0.1 <= size < 1e5:
        return f"{value:.2f}"
    if 0.001 <= size < 0.1:
        return f"{value:.3f}"
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def logit(value: float | None) -> str:
    """A logit with three decimals; the records write None for minus infinity."""
    return "-inf" if value is None else f"{value:.3f}"


def counted(number: int, noun: str) -> str:
    """`1 run`, `4 runs`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
