"""Plain tables: aligned columns without boxes, markers in the left margin.

A box costs width and a terminal cuts what does not fit. Here columns of text are shortened with a
visible mark first, then whole columns are left out, least important first, and named below the
table. A figure is never cut.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.text import Text

from vcachediag.report.escape import pad, shorten
from vcachediag.report.lines import ALARM, MUTED, Lines, paragraph

GAP = "  "


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column as declared."""

    title: str
    align: Literal["left", "right"] = "left"
    #: 0 is always shown; of the others the highest is left out first.
    priority: int = 0
    #: Fewest cells to which its text may be shortened; None: it is a figure, never cut.
    shrink_to: int | None = None


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row: escaped cells, and a marker for the left margin."""

    cells: tuple[str, ...]
    marker: str = ""
    style: str = ""


def table(columns: Sequence[Column], rows: Sequence[Row], width: int) -> Lines:
    """Title line and rows, none wider than `width` as long as the figures allow it."""
    margin = 2 if any(row.marker for row in rows) else 0
    kept, widths = _layout(columns, rows, width - margin)
    head = Row(cells=tuple(column.title for column in columns), style=MUTED)
    lines = [_line(row, columns, kept, widths, margin) for row in (head, *rows)]
    left_out = [column.title for index, column in enumerate(columns) if index not in kept]
    if left_out:
        words = f"left out at this width: {', '.join(left_out)}"
        lines += paragraph(words, width, lead="  ", style=MUTED)
    return lines


def _layout(
    columns: Sequence[Column], rows: Sequence[Row], width: int
) -> tuple[list[int], dict[int, int]]:
    """Which columns are shown, and how wide each is."""
    natural = {
        index: max(cell_len(column.title), *(cell_len(row.cells[index]) for row in rows), 0)
        for index, column in enumerate(columns)
    }
    kept = list(range(len(columns)))
    while True:
        widths = _shrunk({index: natural[index] for index in kept}, columns, width)
        droppable = [index for index in kept if columns[index].priority > 0]
        if _total(widths) <= width or not droppable:
            return kept, widths
        kept.remove(max(droppable, key=lambda index: (columns[index].priority, index)))


def _shrunk(widths: dict[int, int], columns: Sequence[Column], width: int) -> dict[int, int]:
    """Take from the widest text column, cell by cell, until all fits or none can give more."""
    widths = {
        index: cells if columns[index].shrink_to is None else min(cells, width)
        for index, cells in widths.items()
    }
    while _total(widths) > width:
        giving = [
            index for index, cells in widths.items() if cells > _least(columns[index], cells)
        ]
        if not giving:
            break
        widths[max(giving, key=lambda index: widths[index])] -= 1
    return widths


def _least(column: Column, cells: int) -> int:
    return cells if column.shrink_to is None else max(1, column.shrink_to)


def _total(widths: dict[int, int]) -> int:
    return sum(widths.values()) + len(GAP) * (len(widths) - 1)


def _line(
    row: Row, columns: Sequence[Column], kept: Sequence[int], widths: dict[int, int], margin: int
) -> Text:
    cells = [
        pad(
            shorten(row.cells[index], widths[index]),
            widths[index],
            right=columns[index].align == "right",
        )
        for index in kept
    ]
    marker = pad(row.marker, margin, right=False)
    line = Text.assemble((marker, ALARM), (GAP.join(cells), row.style))
    line.rstrip()
    return line
