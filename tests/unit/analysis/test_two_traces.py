"""Two traces side by side."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from vcachediag.analysis.two_traces import TwoTraces, compare_traces
from vcachediag.report.two_traces import render_comparison
from vcachediag.trace.reader import read_trace
from vcachediag.trace.records import EngineRecord, HashRecord, LookupRecord, Trace

DATA = Path(__file__).resolve().parents[2] / "data"


@pytest.fixture
def same() -> Trace:
    """A healthy recording."""
    return read_trace(DATA / "same.trace")


def changed(trace: Trace, kind: type, change: Any) -> Trace:
    """`trace` with the records of one kind put through `change`."""
    return msgspec.structs.replace(trace, events=tuple(
        change(event) if isinstance(event, kind) else event for event in trace.events))


def with_other_hashes(trace: Trace, **inputs: Any) -> Trace:
    """All hashes of `trace` other ones, made from other `inputs`."""
    other = changed(trace, HashRecord, lambda event: msgspec.structs.replace(
        event, hash=event.hash[::-1], **inputs))
    return changed(other, LookupRecord, lambda event: msgspec.structs.replace(
        event, hashes=tuple(each[::-1] for each in event.hashes)))


def test_a_trace_differs_from_itself_in_nothing(same: Trace) -> None:
    """The same trace twice: nothing differs, and the text says so."""
    two = compare_traces(same, same)

    assert ((), None, False) == (two.settings, two.hashes[0].first, any(
        each.differs for each in two.outcomes))
    assert render_comparison(two).startswith("nothing differs\n")


def test_settings_that_differ_are_named(same: Trace) -> None:
    """Version and block size of another machine, each with both values."""
    other = changed(same, EngineRecord, lambda event: msgspec.structs.replace(
        event, vllm="0.10.0", block_size=16))
    found = [(each.name, each.a, each.b) for each in compare_traces(same, other).settings]

    assert [("vllm", "0.32.0", "0.10.0"), ("block_size", "32", "16")] == found


@pytest.mark.parametrize(("inputs", "cause"), [
    ({}, "seed"), ({"token_ids": (1,)}, "tokens"), ({"extra_keys": ()}, "extra keys"),
    ({"token_ids": (1,), "extra_keys": ()}, "tokens and extra keys")])
def test_why_hashes_differ(same: Trace, inputs: dict[str, Any], cause: str) -> None:
    """Which input of the first different hash differs, or none of them."""
    two = compare_traces(same, with_other_hashes(same, **inputs))

    assert (0, cause) == (two.hashes[0].first, two.hashes[0].cause)


def test_hashes_without_their_inputs(same: Trace) -> None:
    """Where a trace does not hold how a hash was made, no cause is given."""
    other = with_other_hashes(same)
    other = msgspec.structs.replace(other, events=tuple(
        event for event in other.events if not isinstance(event, HashRecord)))

    assert "not seen" == compare_traces(same, other).hashes[0].cause


def test_a_redacted_trace_is_not_compared_by_its_tokens(same: Trace) -> None:
    """Salts differ, so tokens, hashes and media of a redacted trace say nothing."""
    other = msgspec.structs.replace(same, header=msgspec.structs.replace(
        same.header, redacted=True))
    two = compare_traces(same, other)

    assert ((), None) == (two.hashes, two.requests[0].same_prompt)
    assert "media cannot be compared" in " ".join(render_comparison(two).split())


def test_an_empty_trace(same: Trace) -> None:
    """A recording that was killed at its start is compared as far as it goes."""
    empty = msgspec.structs.replace(same, events=(), requests=(), footer=None)
    two = compare_traces(empty, same)

    assert {"b"} == {each.on for each in two.requests} | {each.on for each in two.outcomes}
    assert "only in B" in render_comparison(two)


def test_the_whole_text() -> None:
    """A healthy and a faulty plugin, at 80 columns."""
    two = compare_traces(*(read_trace(DATA / f"{name}.trace") for name in ("same", "diverged")))
    two = msgspec.structs.replace(two, path_a="a.vcd", path_b="b.vcd")

    assert """\
settings and outcomes differ
A  a.vcd: SAME
B  b.vcd: DIVERGED

Settings   A | B
plugins: glyphocr | plugins/faults/never_stops.py
model_class:
  A  glyphocr.modeling.GlyphOCRForConditionalGeneration
  B  never_stops.GlyphOCRWithStopGuard

Block hashes
r1: equal, 3 blocks

Outcomes   A | B, first row = difference of its logits over max|row|
  run             cached   output  finish         tokens       first row
  cached r1#1          0       20  stop           equal              inf
> cached r1#2         96  20 | 24  stop | length  split at 19        inf
  reference r1         0       20  stop           equal              inf
  reference-2 r1       0       20  stop           equal              inf
> decode r1            0        1  stop | length  split at 0         inf
""" == render_comparison(two)


def test_json(same: Trace) -> None:
    """JSON has every field, with stable bytes."""
    two = compare_traces(same, same)
    document = json.loads(render_comparison(two, as_json=True))

    assert render_comparison(two, as_json=True) == render_comparison(two, as_json=True)
    assert {"schema", *TwoTraces.__struct_fields__} == set(document)


def test_nothing_acts_on_the_terminal(same: Trace) -> None:
    """Text from a trace is escaped."""
    other = changed(same, EngineRecord, lambda event: msgspec.structs.replace(
        event, vllm="\x1b[31m\x07"))

    assert "\x1b" not in render_comparison(compare_traces(same, other))
