"""Hooks that saw nothing, and what the model was given against what was scheduled."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from vcachediag.analysis.align import join
from vcachediag.analysis.blind import blind_hooks
from vcachediag.analysis.consistency import disagreements
from vcachediag.analysis.encoder import encoder_uses
from vcachediag.analysis.verdict import judge
from vcachediag.trace.reader import read_trace
from vcachediag.trace.records import ForwardRecord, HookRecord, LaneRecord, Trace

DATA = Path(__file__).resolve().parents[2] / "data"


@pytest.fixture
def same() -> Trace:
    """A real healthy recording."""
    return read_trace(DATA / "same.trace")


def changed(trace: Trace, kind: type, where: Any, **values: Any) -> Trace:
    """`trace` with `values` in those records of one kind for which `where` is true."""
    return msgspec.structs.replace(trace, events=tuple(
        msgspec.structs.replace(event, **values) if isinstance(event, kind) and where(event)
        else event for event in trace.events))


def test_nothing_is_blind_in_a_whole_recording(same: Trace) -> None:
    """No hook is named, and nothing disagrees."""
    assert () == blind_hooks(same)
    assert () == disagreements(same, join(same))
    assert "SAME" == judge(same).status


@pytest.mark.parametrize("hook", ["schedule", "logits"])
@pytest.mark.parametrize("lane", ["cached", "reference"])
def test_a_needed_hook_that_saw_nothing(same: Trace, hook: str, lane: str) -> None:
    """Without scheduled tokens or logits there is no verdict."""
    trace = changed(same, HookRecord, lambda e: (e.hook, e.lane) == (hook, lane), seen=0)
    verdict = judge(trace)

    assert "INCONCLUSIVE" == verdict.status
    assert hook in verdict.says
    assert f"{hook} in {lane}" in {each.what for each in verdict.not_observed}


@pytest.mark.parametrize("hook", ["lookup", "blocks", "forward", "encoder", "processor", "hash"])
def test_another_hook_that_saw_nothing(same: Trace, hook: str) -> None:
    """A hook that the verdict does not rest on is named, and the verdict stands."""
    trace = changed(same, HookRecord, lambda e: (e.hook, e.lane) == (hook, "cached"), seen=0)
    verdict = judge(trace)

    assert "SAME" == verdict.status
    assert [f"{hook} in cached"] == [each.what for each in verdict.not_observed]


def test_a_hook_that_raised(same: Trace) -> None:
    """How often a hook raised is said."""
    trace = changed(same, HookRecord, lambda e: (e.hook, e.lane) == ("forward", "decode"), failed=2)

    assert ["forward in decode, in part"] == [each.what for each in blind_hooks(trace)]


def test_a_lane_that_did_not_end(same: Trace) -> None:
    """The lane in which a recording was killed is named."""
    last = max(i for i, event in enumerate(same.events) if isinstance(event, LaneRecord))
    trace = msgspec.structs.replace(same, events=same.events[:last + 1])

    assert ["the end of lane decode"] == [each.what for each in blind_hooks(trace)]


def test_wrong_positions_are_told(same: Trace) -> None:
    """A position that is not the token's place is a note; three axes are not compared."""
    def of_hit(event: Any) -> bool:
        return bool(event.run == "cached/r1#2" and event.num_tokens == 6)

    wrong = changed(same, ForwardRecord, of_hit, first_position=(0,), last_position=(5,))
    axes = changed(same, ForwardRecord, of_hit, first_position=(0, 0, 0), last_position=(5, 5, 5))

    assert ["cached/r1#2: in step 21 the engine gave position 0 to the token at place 96."] == list(
        disagreements(wrong, join(wrong)))
    assert () == disagreements(axes, join(axes))


def test_another_way_of_counting_is_no_disagreement(same: Trace) -> None:
    """A model whose uncached runs count otherwise as well is not accused."""
    trace = changed(same, ForwardRecord, lambda _: True, first_position=(7,))

    assert () == disagreements(trace, join(trace))


def test_other_blocks_are_told(same: Trace) -> None:
    """Attention with another block table than the scheduler's is a note, but not where no table
    ever fits: there blocks are counted otherwise.
    """
    one = changed(same, ForwardRecord, lambda e: e.run == "cached/r1#2" and bool(e.block_ids),
                  block_ids=(1, 2, 9, 4))
    all_of_them = changed(same, ForwardRecord, lambda e: bool(e.block_ids), block_ids=(2, 3))

    assert ["cached/r1#2: in step 21 attention used other blocks than the scheduler's block table "
            "has."] == list(disagreements(one, join(one)))
    assert () == disagreements(all_of_them, join(all_of_them))


def test_encoder_lookups(same: Trace) -> None:
    """One entry for each item of each run, with the processor cache's answer."""
    assert [("cached/r1#1", "miss", "miss"), ("cached/r1#2", "not asked", "hit"),
            ("reference/r1", "miss", "miss")] == [
        (use.run, use.lookup, use.processor) for use in encoder_uses(same)][:3]
