"""Two traces side by side, as text for people and JSON for programs."""

import json

from rich.text import Text

from vcachediag.analysis.two_traces import OutcomeComparison, TwoTraces
from vcachediag.report.escape import escape, run_label, shorten
from vcachediag.report.figures import counted, figure, listed
from vcachediag.report.json_report import plain
from vcachediag.report.lines import HEADING, Lines, paragraph
from vcachediag.report.tables import Column, Row, table

#: Longer settings are shortened in the text; JSON has them whole.
MOST_OF_A_SETTING = 300


def render_comparison(two: TwoTraces, *, as_json: bool = False, width: int = 80) -> str:
    """The comparison, ending in a newline."""
    if as_json:
        return json.dumps({"schema": 1, **plain(two)}, indent=2, allow_nan=False) + "\n"
    parts = [_headline(two, width), _settings(two, width), _requests(two, width),
             _hashes(two, width), _outcomes(two, width)]
    return "\n\n".join(Text("\n").join(part).plain for part in parts if part) + "\n"


def _headline(two: TwoTraces, width: int) -> Lines:
    differ = [name for name, found in (
        ("settings", two.settings),
        ("requests", [each for each in two.requests if each.on != "both"
                      or each.same_prompt is False or each.same_media is False]),
        ("hashes", [each for each in two.hashes if each.first is not None]),
        ("outcomes", [each for each in two.outcomes if each.differs])) if found]
    words = f"{listed(differ)} differ" if differ else "nothing differs"
    lines = paragraph(words, width, style=HEADING)
    lines += paragraph(f"{escape(two.path_a)}: {two.status_a}", width, lead="A  ")
    lines += paragraph(f"{escape(two.path_b)}: {two.status_b}", width, lead="B  ")
    if two.redacted:
        lines += paragraph("A redacted trace has a salt of its own: tokens, hashes and media "
                           "cannot be compared.", width)
    return lines


def _settings(two: TwoTraces, width: int) -> Lines:
    lines: Lines = []
    for each in two.settings:
        a, b = (shorten(escape(text), MOST_OF_A_SETTING) for text in (each.a, each.b))
        if len(each.name) + len(a) + len(b) + 7 <= width:
            lines += paragraph(f"{each.name}: {a} | {b}", width)
        else:
            lines += paragraph(f"{each.name}:", width)
            lines += paragraph(a, width, lead="  A  ") + paragraph(b, width, lead="  B  ")
    head = paragraph("A | B", width, lead="Settings   ", lead_style=HEADING)
    return head + lines if lines else []


def _requests(two: TwoTraces, width: int) -> Lines:
    lines: Lines = []
    for each in two.requests:
        name = escape(each.request)
        if each.on != "both":
            lines += paragraph(f"{name}: only in {each.on.upper()}", width)
        if each.same_prompt is False:
            lines += paragraph(f"{name}: the prompt tokens differ", width)
        if each.same_media is False:
            lines += paragraph(f"{name}: the media differ in identifier or place", width)
    return paragraph("", width, lead="Requests", lead_style=HEADING) + lines if lines else []


_CAUSES = {
    "tokens": "its tokens differ", "extra keys": "its extra keys differ",
    "tokens and extra keys": "its tokens and its extra keys differ",
    "block size": "the block sizes differ",
    "seed": "its tokens and extra keys are equal, so the seed or the algorithm of the hash differs",
    "not seen": "how it was made is not in both traces"}


def _hashes(two: TwoTraces, width: int) -> Lines:
    lines: Lines = []
    for each in two.hashes:
        name = escape(each.request)
        if each.first is None:
            both = counted(min(each.blocks_a, each.blocks_b), "block")
            lines += paragraph(f"{name}: equal, {both}", width)
        else:
            lines += paragraph(
                f"{name}: differ from block {each.first} on ({escape(each.hash_a[:8])} | "
                f"{escape(each.hash_b[:8])}): {_CAUSES[each.cause or 'not seen']}", width)
    return paragraph("", width, lead="Block hashes", lead_style=HEADING) + lines if lines else []


def _outcomes(two: TwoTraces, width: int) -> Lines:
    columns = (
        Column(title="run", shrink_to=14), Column(title="cached", align="right"),
        Column(title="output", align="right"), Column(title="finish"), Column(title="tokens"),
        Column(title="first row", align="right", priority=1))
    rows = [_row(each, redacted=two.redacted) for each in two.outcomes]
    if not rows:
        return []
    return paragraph("A | B, first row = difference of its logits over max|row|", width,
                     lead="Outcomes   ", lead_style=HEADING) + table(columns, rows, width)


def _row(each: OutcomeComparison, *, redacted: bool) -> Row:
    name = run_label(each.run)
    if each.on != "both":
        return Row(cells=(name, "", "", "", f"only in {each.on.upper()}", ""), marker=">")
    tokens = "n/c" if redacted else "equal" if each.split is None else f"split at {each.split}"
    return Row(cells=(name, _pair(each.cached_a, each.cached_b),
                      _pair(each.tokens_a, each.tokens_b), _pair(each.finish_a, each.finish_b),
                      tokens, figure(each.first_row)), marker=">" if each.differs else "")


def _pair(a: object, b: object) -> str:
    left, right = ("n/o" if each is None else escape(str(each)) for each in (a, b))
    return left if left == right else f"{left} | {right}"
