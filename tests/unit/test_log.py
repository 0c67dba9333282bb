"""What the hooks share."""

from vcachediag.engine.hooks.log import Log
from vcachediag.trace.records import Event, HookRecord, NotObservedRecord, StepRecord


def step() -> StepRecord:
    """Any record."""
    return StepRecord(run="r", step=1, num_computed_tokens=0, num_scheduled_tokens=1)


def test_a_hook_that_raises_is_counted_and_named_once() -> None:
    """The run goes on, the first reason is written, and the count of all stands in the lane."""
    written: list[Event] = []
    log = Log(written.append)

    def see(value: int) -> None:
        log.write("forward", step())
        raise KeyError(value)

    watched = log.watched("forward", see)
    for value in (1, 2, 3):
        watched(value)
    log.end_lane("cached", ("forward", "hash"))

    assert [NotObservedRecord(what="forward", why="the hook raised KeyError: 1")] == [
        event for event in written if isinstance(event, NotObservedRecord)]
    assert [HookRecord(lane="cached", hook="forward", seen=3, failed=3),
            HookRecord(lane="cached", hook="hash", seen=0)] == written[-2:]


def test_counts_begin_anew_with_a_lane() -> None:
    """What one lane saw does not vouch for the next."""
    written: list[Event] = []
    log = Log(written.append)
    log.write("hash", step())
    log.end_lane("cached", ("hash",))
    log.end_lane("reference", ("hash",))

    assert [1, 0] == [event.seen for event in written if isinstance(event, HookRecord)]


def test_nothing_is_seen_while_recording_is_off() -> None:
    """Off, a hook is not even called."""
    log = Log(lambda _: None)
    log.enabled = False
    called: list[int] = []
    log.watched("hash", called.append)(1)

    assert [] == called
