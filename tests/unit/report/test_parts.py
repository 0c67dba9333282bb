"""The small parts: escaping, widths, wrapping, tables, numbers."""

import pytest
from rich.cells import cell_len

from vcachediag.report.escape import escape, escape_token, run_label, shorten
from vcachediag.report.figures import counted, figure, listed, logit
from vcachediag.report.lines import paragraph, wrap
from vcachediag.report.tables import Column, Row, table


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[red]x[/red]", "[red]x[/red]"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\x1b[31m\x07", r"\x1b[31m\x07"),
        ("\x9b31m\x7f", r"\x9b31m\x7f"),
        ("\u202eabc\u2066\u200f", r"\u202eabc\u2066\u200f"),
        ("a\u200bb\ufeff", r"a\u200bb\ufeff"),
        ("❤\ufe0f", r"❤\ufe0f"),
        ("👩\u200d🔬", r"👩\u200d🔬"),
        ("a\xa0b\u3000\u2028", r"a\xa0b\u3000\u2028"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
        ("\u0301a", "◌\u0301a"),
        ("שלום café 漢字", "שלום café 漢字"),
    ],
)
def test_escape(text: str, expected: str) -> None:
    """What cannot be seen or acts on a terminal is shown as an escape; letters stay."""
    assert expected == escape(text)


@pytest.mark.parametrize(
    ("text", "expected"), [(" ", "␠"), ("   ", "␠␠␠"), (" a", " a"), ("\n", r"\n"), ("", "#7")]
)
def test_token_is_never_blank(text: str, expected: str) -> None:
    """Spaces show only where nothing else does; an empty text gives the id."""
    assert expected == escape_token(text, 7)


@pytest.mark.parametrize(
    ("text", "cells", "expected"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "abcd…"),
        ("漢字漢字", 8, "漢字漢字"),
        ("漢字漢字", 7, "漢字漢…"),
        ("漢字漢字", 6, "漢字…"),
        ("ab cd", 4, "ab…"),
    ],
)
def test_shorten_counts_cells(text: str, cells: int, expected: str) -> None:
    """A cut is marked, and a wide letter is never halved."""
    assert expected == shorten(text, cells)


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ("cached/r1#2", "cached r1#2"),
        ("reference/a/b", "reference a/b"),
        ("cached/a-very-long-page-name.png#12", "cached a-very-long-p…#12"),
        ("reference/a-very-long-page-name.png", "reference a-very-long-p…"),
        ("odd", "odd"),
    ],
)
def test_run_label(run: str, expected: str) -> None:
    """A long name is shortened before its attempt."""
    assert expected == run_label(run)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (6.214, "6.21"),
        (-0.5, "-0.50"),
        (0.0042, "0.004"),
        (2.14e-6, "2.1e-6"),
        (0.0, "0"),
        (123456.0, "1.2e5"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
        (None, "n/c"),
    ],
)
def test_figure(value: float | None, expected: str) -> None:
    """Figures keep about three places at every size."""
    assert expected == figure(value)


def test_words_for_numbers() -> None:
    """Counts agree with their noun; lists read as a sentence; no logit is minus infinity."""
    actual = (counted(1, "run"), counted(2, "run"), listed(["1", "2", "3"]), logit(None))

    expected = ("1 run", "2 runs", "1, 2 and 3", "-inf")
    assert expected == actual


def test_paragraph_hangs_under_its_text() -> None:
    """Further lines of a paragraph stand under the first word."""
    lines = [line.plain for line in paragraph("one two three four", 12, lead="E1  ")]

    expected = ["E1  one two", "    three", "    four"]
    assert expected == lines


def test_wrap_breaks_a_word_that_fits_nowhere() -> None:
    """A word wider than the terminal is broken by cells instead of leaving it."""
    expected = ["see", "漢字", "漢"]
    assert expected == wrap("see 漢字漢", 5, 5)


COLUMNS = (
    Column(title="name", shrink_to=4),
    Column(title="size", align="right"),
    Column(title="why", priority=1),
    Column(title="more", priority=2),
)
ROWS = (
    Row(cells=("alphabet", "1.25", "new", "x")),
    Row(cells=("漢字", "12345.5", "old", ""), marker=">"),
)


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (
            40,
            [
                "  name         size  why  more",
                "  alphabet     1.25  new  x",
                "> 漢字      12345.5  old",
            ],
        ),
        (
            26,
            ["  name     size  why  more", "  alp…     1.25  new  x", "> 漢字  12345.5  old"],
        ),
        (
            22,
            [
                "  name       size  why",
                "  alpha…     1.25  new",
                "> 漢字    12345.5  old",
                "  left out at this",
                "  width: more",
            ],
        ),
        (
            9,
            [
                "  name     size",
                "  alp…     1.25",
                "> 漢字  12345.5",
                "  left",
                "  out at",
                "  this",
                "  width:",
                "  why,",
                "  more",
            ],
        ),
    ],
)
def test_table_gives_way_in_order(width: int, expected: list[str]) -> None:
    """Text is shortened first, then columns go by priority; a figure is never cut."""
    assert expected == [line.plain for line in table(COLUMNS, ROWS, width)]


def test_table_without_rows() -> None:
    """A table without rows is its titles."""
    expected = ["name  size  why  more"]
    assert expected == [line.plain for line in table(COLUMNS, (), 80)]


def test_columns_end_at_the_same_cell() -> None:
    """Right-aligned figures line up below wide letters."""
    columns = (Column(title="token"), Column(title="n", align="right"))
    rows = [Row(cells=(text, "1")) for text in ("漢字", "a", "👍🏽", "e\u0301", "🇩🇪")]

    assert {8} == {cell_len(line.plain) for line in table(columns, rows, 80)}
