"""Which output steps the token table shows, and how the others are folded."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from vcachediag.analysis.records import RunComparison, StepPair

#: ended: the run was over; lost: it should have a row here, but the trace has none.
Side = Literal["token", "ended", "lost"]
#: In the left margin: split, after the split, beyond the floor with an equal token.
SPLIT, AFTER, BEYOND = ">", "|", "!"


@dataclass(frozen=True, kw_only=True)
class Group:
    """Consecutive steps that share a table row."""

    pairs: tuple[StepPair, ...]
    marker: str
    left: Side
    right: Side

    @property
    def steps(self) -> str:
        """`17`, or `0-13`."""
        first, last = self.pairs[0].index, self.pairs[-1].index
        return str(first) if first == last else f"{first}-{last}"


def groups(
    comparison: RunComparison, left_tokens: int, right_tokens: int, *, all_steps: bool
) -> list[Group]:
    """The rows of the token table; `*_tokens` is how many tokens each side gave."""
    shown = _shown(comparison)

    def key(pair: StepPair) -> tuple[str, Side, Side, int]:
        alone = all_steps or pair.index in shown
        return (
            _marker(pair, comparison.split),
            _side(pair.left is not None, pair.index, left_tokens),
            _side(pair.right is not None, pair.index, right_tokens),
            pair.index if alone else -1,
        )

    return [
        Group(pairs=tuple(pairs), marker=marker, left=left, right=right)
        for (marker, left, right, _), pairs in groupby(comparison.steps, key)
    ]


def _shown(comparison: RunComparison) -> set[int]:
    """Steps that are never folded: around the split, the first and the largest beyond the floor."""
    shown: set[int] = set()
    if comparison.split is not None:
        shown |= set(range(comparison.split - 2, comparison.split + 2))
    if comparison.first_beyond is not None:
        shown.add(comparison.first_beyond)
    beyond = [pair for pair in comparison.steps if pair.beyond_floor]
    if beyond:
        shown.add(max(beyond, key=_size).index)
    return shown


def _size(pair: StepPair) -> float:
    return 0.0 if pair.max_difference is None else pair.max_difference


def _marker(pair: StepPair, split: int | None) -> str:
    if split is not None and pair.index >= split:
        return SPLIT if pair.index == split else AFTER
    return BEYOND if pair.beyond_floor else ""


def _side(present: bool, index: int, tokens: int) -> Side:
    if present:
        return "token"
    return "ended" if index >= tokens else "lost"


def largest(values: Iterable[float | None]) -> float | None:
    """The largest value that there is."""
    return max((value for value in values if value is not None), default=None)
