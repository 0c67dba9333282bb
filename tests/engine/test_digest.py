"""Checksums and sketches of rows."""

import math

import pytest
import torch

from vcachediag.engine.hooks.digest import checksum, sketch
from vcachediag.engine.hooks.logits import summarise


def test_one_bit_changes_the_checksum():
    """Rows that differ in the last bit of one value have different checksums; equal rows do not."""
    row = torch.randn(1000, generator=torch.Generator().manual_seed(1))
    changed = [row.clone() for _ in range(200)]
    for index, other in enumerate(changed):
        other[index] = torch.nextafter(other[index], torch.tensor(math.inf))

    assert 201 == len({checksum(row), *(checksum(other) for other in changed)})
    assert checksum(row) == checksum(row.clone())


def test_order_changes_the_checksum():
    """Two values that change places change the checksum."""
    assert checksum(torch.tensor([1.0, 2.0])) != checksum(torch.tensor([2.0, 1.0]))


def test_sketch_estimates_the_distance():
    """The mean squared difference of two sketches is near the squared distance of the rows."""
    generator = torch.Generator().manual_seed(2)
    ratios = []
    for _ in range(50):
        left, right = torch.randn(2, 5000, generator=generator)
        pairs = zip(sketch(left), sketch(right), strict=True)
        estimate = math.sqrt(sum((a - b) ** 2 for a, b in pairs) / 16)
        ratios.append(estimate / float((left - right).norm()))

    assert pytest.approx(1.0, abs=0.1) == sum(ratios) / len(ratios)
    assert 0.4 < min(ratios) <= max(ratios) < 1.6


def test_infinite_logits_are_counted_and_kept_out():
    """Minus infinity and NaN are counted, and neither is among the highest logits."""
    row = summarise(torch.tensor([1.0, -math.inf, math.nan, 3.0]), (1, 3))

    assert (3, 0) == row.top_ids
    assert (3.0, 1.0) == row.top_logits
    assert (1, 1) == (row.num_neg_inf, row.num_nan)
    assert [(1, None), (3, 3.0)] == [(stop.token_id, stop.logit) for stop in row.stops]
    assert 1 == row.stops[1].rank
