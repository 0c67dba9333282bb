"""A trace with every type of record, for tests of what reads and changes traces."""

from pathlib import Path

import msgspec

from tests.unit.analysis.builders import ENGINE, row
from vcachediag.trace.records import (
    SCHEMA_VERSION,
    BlocksRecord,
    BlockTableRecord,
    ControlRecord,
    EncoderEvictionRecord,
    EncoderRecord,
    Event,
    ExtraKey,
    FinishedRecord,
    Footer,
    ForwardRecord,
    HashRecord,
    Header,
    HookRecord,
    ImageSpan,
    LaneRecord,
    LookupRecord,
    NotObservedRecord,
    Override,
    ProcessorRecord,
    RequestRecord,
    RunRecord,
    StepRecord,
)
from vcachediag.trace.writer import EventWriter, create_trace, write_footer

HEADER = Header(schema=SCHEMA_VERSION, tool="0.1", started="2026-01-01T00:00:00Z",
                argv=("vcachediag", "é"), request_file="r.jsonl", plugins=("p",), notes=("n",))
FOOTER = Footer(outcome="failed", ended="2026-01-01T00:01:00Z", detail="boom")
REQUEST = RequestRecord(
    id="r1", source="r.jsonl:1", prompt_token_ids=(1, 2), prompt_text="a\nb", max_tokens=4,
    images=(ImageSpan(modality="image", identifier="k", offset=0, length=1),),
    image_labels=("x.png 1x1 L",), expect="")
EVENTS: tuple[Event, ...] = (
    ENGINE, type(ENGINE)(**{**{name: getattr(ENGINE, name) for name in ENGINE.__struct_fields__},
                            "stop_tokens": ((2, "</s>"),),
                            "overrides": (Override(name="a", given="b", used="c", why="d"),)}),
    LaneRecord(lane="cached", runs=("cached/r1#1",), reads_prefix_cache=True,
               emptied=("prefix",), token_budget=9),
    RunRecord(run="cached/r1#1", lane="cached", request="r1", attempt=2, appended=3),
    ControlRecord(name="reset", source="r.jsonl:2", outcome="done"),
    StepRecord(run="cached/r1#1", step=1, num_computed_tokens=0, num_scheduled_tokens=2,
               preempted=True),
    row("cached/r1#1", 0, 5, {39: float("-inf"), 7: 0.1, 8: float("nan")}),
    FinishedRecord(run="cached/r1#1", token_ids=(5,), text="\u2028\x00", reason="error",
                   num_cached_tokens=1, error="x", seconds=0.1),
    NotObservedRecord(what="a", why="b", lane="decode", run="decode/r1"),
    HashRecord(hash="aa11", parent=None, token_ids=(1, 2), extra_keys=(
        ExtraKey(kind="media", value="k", offset=-3), ExtraKey(kind="lora", value="l"))),
    LookupRecord(run="cached/r1#1", step=1, asked=2, limit=1, found=1, block_ids=((7, 0), ()),
                 hashes=("aa11",), not_read="off"),
    BlocksRecord(action="register", step=1, run="cached/r1#1", block_ids=(7,), hashes=("aa11",),
                 group=1, first=2),
    BlockTableRecord(run="cached/r1#1", step=1, group=1, first=1, block_ids=(7, 0)),
    EncoderRecord(run="cached/r1#1", step=1, index=0, identifier="k", offset=0, length=1,
                  outcome="not asked", why="inside"),
    EncoderEvictionRecord(step=2, identifiers=("k",), why="reset"),
    ProcessorRecord(run="cached/r1#1", index=0, identifier="k", outcome="hit"),
    ForwardRecord(run="cached/r1#1", step=1, num_tokens=2, first_position=(0, 0, 0),
                  last_position=(1, 1, 1), positions_digest="ab", first_id=1, last_id=2,
                  input_digest="cd", has_embeds=True, attention="m.C", op="m.O", seq_len=2,
                  first_block=0, block_ids=(7,), first_slot=224, last_slot=225,
                  slots_digest="ef"),
    HookRecord(lane="cached", hook="forward", seen=1, failed=2))


def write_sample(path: Path) -> Path:
    """Write the sample to the folder `path`."""
    create_trace(path, HEADER)
    with EventWriter(path, "engine") as writer:
        writer.request(REQUEST)
        for event in EVENTS:
            writer.event(event)
    write_footer(path, FOOTER)
    return path


def untimed(events: tuple[Event, ...]) -> tuple[Event, ...]:
    """`events` without the time at which they were written."""
    return tuple(msgspec.structs.replace(event, at=0) for event in events)


def event_file(folder: Path) -> Path:
    """The one file of events of a trace."""
    return next((folder / "events").glob("*.jsonl"))
