"""Distances of rows, and the floor of rounding."""

import math

import msgspec
import pytest

from tests.unit.analysis.builders import HIGHEST, UNIT, VOCABULARY, row
from vcachediag.analysis.noise import is_noise, make_floor, row_difference, unit


def test_unit() -> None:
    """The unit grows with the square root of the depth; an unknown type counts as bfloat16."""
    assert UNIT == unit("float32", 3)
    assert 2.0**-6 == unit("bfloat16", 3) == unit("float8", 3)


@pytest.mark.parametrize(
    ("repeat", "decode", "units"),
    [(None, None, 4), (0.0, 0.5, 4), (1.0, None, 4), (2.0, 1.0, 8), (1.0, 3.0, 12),
     (None, 16.0, 64), (17.0, 3.0, 64), (0.0, math.inf, 64)])
def test_floor_bounds(repeat: float | None, decode: float | None, units: float) -> None:
    """The bound is four times the larger measurement, from 4 to at most 64 units."""
    floor = make_floor("float32", 3, None if repeat is None else repeat * UNIT,
                       None if decode is None else decode * UNIT)
    assert units * UNIT == floor.bound


def test_noise_limit() -> None:
    """16 units can be rounding, more cannot."""
    floor = make_floor("float32", 3, None, None)
    assert (True, False) == (is_noise(16 * UNIT, floor), is_noise(16.1 * UNIT, floor))


def test_top_difference() -> None:
    """A logit that both rows hold is compared exactly, relative to the largest."""
    assert (2.0, 0.25) == row_difference(row(), row(changes={6: 5.4 + 2.0}))


def test_equal_rows() -> None:
    """Rows of one digest are equal."""
    assert (0.0, 0.0) == row_difference(row(), row("cached/r1#1"))


def test_digest_alone_is_rounding() -> None:
    """Another digest with no visible difference is a difference of nothing."""
    assert (0.0, 0.0) == row_difference(row(), msgspec.structs.replace(row(), digest="other"))


def test_rows_of_zeros() -> None:
    """Rows of 0.0 and of -0.0 have other bits and no largest value, but are equal."""
    zero, minus = (row(changes=dict.fromkeys(range(VOCABULARY), value)) for value in (0.0, -0.0))
    assert zero.digest != minus.digest
    assert (0.0, 0.0) == row_difference(zero, minus)


@pytest.mark.parametrize(("held", "missing"), [(30, 7.0), (33, 6.5)])
def test_risen_from_below_the_top(held: int, missing: float) -> None:
    """A token that enters the top 20 has moved at least from the lowest that is held there."""
    left, right = row(), row(changes={held: missing})
    expected = missing - left.top_logits[-1]
    assert expected <= row_difference(left, right)[0]
    assert row_difference(right, left) == row_difference(left, right)


def test_sketch_sees_outside_the_top() -> None:
    """A change of logits outside the top 20 that no record holds is seen through the sketch."""
    left, right = row(), row(changes=dict.fromkeys(range(22, 38), 1.0))
    assert left.top_ids == right.top_ids
    assert left.top_logits == right.top_logits
    absolute, relative = row_difference(left, right)
    largest = 6.0 - 0.1 * 22 - 1.0
    assert 0.1 < absolute <= largest
    assert absolute / HIGHEST == relative


@pytest.mark.parametrize("token", [5, 7, 30, 39])
def test_one_sided_minus_infinity(token: int) -> None:
    """Minus infinity where the other row is finite is infinitely far."""
    left, right = row(chosen=4), row(chosen=4, changes={token: -math.inf})
    assert (math.inf, math.inf) == row_difference(left, right) == row_difference(right, left)


def test_moved_minus_infinity() -> None:
    """As many infinities, but one on a stop token of one side only, is infinitely far."""
    left, right = row(changes={30: -math.inf}), row(changes={39: -math.inf})
    assert (math.inf, math.inf) == row_difference(left, right)


def test_shared_minus_infinity() -> None:
    """The same masked tokens on both sides leave the finite difference."""
    left = row(changes={30: -math.inf, 39: -math.inf})
    right = row(changes={30: -math.inf, 39: -math.inf, 6: 7.4})
    assert (2.0, 0.25) == row_difference(left, right)


def test_shared_minus_infinity_alone() -> None:
    """A shared minus infinity is no distance, not NaN, even if it is all that both rows hold."""
    left = msgspec.structs.replace(row(changes={39: -math.inf}), top_ids=(), top_logits=())
    right = msgspec.structs.replace(left, digest="other")
    assert (0.0, 0.0) == row_difference(left, right)


@pytest.mark.parametrize("right", [{}, {7: math.nan, 6: 5.0}, {6: math.nan, 8: math.nan}])
def test_nan(right: dict[int, float]) -> None:
    """A row with NaN is infinitely far from every row that is not the same bits."""
    left = row(changes={7: math.nan})
    assert (math.inf, math.inf) == row_difference(left, row(changes=right))
