"""Put a report on a terminal, into a pipe or into a log."""

import os
import sys
from typing import TextIO

from rich.console import Console

from vcachediag.analysis.records import Verdict
from vcachediag.report.text import render_text
from vcachediag.trace.records import Trace

#: Width where there is no terminal to ask.
PIPED_WIDTH = 80


def print_report(
    verdict: Verdict, trace: Trace, *, all_steps: bool = False, brief: bool = False,
    stream: TextIO | None = None,
) -> None:
    """Write the text report to `stream`, standard output by default."""
    out = sys.stdout if stream is None else stream
    width = report_width(out)
    report = render_text(verdict, trace, width=width, all_steps=all_steps, brief=brief)
    encoding = getattr(out, "encoding", None) or "utf-8"
    if not _can_encode(report.plain, encoding):
        # A log in another encoding: escapes cost the alignment, not the report.
        out.write(report.plain.encode(encoding, "backslashreplace").decode(encoding))
        return
    # Lines are wrapped already, and nothing in them is markup.
    console = Console(file=out, width=width, highlight=False, emoji=False, markup=False)
    console.print(report, soft_wrap=True, end="")


def report_width(stream: TextIO) -> int:
    """`COLUMNS` if set, else the terminal's width, else 80.

    Rich would ask standard input as well, and so give a pipe the width of the terminal that it
    was started from.
    """
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    if not stream.isatty():
        return PIPED_WIDTH
    try:
        return os.get_terminal_size(stream.fileno()).columns or PIPED_WIDTH
    except (OSError, ValueError):
        return PIPED_WIDTH


def _can_encode(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
