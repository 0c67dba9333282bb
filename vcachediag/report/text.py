"""The report for a terminal: verdict first, then why, then tables, then what to do.

A pure function of a verdict and its trace. The result holds styles as data; its `plain` is the
same text without them, so what a log shows is what a terminal shows.
"""

from collections.abc import Callable

from rich.text import Text

from vcachediag.analysis.records import Verdict
from vcachediag.report import sections
from vcachediag.report.blocks import blocks_section
from vcachediag.report.encoder import encoder_section
from vcachediag.report.lanes import lanes_section
from vcachediag.report.lines import Lines
from vcachediag.report.stops import stops_section, top_section
from vcachediag.report.tokens import tokens_section
from vcachediag.report.view import View
from vcachediag.trace.records import Trace

#: Narrower terminals get this width: less cannot hold the figures of a table.
LEAST_WIDTH = 40

_Section = Callable[[View], Lines]
#: Blocks are parted by an empty line; a section without content leaves none.
_BLOCKS: tuple[tuple[_Section, ...], ...] = (
    (sections.verdict_section,),
    (lanes_section,),
    (
        sections.evidence_section,
        sections.ruled_out_section,
        sections.not_observed_section,
        sections.notes_section,
    ),
    (tokens_section,),
    (top_section,),
    (stops_section,),
    (blocks_section,),
    (encoder_section,),
    (sections.coverage_section, sections.overrides_section),
    (sections.next_section, sections.pair_section, sections.exit_section),
)
_BRIEF: tuple[tuple[_Section, ...], ...] = (
    (sections.verdict_section, sections.next_section, sections.exit_section),
)


def render_text(
    verdict: Verdict, trace: Trace, *, width: int = 80, all_steps: bool = False,
    brief: bool = False,
) -> Text:
    """The whole report, ending in a newline; `.plain` is its twin without styles.

    `brief` leaves the verdict, the words, the next steps and the exit code. `all_steps` folds
    nothing.
    """
    view = View(verdict=verdict, trace=trace, width=max(width, LEAST_WIDTH), all_steps=all_steps)
    blocks = [
        [line for section in block for line in section(view)]
        for block in (_BRIEF if brief else _BLOCKS)
    ]
    parted = [Text("\n").join(lines) for lines in blocks if lines]
    return Text("\n\n").join(parted).append("\n")
