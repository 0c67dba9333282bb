"""Whole reports at 80 and 120 columns, against the texts in `expected/`."""

from pathlib import Path

import pytest
from rich.cells import cell_len

from vcachediag.report import render_text

from .scenarios import SCENARIOS

EXPECTED = Path(__file__).parent / "expected"


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_whole_report(name: str, width: int) -> None:
    """The report of each situation, word for word and column for column."""
    verdict, trace, options = SCENARIOS[name]
    expected = (EXPECTED / f"{name}-{width}.txt").read_text(encoding="utf-8")

    actual = render_text(verdict, trace, width=width, **options).plain

    assert expected == actual


@pytest.mark.parametrize("width", [72, 80, 100, 120])
@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_no_line_is_wider_than_asked(name: str, width: int) -> None:
    """Every line fits, measured in cells."""
    verdict, trace, options = SCENARIOS[name]

    lines = render_text(verdict, trace, width=width, **options).plain.splitlines()

    assert not [line for line in lines if cell_len(line) > width]


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_nothing_acts_on_the_terminal(name: str) -> None:
    """No control character but the newline, and no bidi control, leaves a report."""
    verdict, trace, _ = SCENARIOS[name]

    text = render_text(verdict, trace, width=80, all_steps=True).plain

    assert {"\n"} == {character for character in text if not character.isprintable()}


def test_each_expected_text_belongs_to_a_situation() -> None:
    """No text is left over from a situation that is gone."""
    names = {f"{name}-{width}.txt" for name in SCENARIOS for width in (80, 120)}

    assert names == {path.name for path in EXPECTED.iterdir()}
