"""Lines of the report: text with styles, wrapped by cells with a hanging indent.

A line is a `rich.text.Text`: its `plain` is what a terminal without colour shows, so there is one
code path, and no meaning may rest on a style. Styles are data: the names below.
"""

from rich.cells import cell_len
from rich.text import Text

from vcachediag.report.escape import fitting

Lines = list[Text]

HEADING = "bold"
MUTED = "dim"
ALARM = "red"
STATUS_STYLES = {
    "SAME": "bold green",
    "BENIGN": "bold green",
    "DIVERGED": "bold red",
    "INCONCLUSIVE": "bold yellow",
}


def paragraph(
    text: str,
    width: int,
    *,
    lead: str = "",
    indent: int | None = None,
    lead_style: str = "",
    style: str = "",
) -> Lines:
    """`lead` and `text`, already escaped, wrapped; further lines stand under the text.

    `indent` replaces the hanging indent where the lead is long.
    """
    hang = cell_len(lead) if indent is None else indent
    rows = [row.rstrip(" ") for row in wrap(text, width - cell_len(lead), width - hang)]
    first = Text.assemble((lead, lead_style), (rows[0], style))
    first.rstrip()
    return [first, *(Text.assemble(" " * hang, (row, style)) for row in rows[1:])]


def wrap(text: str, first: int, rest: int) -> list[str]:
    """`text` broken at spaces into rows of at most `first`, then `rest` cells.

    A word longer than a row is broken inside: nothing may leave the terminal.
    """
    rows = [""]
    for word in text.split(" "):
        space = max(1, first if len(rows) == 1 else rest)
        joined = f"{rows[-1]} {word}" if rows[-1] else word
        if cell_len(joined) <= space:
            rows[-1] = joined
            continue
        if rows[-1]:
            rows.append("")
        _append_long(rows, word, first, rest)
    return rows


def _append_long(rows: list[str], word: str, first: int, rest: int) -> None:
    """Put `word` into the empty last row, and into more rows while it does not fit."""
    while True:
        space = max(1, first if len(rows) == 1 else rest)
        part = fitting(word, space) or word[:1]
        rows[-1] = part
        word = word[len(part):]
        if not word:
            return
        rows.append("")
