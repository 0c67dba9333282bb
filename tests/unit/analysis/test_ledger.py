"""The life of blocks, from the records of the hooks."""

from typing import Any

import msgspec
import pytest

from tests.unit.analysis.builders import ENGINE
from vcachediag.analysis.ledger import BlockUse, block_uses
from vcachediag.trace.records import (
    BlocksRecord,
    BlockTableRecord,
    Event,
    Header,
    LookupRecord,
    RequestRecord,
    RunRecord,
    StepRecord,
    Trace,
)

SIZE = ENGINE.block_size


def trace_of(*events: Event, prompt: int = 10) -> Trace:
    """A trace of two requests with prompts of one length."""
    return Trace(
        path="t", header=Header(schema=1, tool="", started="", argv=(), request_file=""),
        requests=tuple(RequestRecord(id=name, source="", prompt_token_ids=tuple(range(prompt)),
                                     max_tokens=9) for name in "ab"),
        events=(ENGINE, *events))


def run(name: str, request: str = "a") -> RunRecord:
    """A run begins."""
    return RunRecord(run=name, lane="cached", request=request)


def blocks(action: Any, ids: tuple[int, ...], step: int, name: str | None = None,
           **more: Any) -> BlocksRecord:
    """Something happens to blocks."""
    return BlocksRecord(action=action, step=step, run=name, block_ids=ids, **more)


def table(name: str, step: int, ids: tuple[int, ...], first: int = 0,
          group: int = 0) -> BlockTableRecord:
    """New entries of a block table."""
    return BlockTableRecord(run=name, step=step, block_ids=ids, first=first, group=group)


def step(name: str, number: int, computed: int, scheduled: int) -> StepRecord:
    """Tokens of a step."""
    return StepRecord(run=name, step=number, num_computed_tokens=computed,
                      num_scheduled_tokens=scheduled)


def first_run() -> list[Event]:
    """A cold run of ten prompt tokens and three more, in blocks of four: two are registered while
    prefilling, the third when decode has filled it.
    """
    return [
        run("x"), blocks("allocate", (5, 6, 7), 1, "x"),
        blocks("register", (5, 6), 1, "x", hashes=("h5", "h6")), table("x", 1, (5, 6, 7)),
        step("x", 1, 0, 10), step("x", 2, 10, 1), step("x", 3, 11, 1),
        blocks("register", (7,), 4, "x", hashes=("h7",), first=2),
        blocks("allocate", (8,), 4, "x"), table("x", 4, (8,), first=3), step("x", 4, 12, 1),
        blocks("free", (8, 7, 6, 5), 4, "x"),
    ]


def hit(ids: tuple[int, ...], name: str = "y") -> list[Event]:
    """A run that finds `ids` and computes the rest in block 9."""
    return [
        run(name, "b"), blocks("reuse", ids, 5, name), blocks("allocate", (9,), 5, name),
        table(name, 5, (*ids, 9)), step(name, 5, SIZE * len(ids), 2)]


def uses_of(name: str, *events: Event) -> list[BlockUse]:
    """The block table of one run."""
    return [use for use in block_uses(trace_of(*events)) if use.run == name]


def test_a_cold_run_computes_and_registers() -> None:
    """Each block has its tokens, hash, and the steps of its registration and release."""
    found = [(use.block, use.tokens, use.origin, use.hash, use.registered, use.freed)
             for use in uses_of("x", *first_run())]

    assert [(5, (0, 4), "computed", "h5", 1, 4), (6, (4, 8), "computed", "h6", 1, 4),
            (7, (8, 12), "computed", "h7", 4, 4), (8, (12, 13), "computed", None, None, 4),
            ] == found


def test_a_hit_names_its_donor() -> None:
    """Who wrote a hit block, in which step, and whether by prefill, decode or both."""
    found = [(use.block, use.origin, use.donor, use.donor_step, use.written_in, use.hash)
             for use in uses_of("y", *first_run(), *hit((5, 6, 7)))]

    assert [(5, "hit", "x", 1, "prefill", "h5"), (6, "hit", "x", 1, "prefill", "h6"),
            (7, "hit", "x", 3, "both", "h7"), (9, "computed", None, None, None, None)] == found


def test_a_block_handed_out_anew_has_another_donor() -> None:
    """What was written before the last allocation is no longer in the block."""
    found = uses_of(
        "y", *first_run(), run("z", "b"), blocks("evict", (5,), 5, hashes=("h5",)),
        blocks("allocate", (5,), 5, "z"), blocks("register", (5,), 5, "z", hashes=("g5",)),
        table("z", 5, (5,)), step("z", 5, 0, 4), blocks("free", (5,), 5, "z"), *hit((5,)))

    assert [("z", 5, "g5"), (None, None, None)] == [
        (use.donor, use.donor_step, use.hash) for use in found]


@pytest.mark.parametrize(("event", "expected"), [
    (blocks("evict", (5,), 7, hashes=("h5",)), (7, "eviction")),
    (blocks("reset", (), 8), (8, "reset"))])
def test_a_lost_hash_is_told(event: Event, expected: tuple[int, str]) -> None:
    """Eviction and reset end the registration of a block."""
    use = uses_of("x", *first_run(), event)[0]

    assert expected == (use.dropped, use.dropped_by)


def test_what_is_not_there_is_not_guessed() -> None:
    """Without the donor's records a hit has no donor, and nothing raises."""
    found = uses_of("y", *hit((5, 6)))

    assert [("hit", None), ("hit", None), ("computed", None)] == [
        (use.origin, use.donor) for use in found]


def test_other_groups_have_no_tokens() -> None:
    """Only the first KV group surely has blocks of the known size; null blocks are left out."""
    found = uses_of("x", run("x"), blocks("allocate", (5, 6), 1, "x"), table("x", 1, (5,)),
                    table("x", 1, (0, 6), group=1), step("x", 1, 0, 4))

    assert [(0, 0, (0, 4)), (1, 1, None)] == [(use.group, use.place, use.tokens) for use in found]


def test_a_wild_step_takes_no_time() -> None:
    """A step that claims more tokens than the table has blocks is bounded by the table."""
    events = [*first_run(), table("x", 9, (11,), first=10**15), step("x", 9, 0, 10**17)]

    assert uses_of("x", *events)


def test_without_records_of_blocks_the_lookup_tells_hits() -> None:
    """A hook that saw nothing does not make a hit look computed."""
    events = [event for event in hit((5, 6)) if not isinstance(event, BlocksRecord)]
    lookup = LookupRecord(run="y", step=5, asked=10, limit=9, found=8, block_ids=((5, 6),))
    found = uses_of("y", events[0], lookup, *events[1:])

    assert ["hit", "hit", "computed"] == [use.origin for use in found]


def test_a_preempted_run_computes_what_it_had_hit() -> None:
    """A block that is allocated anew for the run that once hit it is computed, not hit."""
    events = [*first_run(), *hit((5,)), blocks("free", (9, 5), 6, "y"),
              blocks("allocate", (5,), 7, "y"), table("y", 7, (5,))]

    assert "computed" == uses_of("y", *events)[-1].origin


def test_every_prefix_of_a_trace_is_read() -> None:
    """Cut anywhere, the ledger says what is there."""
    events = [*first_run(), *hit((5, 6))]
    whole = block_uses(trace_of(*events))
    for end in range(len(events)):
        part = block_uses(trace_of(*events[:end]))
        assert [(use.run, use.place, use.block) for use in part] == [
            (use.run, use.place, use.block) for use in whole[:len(part)]]
    assert not msgspec.structs.asdict(whole[0])["dropped_by"]
