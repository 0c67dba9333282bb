"""Joins the records of a trace by run, and two runs by output step."""

import msgspec

from vcachediag.analysis.noise import row_difference
from vcachediag.analysis.records import Outcome, RunComparison, StepPair
from vcachediag.trace.records import (
    EngineRecord,
    FinishedRecord,
    ForwardRecord,
    LogitsRecord,
    LookupRecord,
    NotObservedRecord,
    RequestRecord,
    RunRecord,
    StepRecord,
    Trace,
)

_OfARun = StepRecord | LogitsRecord | FinishedRecord | LookupRecord | ForwardRecord
_OF_A_RUN = (StepRecord, LogitsRecord, FinishedRecord, LookupRecord, ForwardRecord)


class Run(msgspec.Struct, kw_only=True):
    """All that a trace holds about one run."""

    start: RunRecord
    request: RequestRecord
    steps: list[StepRecord] = []
    rows: dict[int, LogitsRecord] = {}
    finished: FinishedRecord | None = None
    lookups: list[LookupRecord] = []
    forwards: list[ForwardRecord] = []

    @property
    def name(self) -> str:
        """`cached/r1#2`."""
        return self.start.run

    @property
    def prompt_tokens(self) -> int:
        """Length of the prompt, with what was appended to it."""
        return len(self.request.prompt_token_ids) + self.start.appended

    @property
    def prefill(self) -> tuple[int, ...]:
        """Prompt tokens computed in each step that computed any."""
        return tuple(min(step.num_scheduled_tokens, self.prompt_tokens - step.num_computed_tokens)
                     for step in self.steps if step.num_computed_tokens < self.prompt_tokens)

    @property
    def cached_tokens(self) -> int:
        """Prompt tokens that came from the prefix cache."""
        if self.steps:
            return self.steps[0].num_computed_tokens
        return self.finished.num_cached_tokens if self.finished else 0

    @property
    def tokens(self) -> tuple[int, ...]:
        """Output tokens, the stop token included."""
        return self.finished.token_ids if self.finished else ()

    @property
    def is_whole(self) -> bool:
        """Whether the prompt was computed in one step, with nothing from the cache."""
        return (not self.steps[0].num_computed_tokens if self.steps else False) and len(
            self.prefill) == 1


class Joined(msgspec.Struct, kw_only=True):
    """A trace, joined."""

    engine: EngineRecord | None
    runs: dict[str, Run]
    not_observed: list[NotObservedRecord]

    def of_lane(self, lane: str) -> list[Run]:
        """The runs of one lane, in the order in which they were sent."""
        return [run for run in self.runs.values() if run.start.lane == lane]

    def by_request(self, lane: str) -> dict[str, Run]:
        """The runs of a lane that sends each request once."""
        return {run.start.request: run for run in self.of_lane(lane)}


def join(trace: Trace) -> Joined:
    """Sort the records of `trace` into runs; records of unknown runs are left out."""
    requests = {record.id: record for record in trace.requests}
    joined = Joined(engine=None, runs={}, not_observed=[])
    for event in trace.events:
        if isinstance(event, EngineRecord):
            joined.engine = event
        elif isinstance(event, NotObservedRecord):
            joined.not_observed.append(event)
        elif isinstance(event, RunRecord):
            if event.request in requests:
                joined.runs[event.run] = Run(start=event, request=requests[event.request])
        elif isinstance(event, _OF_A_RUN):
            run = joined.runs.get(event.run)
            if run is not None:
                _add(run, event)
    return joined


def _add(run: Run, event: _OfARun) -> None:
    if isinstance(event, StepRecord):
        run.steps.append(event)
    elif isinstance(event, LogitsRecord):
        run.rows[event.index] = event
    elif isinstance(event, LookupRecord):
        run.lookups.append(event)
    elif isinstance(event, ForwardRecord):
        run.forwards.append(event)
    else:
        run.finished = event


def compare(run: Run, truth: Run, bound: float) -> RunComparison:
    """`run` against `truth`, step by step up to the first token that differs.

    A row counts as different when its relative difference is above `bound`.
    """
    why = _not_comparable(run, truth)
    if why:
        return RunComparison(run=run.name, against=truth.name, outcome="unknown", why=why)
    split = first_difference(run.tokens, truth.tokens)
    if split is None and run.finished is not None and run.finished.error:
        split = len(run.tokens)
    steps = tuple(_pair(index, truth.rows.get(index), run.rows.get(index),
                        split is None or index <= split, bound)
                  for index in range(max(len(run.tokens), len(truth.tokens))))
    compared = [step for step in steps if step.relative is not None]
    beyond = [step for step in compared if step.beyond_floor]
    missing = len(compared) < (len(truth.tokens) if split is None else split + 1)
    failed = run.finished is not None and run.finished.error is not None
    worst = max(compared, key=lambda step: step.relative or 0.0, default=None)
    return RunComparison(
        run=run.name, against=truth.name, split=split, steps=steps,
        outcome=_outcome(split=split, beyond=bool(beyond), missing=missing, failed=failed),
        first_beyond=beyond[0].index if beyond else None,
        worst=worst.relative if worst else None,
        worst_absolute=worst.max_difference if worst else None,
        why="some rows of logits were not seen" if missing and not failed else "")


def _not_comparable(run: Run, truth: Run) -> str:
    for side in (truth, run):
        if side.finished is None:
            return f"{side.name} did not finish"
    if truth.finished is not None and truth.finished.error:
        return f"{truth.name} failed: {truth.finished.error}"
    return ""


def _outcome(*, split: int | None, beyond: bool, missing: bool, failed: bool) -> Outcome:
    if failed or (beyond and split is not None):
        return "splits"
    if beyond:
        return "differs"
    if missing:
        return "unknown"
    return "same" if split is None else "benign"


def first_difference(left: tuple[int, ...], right: tuple[int, ...]) -> int | None:
    """First place at which two answers differ, a missing token included; None: they are equal."""
    for index, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return index
    return None if len(left) == len(right) else min(len(left), len(right))


def _pair(index: int, left: LogitsRecord | None, right: LogitsRecord | None, comparable: bool,
          bound: float) -> StepPair:
    if left is None or right is None or not comparable:
        return StepPair(index=index, left=left, right=right)
    absolute, relative = row_difference(left, right)
    return StepPair(index=index, left=left, right=right, max_difference=absolute,
                    relative=relative, beyond_floor=relative > bound)
