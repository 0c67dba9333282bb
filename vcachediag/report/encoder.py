"""The encoder table: what each run of a request asked of the encoder and processor caches."""

from vcachediag.report.escape import escape, run_label
from vcachediag.report.figures import counted
from vcachediag.report.lines import HEADING, Lines, paragraph
from vcachediag.report.tables import Column, Row, table
from vcachediag.report.view import View

_COLUMNS = (
    Column(title="run", shrink_to=14), Column(title="lookup"), Column(title="image"),
    Column(title="span"), Column(title="processor", priority=1),
    Column(title="why", priority=2, shrink_to=20))


def encoder_section(view: View) -> Lines:
    """One row for each media item of each run of the shown request; nothing without media."""
    focus = view.summary(view.verdict.focus or "")
    if focus is None:
        return []
    runs = [run.run for run in view.verdict.runs
            if run.request == focus.request and run.lane in ("cached", "reference")]
    uses = [use for use in view.verdict.encoder if use.run in runs]
    images = next((each.images for each in view.trace.requests if each.id == focus.request), ())
    if not uses and not images:
        return []
    tokens = sum(image.length for image in images)
    kinds = sorted({image.modality for image in images}) or ["item"]
    lines = paragraph(
        f"{counted(len(images), escape('/'.join(kinds)))}, {counted(tokens, 'embedding')}",
        view.width, lead="Encoder cache   ", lead_style=HEADING)
    if not uses:
        return lines + paragraph("n/o", view.width)
    rows = [Row(cells=(run_label(use.run, 24), use.lookup.upper() if use.lookup != "not asked"
                       else use.lookup, escape(use.identifier[:8]),
                       f"{use.span[0]}-{use.span[1] - 1}", use.processor or "n/o",
                       escape(use.why))) for use in uses]
    return lines + table(_COLUMNS, rows, view.width)
