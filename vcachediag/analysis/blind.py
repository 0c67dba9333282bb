"""What was not seen: a hook that saw nothing is named, and no verdict rests on it."""

from vcachediag.analysis.records import NotObserved
from vcachediag.trace.records import (
    EngineRecord,
    FinishedRecord,
    HookRecord,
    LaneRecord,
    NotObservedRecord,
    Trace,
)

#: Without them nothing is judged: whether a run was whole and uncached, and what it gave.
NEEDED = frozenset({"schedule", "logits"})
#: Every lane with a finished run has something for these.
_ALWAYS = ("schedule", "logits", "lookup", "blocks", "forward")
#: Only lanes with media have.
_MEDIA = ("encoder", "processor")


def blind_hooks(trace: Trace) -> tuple[NotObserved, ...]:
    """Hooks that saw nothing where they must have, lane by lane.

    A lane without any count is one that the recording did not finish.
    """
    counts: dict[str, dict[str, HookRecord]] = {}
    for event in trace.events:
        if isinstance(event, HookRecord):
            counts.setdefault(event.lane, {})[event.hook] = event
    said = {event.what for event in trace.events if isinstance(event, NotObservedRecord)}
    found = []
    for lane in _finished_lanes(trace):
        for hook in _expected(trace, lane):
            record = counts.get(lane, {}).get(hook)
            if record is not None and record.failed:
                found.append(NotObserved(
                    what=f"{hook} in {lane}, in part",
                    why=f"the hook raised {record.failed} times and saw {record.seen}"))
            elif record is not None and not record.seen and hook not in said:
                found.append(NotObserved(what=f"{hook} in {lane}",
                                         why="the hook was never called"))
    if counts:
        found += [NotObserved(what=f"the end of lane {event.lane}",
                              why="the recording ended in it")
                  for event in trace.events
                  if isinstance(event, LaneRecord) and event.lane not in counts]
    return tuple(found)


def blind_need(trace: Trace) -> str:
    """Why nothing can be judged: a needed hook saw nothing in a lane; empty: none did."""
    lanes = _finished_lanes(trace)
    for event in trace.events:
        if isinstance(event, HookRecord) and event.hook in NEEDED and not event.seen and (
                event.lane in lanes):
            return f"the hook `{event.hook}` saw nothing in {event.lane}"
    return ""


def _finished_lanes(trace: Trace) -> list[str]:
    """Lanes with a run that gave at least one token."""
    runs = {event.run for event in trace.events
            if isinstance(event, FinishedRecord) and event.token_ids}
    return [event.lane for event in trace.events
            if isinstance(event, LaneRecord) and runs & set(event.runs)]


def _expected(trace: Trace, lane: str) -> tuple[str, ...]:
    hooks: tuple[str, ...] = _ALWAYS
    if any(request.images for request in trace.requests):
        hooks += _MEDIA
    size = next((event.block_size for event in trace.events
                 if isinstance(event, EngineRecord)), 0)
    # A hash is recorded once: only the first lane must have some.
    if lane == "cached" and size and any(
            len(request.prompt_token_ids) >= size for request in trace.requests):
        hooks += ("hash",)
    return hooks
