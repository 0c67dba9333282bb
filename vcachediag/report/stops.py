"""Logits in detail: the highest at the split, and where the stop tokens stand at each step."""

from vcachediag.analysis.records import RunComparison, StepPair
from vcachediag.report.escape import escape_token, run_label
from vcachediag.report.figures import counted, logit
from vcachediag.report.lines import ALARM, HEADING, MUTED, Lines, paragraph
from vcachediag.report.tables import Column, Row, table
from vcachediag.report.view import UNFOLD, View
from vcachediag.trace.records import LogitsRecord, StopLogit

TOP = 5
#: More stop tokens than this are folded.
MOST_STOPS = 2


def top_section(view: View) -> Lines:
    """The highest logits on both sides where the runs part."""
    comparison = view.shown
    if comparison is None:
        return []
    index = comparison.first_beyond if comparison.split is None else comparison.split
    pair = next((each for each in comparison.steps if each.index == index), None)
    if pair is None:
        return []
    words = "the split" if comparison.split is not None else "the first row beyond the floor"
    lines = paragraph(f"{words}, token {index}", view.width, lead="Top logits at ",
                      lead_style=HEADING, indent=2)
    columns = (
        Column(title="rank", align="right"),
        Column(title=run_label(comparison.against, 20), shrink_to=12),
        Column(title="logit", align="right"),
        Column(title=run_label(comparison.run, 20), shrink_to=12),
        Column(title="logit", align="right"),
    )
    sides = [_top(pair.left), _top(pair.right)]
    rows = [
        Row(cells=(str(place + 1), *_at(sides[0], place), *_at(sides[1], place)))
        for place in range(max(len(side) for side in sides))
    ]
    return lines + table(columns, rows, view.width) if rows else []


def _top(record: LogitsRecord | None) -> list[tuple[str, str]]:
    if record is None:
        return []
    found = zip(record.top_texts, record.top_ids, record.top_logits, strict=False)
    return [(escape_token(text, token), logit(value)) for text, token, value in found][:TOP]


def _at(cells: list[tuple[str, str]], place: int) -> tuple[str, str]:
    """Token and logit; empty where the run had ended or the row holds fewer finite logits."""
    return cells[place] if place < len(cells) else ("", "")


def stops_section(view: View) -> Lines:
    """Rank and logit of each stop token on both sides, at the steps that matter."""
    comparison = view.shown
    if comparison is None:
        return []
    texts = dict(view.engine.stop_tokens) if view.engine else {}
    tokens = _by_rank(comparison)
    shown = tokens if view.all_steps else tokens[:MOST_STOPS]
    lines: Lines = []
    for token in shown:
        lines += _stop_table(comparison, token, texts.get(token, ""), view)
    folded = len(tokens) - len(shown)
    if folded:
        words = f"{counted(folded, 'more stop token')} folded   {UNFOLD}"
        lines += paragraph(words, view.width, style=MUTED)
    return lines


def _by_rank(comparison: RunComparison) -> list[int]:
    """Stop tokens of the recorded rows, the one that came nearest to being chosen first."""
    best: dict[int, int] = {}
    for pair in comparison.steps:
        for record in (pair.left, pair.right):
            for stop in record.stops if record else ():
                best[stop.token_id] = min(stop.rank, best.get(stop.token_id, stop.rank))
    return sorted(best, key=lambda token: (best[token], token))


def _stop_table(comparison: RunComparison, token: int, text: str, view: View) -> Lines:
    vocabulary = next(
        (row.vocabulary for pair in comparison.steps for row in (pair.left, pair.right) if row), 0
    )
    name = f"{escape_token(text, token)} (id {token})" if text else f"id {token}"
    lines = paragraph(f"{name}: rank of {vocabulary}, and logit", view.width,
                      lead="Stop token ", lead_style=HEADING)
    remarks = _remarks(comparison, token)
    wanted = [pair for pair in comparison.steps if view.all_steps or pair.index in remarks]
    columns = (
        Column(title="step", align="right"),
        Column(title=run_label(comparison.against, 20), align="right"),
        Column(title="logit", align="right"),
        Column(title=run_label(comparison.run, 20), align="right"),
        Column(title="logit", align="right"),
        Column(title="", priority=1, shrink_to=12),
    )
    rows = [_row(pair, token, remarks.get(pair.index, ""), comparison) for pair in wanted]
    lines += table(columns, rows, view.width)
    folded = len(comparison.steps) - len(wanted)
    if folded:
        lines += paragraph(f"{counted(folded, 'row')} folded   {UNFOLD}", view.width, lead="   ",
                           style=MUTED)
    return lines


def _row(pair: StepPair, token: int, remark: str, comparison: RunComparison) -> Row:
    cells = (str(pair.index), *_cells(pair.left, token), *_cells(pair.right, token), remark)
    return Row(cells=cells, style=ALARM if pair.index == comparison.split else "")


def _cells(record: LogitsRecord | None, token: int) -> tuple[str, str]:
    """Rank and logit; empty where the side has no row, `n/o` where the row lacks the token."""
    if record is None:
        return "", ""
    found = _stop(record, token)
    return ("n/o", "n/o") if found is None else (str(found.rank), logit(found.logit))


def _stop(record: LogitsRecord, token: int) -> StopLogit | None:
    return next((stop for stop in record.stops if stop.token_id == token), None)


def _remarks(comparison: RunComparison, token: int) -> dict[int, str]:
    """What to say at the steps that matter; the others are folded."""
    lefts = [row for pair in comparison.steps if (row := pair.left) is not None]
    rights = [row for pair in comparison.steps if (row := pair.right) is not None]
    sides = {
        run_label(comparison.against): _events(lefts, token),
        run_label(comparison.run): _events(rights, token),
    }
    remarks = {pair.index: "" for pair in comparison.steps[:1]}
    if comparison.split is not None:
        remarks[comparison.split] = "split"
    for event in dict.fromkeys(event for events in sides.values() for event in events):
        index, words = event
        names = [name for name, events in sides.items() if event in events]
        told = f"{words}: {'both' if len(names) == 2 else names[0]}"
        remarks[index] = ", ".join(filter(None, (remarks.get(index), told)))
    return remarks


def _chooses(row: LogitsRecord, token: int) -> bool:
    """Whether a stop token was taken, also where the row's other ids are redacted."""
    stop = _stop(row, token)
    if row.chosen == token or stop is None or row.chosen not in row.top_ids:
        return row.chosen == token
    place = row.top_ids.index(row.chosen)
    # In a tie the rank does not tell which of the tokens it is.
    return (stop.rank == place + 1 and stop.logit == row.top_logits[place]
            and row.top_logits.count(stop.logit) == 1)


def _events(rows: list[LogitsRecord], token: int) -> list[tuple[int, str]]:
    """Where one side chose the stop token; else where it came nearest, and its last step."""
    chosen = [(row.index, "stops") for row in rows if _chooses(row, token)]
    ranks = [(stop.rank, row.index) for row in rows if (stop := _stop(row, token)) is not None]
    if chosen or not ranks:
        return chosen
    return [(min(ranks)[1], "nearest"), (rows[-1].index, "last step")]
