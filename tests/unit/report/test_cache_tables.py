"""The block table and the encoder table."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.unit.report.scenarios import diverged
from vcachediag.analysis.ledger import BlockUse
from vcachediag.analysis.verdict import judge
from vcachediag.report.blocks import blocks_section
from vcachediag.report.encoder import encoder_section
from vcachediag.report.text import render_text
from vcachediag.report.view import View
from vcachediag.trace.reader import read_trace
from vcachediag.trace.records import (
    BlocksRecord,
    BlockTableRecord,
    EncoderRecord,
    LookupRecord,
    ProcessorRecord,
    Trace,
)

DATA = Path(__file__).resolve().parents[2] / "data"
BLOCKS = """\
Blocks   # = physical block, donor = the run that wrote what was hit
  block  tokens  holds        hash      cached r1#1  cached r1#2  donor
      0  0-31    text+image   d68aed45  #1 stored    #1 HIT       cached r1#1
      1  32-63   image        746f8048  #2 stored    #2 HIT       cached r1#1
      2  64-95   image+text   1252a2fa  #3 stored    #3 HIT       cached r1#1
>     3  96-124  text+output  none      #4 computed  #4 computed
Lookup asked 102, could hit 101 at most (the last token is always computed),
found 96."""
ENCODER = """\
Encoder cache   1 image, 64 embeddings
run           lookup     image     span  processor  why
cached r1#1   MISS       047178ad  2-65  miss
cached r1#2   not asked  047178ad  2-65  hit        its span lies inside the ca…
reference r1  MISS       047178ad  2-65  miss"""


def text(lines: list[Any]) -> str:
    """Lines as they are printed."""
    return "\n".join(line.plain.rstrip() for line in lines)


def view_of(trace: Trace, **options: Any) -> View:
    """A view of what is judged from `trace`."""
    return View(verdict=judge(trace), trace=trace, **options)


@pytest.fixture
def trace() -> Trace:
    """A real recording of a fault that shows on a hit."""
    return read_trace(DATA / "diverged.trace")


def without(trace: Trace, *kinds: type) -> Trace:
    """`trace` without the records of some kinds."""
    return msgspec.structs.replace(trace, events=tuple(
        event for event in trace.events if not isinstance(event, kinds)))


def test_both_tables_at_80_columns(trace: Trace) -> None:
    """Hit blocks, donors and the first computed block; what the encoder cache was asked."""
    assert BLOCKS == text(blocks_section(view_of(trace)))
    assert ENCODER == text(encoder_section(view_of(trace)))


def test_both_tables_at_120_columns(trace: Trace) -> None:
    """With room, nothing is shortened."""
    assert "its span lies inside the cached prefix" in text(
        encoder_section(view_of(trace, width=120)))
    assert BLOCKS.replace("\nfound", " found") == text(blocks_section(view_of(trace, width=120)))


@pytest.mark.parametrize("width", [40, 60])
def test_no_figure_is_cut_in_a_narrow_terminal(trace: Trace, width: int) -> None:
    """Columns are left out by name, and every block number stays."""
    shown = text(blocks_section(view_of(trace, width=width)))

    assert "left out at this width: " in shown
    assert all(f"#{number} " in shown for number in (1, 2, 3, 4))


def test_they_stand_in_the_report(trace: Trace) -> None:
    """Between the stop token and the coverage."""
    report = render_text(judge(trace), trace, width=80).plain

    assert report.index("Stop token") < report.index("\nBlocks ") < report.index(
        "\nEncoder cache") < report.index("\nCoverage")


def test_what_was_not_seen_is_said(trace: Trace) -> None:
    """No lookup, no donor, no processor cache: `n/o`, not a blank."""
    blind = without(trace, LookupRecord, ProcessorRecord)
    blind = msgspec.structs.replace(blind, events=tuple(
        event for event in blind.events
        if (not (isinstance(event, BlocksRecord) and event.action == "allocate")
        and getattr(event, "run", "") != "cached/r1#1") or type(event).__name__ in (
            "RunRecord", "FinishedRecord")))

    assert "lookup n/o" in text(blocks_section(view_of(blind)))
    assert "#1 HIT       n/o" in text(blocks_section(view_of(blind)))
    assert "n/o" in text(encoder_section(view_of(blind)))
    assert text(encoder_section(view_of(without(trace, EncoderRecord)))).endswith("\nn/o")


def test_without_records_there_is_no_table(trace: Trace) -> None:
    """A trace without block tables has no section for them."""
    assert [] == blocks_section(view_of(without(trace, BlocksRecord, BlockTableRecord)))


def uses(run: str, count: int, hits: int) -> tuple[BlockUse, ...]:
    """A block table: scattered hits, then computed blocks in a row."""
    return tuple(BlockUse(
        run=run, group=0, place=place, block=2 * place + 1 if place < hits else 500 + place,
        tokens=(32 * place, 32 * place + 32), origin="hit" if place < hits else "computed",
        donor="cached/r1#1" if place < hits else None, hash="ab" * 16) for place in range(count))


def test_alike_blocks_are_one_row_and_many_rows_are_folded(trace: Trace) -> None:
    """Blocks that follow one another are a range; of many rows those around the first computed one
    are kept, and the count of the others is said.
    """
    verdict = msgspec.structs.replace(
        judge(trace), blocks=uses("cached/r1#2", 100, 40), beside=None)
    folded = text(blocks_section(View(verdict=verdict, trace=trace)))
    whole = text(blocks_section(View(verdict=verdict, trace=trace, all_steps=True)))

    assert "40-99  1280-3199" in folded
    assert "#540-599 stored" in folded
    assert "34 rows folded   unfold: --all-steps" in folded
    assert 41 == whole.count("abababab")


def test_text_from_a_trace_is_escaped(trace: Trace) -> None:
    """Hashes and reasons from a stranger's trace do not reach the terminal as they are."""
    wild = msgspec.structs.replace(trace, events=tuple(
        msgspec.structs.replace(event, why="\x1b[31m", identifier="\x07" * 9)
        if isinstance(event, EncoderRecord) else event for event in trace.events))

    assert "\x1b" not in text(encoder_section(view_of(wild)))
    assert "\x07" not in text(encoder_section(view_of(wild)))


def test_a_verdict_without_tables() -> None:
    """A verdict that was made without them is reported as before."""
    assert "Blocks" not in render_text(diverged(), Trace(
        path="t", header=read_trace(DATA / "same.trace").header, requests=(), events=()),
        width=80).plain
