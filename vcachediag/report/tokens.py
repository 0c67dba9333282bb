"""The token table: both sides step by step, equal rows folded, the split marked."""

from dataclasses import dataclass

from vcachediag.analysis.records import RunComparison, RunSummary
from vcachediag.report.escape import escape, escape_token, run_label, shorten
from vcachediag.report.figures import counted, figure
from vcachediag.report.lines import ALARM, HEADING, MUTED, Lines, paragraph
from vcachediag.report.steps import AFTER, BEYOND, SPLIT, Group, groups, largest
from vcachediag.report.tables import Column, Row, table
from vcachediag.report.view import UNFOLD, View
from vcachediag.trace.records import LogitsRecord

#: Cells that a column of tokens keeps: `1000 rows folded` and `finished: length` stay whole.
LEAST_TOKEN = 16
_LEGEND = {
    SPLIT: "> first split",
    AFTER: "| texts differ, logits n/c",
    BEYOND: "! beyond the floor, token equal",
}


@dataclass(frozen=True, kw_only=True)
class _Side:
    """One side's cells in one row."""

    text: str
    margin: str = ""


def tokens_section(view: View) -> Lines:
    """The comparison that the verdict shows; nothing when it shows none."""
    comparison = view.shown
    if comparison is None:
        return []
    lead = "Tokens   "
    names = f"{run_label(comparison.against)} | {run_label(comparison.run)}"
    if not comparison.steps:
        return paragraph(f"{names}: n/o, no row of logits was recorded", view.width,
                         lead=lead, lead_style=HEADING)
    lines = paragraph(f"{names}, margin = top 1 - top 2", view.width, lead=lead,
                      lead_style=HEADING)
    left, right = view.summary(comparison.against), view.summary(comparison.run)
    parts = groups(comparison, _tokens(left, comparison), _tokens(right, comparison),
                   all_steps=view.all_steps)
    rows = [*_rows(parts, left, right), *_end_rows(parts, left, right, comparison)]
    lines += table(_columns(comparison), rows, view.width)
    return lines + _legend(parts, view.width)


def _tokens(summary: RunSummary | None, comparison: RunComparison) -> int:
    """Tokens a side gave; without its summary every missing row counts as lost."""
    return len(comparison.steps) if summary is None else summary.output_tokens


def _columns(comparison: RunComparison) -> tuple[Column, ...]:
    return (
        Column(title="step", align="right"),
        Column(title=run_label(comparison.against, LEAST_TOKEN), shrink_to=LEAST_TOKEN),
        Column(title="margin", align="right", priority=2),
        Column(title=run_label(comparison.run, LEAST_TOKEN), shrink_to=LEAST_TOKEN),
        Column(title="margin", align="right", priority=2),
        Column(title="max|dlogit|", align="right", priority=1),
    )


def _rows(parts: list[Group], left: RunSummary | None, right: RunSummary | None) -> list[Row]:
    ended: set[str] = set()
    rows = []
    for group in parts:
        left_end = _end(left) if group.left == "ended" and "left" not in ended else ""
        right_end = _end(right) if group.right == "ended" and "right" not in ended else ""
        ended |= {"left"} if group.left == "ended" else set()
        ended |= {"right"} if group.right == "ended" else set()
        rows.append(_row(group, left_end, right_end))
    return rows


def _row(group: Group, left_end: str, right_end: str) -> Row:
    pairs = group.pairs
    comparable = group.marker in ("", BEYOND)
    left = _side([pair.left for pair in pairs], group.left, left_end, margins=comparable)
    right = _side([pair.right for pair in pairs], group.right, right_end, margins=comparable)
    both = group.left == group.right == "token"
    if len(pairs) > 1 and comparable and both:
        right = _Side(text="equal", margin=right.margin)
    elif group.marker == SPLIT and both:
        left, right = _told_apart(pairs[0].left, pairs[0].right, left, right)
    difference = largest(pair.max_difference for pair in pairs)
    shown = figure(difference)
    if len(pairs) > 1 and difference is not None and shown != "inf":
        shown = f"<= {shown}"
    return Row(
        cells=(group.steps, left.text, left.margin, right.text, right.margin, shown),
        marker=group.marker,
        style=ALARM if group.marker == SPLIT else "",
    )


def _side(rows: list[LogitsRecord | None], state: str, end: str, *, margins: bool) -> _Side:
    """One side of a row: a token, a count of folded rows, or how the run ended."""
    records = [row for row in rows if row is not None]
    if not records:
        return _Side(text=end if state == "ended" else "n/o")
    if len(records) == 1:
        only = records[0]
        return _Side(text=escape_token(only.chosen_text, only.chosen), margin=figure(only.margin))
    least = f">= {figure(min(row.margin for row in records))}" if margins else ""
    if not margins and len({row.chosen for row in records}) == 1:
        token = shorten(escape_token(records[0].chosen_text, records[0].chosen), 8)
        return _Side(text=f"{token} x{len(records)}")
    return _Side(text=f"{counted(len(records), 'row')} folded", margin=least)


def _told_apart(
    left: LogitsRecord | None, right: LogitsRecord | None, left_side: _Side, right_side: _Side
) -> tuple[_Side, _Side]:
    """Add ids at the split when the two tokens look the same."""
    if left is None or right is None or left.chosen == right.chosen:
        return left_side, right_side
    if left_side.text.strip() != right_side.text.strip():
        return left_side, right_side
    texts = [f"{shorten(side.text, 12)} #{record.chosen}"
             for side, record in ((left_side, left), (right_side, right))]
    return (_Side(text=texts[0], margin=left_side.margin),
            _Side(text=texts[1], margin=right_side.margin))


def _end(summary: RunSummary | None) -> str:
    if summary is None:
        return "n/o"
    if summary.error:
        return "failed"
    return f"finished: {escape(summary.finish) or 'n/o'}"


def _end_rows(
    parts: list[Group], left: RunSummary | None, right: RunSummary | None,
    comparison: RunComparison,
) -> list[Row]:
    """A last row for the sides whose end stands in no row yet."""
    texts = [
        "" if any(state == "ended" for state in states) else _end(summary)
        for states, summary in (
            ([group.left for group in parts], left),
            ([group.right for group in parts], right),
        )
    ]
    if texts == ["", ""]:
        return []
    step = str(comparison.steps[-1].index + 1)
    marker = AFTER if comparison.split is not None else ""
    return [Row(cells=(step, texts[0], "", texts[1], "", ""), marker=marker)]


def _legend(parts: list[Group], width: int) -> Lines:
    markers = {group.marker for group in parts}
    words = [text for marker, text in _LEGEND.items() if marker in markers]
    if any(len(group.pairs) > 1 for group in parts):
        words.append(UNFOLD)
    return paragraph("   ".join(words), width, lead="   ", style=MUTED) if words else []
