"""The parts of the report that are words: the answer, why, and what to do."""

from vcachediag.analysis.records import Coverage, Evidence, Floor, Verdict
from vcachediag.report.escape import escape, run_label
from vcachediag.report.figures import counted, figure, listed
from vcachediag.report.lines import HEADING, STATUS_STYLES, Lines, paragraph
from vcachediag.report.view import View, finding_label
from vcachediag.trace.records import Override

#: More tail lengths than this are given as a range.
MOST_TAILS = 6


def verdict_section(view: View) -> Lines:
    """The verdict line, what happened in words, and findings after the first."""
    verdict, width = view.verdict, view.width
    first, extra = _headline(verdict)
    lines = paragraph(first, width, lead=f"{verdict.status}  ",
                      lead_style=STATUS_STYLES[verdict.status], style=HEADING)
    for words in (extra, escape(verdict.says)):
        if words:
            lines += paragraph(words, width)
    for finding in verdict.findings[1:]:
        words = f"{finding_label(finding)}, {run_label(finding.run)}: {escape(finding.says)}"
        lines += paragraph(words, width, lead="Also  ", lead_style=HEADING)
    return lines


def _headline(verdict: Verdict) -> tuple[str, str]:
    """What follows the status, and the headline if that is not it.

    With a finding the line names its code, whether or not the headline does.
    """
    headline = escape(verdict.headline)
    if not verdict.findings or escape(verdict.findings[0].name) in headline:
        return headline, ""
    return finding_label(verdict.findings[0]), headline


def evidence_section(view: View) -> Lines:
    """Evidence, numbered as given; under each finding's name when there are several."""
    findings = [finding for finding in view.verdict.findings if finding.evidence]
    lines: Lines = []
    for finding in findings:
        name = f"{finding_label(finding)}, {run_label(finding.run)}"
        words = name if len(findings) > 1 else ""
        lines += paragraph(words, view.width, lead="Evidence   ", lead_style=HEADING)
        for evidence in finding.evidence:
            lines += _evidence(evidence, view.width)
    return lines


def _evidence(evidence: Evidence, width: int) -> Lines:
    return paragraph(escape(evidence.text), width, lead=f"E{evidence.number}  ")


def ruled_out_section(view: View) -> Lines:
    """What it is not, and by which evidence."""
    ruled_out = view.verdict.ruled_out
    words = ", ".join(f"{escape(what)} ({escape(evidence)})" for what, evidence in ruled_out)
    if not words:
        return []
    return paragraph(words, view.width, lead="Ruled out  ", lead_style=HEADING)


def not_observed_section(view: View) -> Lines:
    """What could not be seen, and why."""
    return _bullets("Not observed", [f"{escape(what)}: {escape(why)}"
                                     for what, why in view.not_observed], view.width)


def notes_section(view: View) -> Lines:
    """Everything else that the reader should know."""
    return _bullets("Notes", [escape(note) for note in view.notes], view.width)


def _bullets(title: str, texts: list[str], width: int) -> Lines:
    if not texts:
        return []
    lines = paragraph("", width, lead=title, lead_style=HEADING)
    for text in texts:
        lines += paragraph(text, width, lead="- ")
    return lines


def coverage_section(view: View) -> Lines:
    """What was put to the test, and the floor that it was judged by."""
    lines = paragraph(_coverage(view.verdict.coverage), view.width, lead="Coverage   ",
                      lead_style=HEADING)
    return lines + paragraph(_floor(view.verdict.floor), view.width, lead="Floor      ",
                             lead_style=HEADING)


def _coverage(coverage: Coverage) -> str:
    runs = counted(coverage.runs, "run")
    if not coverage.hits:
        parts = [f"{runs}, none with a hit: reading from the prefix cache was not exercised"]
    else:
        cuts = f"cuts: {coverage.cuts_in_text} in text, {coverage.cuts_in_images} in images"
        parts = [f"{runs}, {coverage.hits} with a hit", _tails(coverage.tails), cuts]
    if coverage.chunked_prefills:
        parts.append(f"{counted(coverage.chunked_prefills, 'prefill')} cut by the token budget")
    if coverage.tails == (1,):
        parts.append("only a single-token tail was exercised")
    return "; ".join(parts)


def _tails(tails: tuple[int, ...]) -> str:
    if not tails:
        return "tails n/o"
    if len(tails) == 1:
        return f"tail of {counted(tails[0], 'token')}"
    if len(tails) <= MOST_TAILS:
        return f"tails of {listed([str(tail) for tail in tails])} tokens"
    return f"tails of {min(tails)} to {max(tails)} tokens ({len(tails)} lengths)"


def _floor(floor: Floor) -> str:
    """The floor with the constants it is made of."""
    return (
        f"{figure(floor.bound)} of max|row| = max(4u, 4 x min(m, 16u)); "
        f"u = {figure(floor.unit)} (eps(dtype) x sqrt(layers + 1)), m = the larger of "
        f"repeat {figure(floor.repeat, missing='n/o')} and "
        f"decode {figure(floor.decode, missing='n/o')}"
    )


def overrides_section(view: View) -> Lines:
    """Engine settings that differ from the user's, and flags that change nothing here."""
    engine = view.engine
    if engine is None:
        return []
    lines = _bullets("Overrides", [_override(each) for each in engine.overrides], view.width)
    if engine.unused_flags:
        words = ", ".join(escape(flag) for flag in engine.unused_flags)
        lines += paragraph(words, view.width, lead="Not used here  ", lead_style=HEADING)
    return lines


def _override(override: Override) -> str:
    name, given, used, why = (
        escape(text) for text in (override.name, override.given, override.used, override.why)
    )
    return f"{name}: {given} -> {used} ({why})"


def next_section(view: View) -> Lines:
    """What to do, numbered."""
    steps = view.verdict.next_steps
    if not steps:
        return []
    lines = paragraph("", view.width, lead="Next", lead_style=HEADING)
    for number, step in enumerate(steps, start=1):
        lines += paragraph(escape(step), view.width, lead=f"{number}. ")
    return lines


def pair_section(view: View) -> Lines:
    """The requests that show it, in order."""
    words = ", ".join(escape(request) for request in view.verdict.minimal_pair)
    if not words:
        return []
    return paragraph(words, view.width, lead="Minimal pair: ", lead_style=HEADING)


def exit_section(view: View) -> Lines:
    """The last line: what the process tells its caller."""
    return paragraph(f"[exit {view.verdict.exit_code}]", view.width)
