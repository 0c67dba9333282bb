"""How far two rows of logits are apart, and how far apart rounding alone can put them.

Kernels round differently for another number of rows, so equal never means bit-equal. The floor
is measured where neither a cached block nor a resumed prefill takes part: the same request
twice (`reference`, `reference-2`), and the last row of an answer computed once by decode and
once by a whole prefill (`decode`). No fault of the cache can hide in it.
"""

import math

from vcachediag.analysis.records import Floor
from vcachediag.trace.records import LogitsRecord

#: Machine epsilon: the distance from 1 to the next number.
EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
#: Units that always count as equal, and the largest measured floor that is believed to be noise.
EQUAL_UNITS = 4.0
NOISE_UNITS = 16.0
#: Headroom over the measured floor.
HEADROOM = 4.0


def unit(dtype: str, num_layers: int) -> float:
    """Rounding of one row, relative to its largest value: eps x sqrt(layers + 1).

    Errors of the layers add up like a random walk. Unknown types count as bfloat16.
    """
    return EPSILON.get(dtype, EPSILON["bfloat16"]) * math.sqrt(num_layers + 1)


def make_floor(dtype: str, num_layers: int, repeat: float | None, decode: float | None) -> Floor:
    """The bound below which a row counts as equal; see `Floor`."""
    u = unit(dtype, num_layers)
    measured = max(repeat or 0.0, decode or 0.0)
    bound = max(EQUAL_UNITS * u, HEADROOM * min(measured, NOISE_UNITS * u))
    return Floor(unit=u, repeat=repeat, decode=decode, bound=bound)


def is_noise(value: float, floor: Floor) -> bool:
    """Whether a difference measured without any cache can be rounding at all."""
    return value <= NOISE_UNITS * floor.unit


def row_difference(left: LogitsRecord, right: LogitsRecord) -> tuple[float, float]:
    """Largest difference of a logit: (absolute, relative to the largest value of both rows).

    Exact over the logits that both records hold. The sketch stands for the others: it gives
    |d| of the whole row, and no largest difference is below |d| / sqrt(vocabulary). Infinite when
    one row has infinities or NaN where the other has none.
    """
    if left.digest == right.digest and left.vocabulary == right.vocabulary:
        return 0.0, 0.0
    if (left.vocabulary, left.num_neg_inf, left.num_nan) != (
            right.vocabulary, right.num_neg_inf, right.num_nan) or left.num_nan:
        return math.inf, math.inf
    known_left, known_right = _known(left), _known(right)
    difference = max((_distance(known_left[token], known_right[token])
                      for token in known_left.keys() & known_right.keys()), default=0.0)
    for known, other in ((known_left, right), (known_right, left)):
        difference = max(difference, _below_top(known, other))
    difference = max(difference, _sketched(left, right) / math.sqrt(left.vocabulary))
    scale = max(left.max_abs, right.max_abs)
    return difference, difference / scale if scale else difference


def _known(row: LogitsRecord) -> dict[int, float]:
    known = dict(zip(row.top_ids, row.top_logits, strict=True))
    for stop in row.stops:
        known[stop.token_id] = -math.inf if stop.logit is None else stop.logit
    return known


def _distance(left: float, right: float) -> float:
    return 0.0 if left == right else abs(left - right)


def _below_top(known: dict[int, float], other: LogitsRecord) -> float:
    """A token that is high on one side and not among the top of the other has fallen this far."""
    if not other.top_logits:
        return 0.0
    held = {*other.top_ids, *(stop.token_id for stop in other.stops)}
    lowest = other.top_logits[-1]
    return max((value - lowest for token, value in known.items()
                if token not in held and value > lowest), default=0.0)


def _sketched(left: LogitsRecord, right: LogitsRecord) -> float:
    """Estimate of the Euclidean distance of two rows."""
    pairs = list(zip(left.sketch, right.sketch, strict=True))
    return math.sqrt(sum((a - b) ** 2 for a, b in pairs) / len(pairs)) if pairs else 0.0
