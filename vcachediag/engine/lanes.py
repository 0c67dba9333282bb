"""Runs the request sequence under one condition."""

from collections.abc import Callable, Iterator

from vcachediag.engine.jobs import LaneSpec
from vcachediag.engine.session import Session
from vcachediag.requests import Control, Request, RequestFile
from vcachediag.trace.records import (
    ControlRecord,
    Event,
    FinishedRecord,
    LaneRecord,
    RunRecord,
)


class LaneRunner:
    """Runs lanes one after another in one session, and remembers what `reference` gave."""

    def __init__(self, session: Session, requests: RequestFile, write: Callable[[Event], None],
                 *, user_token_budget: int, whole_token_budget: int) -> None:
        self._session = session
        self._requests = requests
        self._write = write
        self._user_token_budget = user_token_budget
        self._whole_token_budget = whole_token_budget
        self._reference: dict[str, FinishedRecord] = {}
        #: The run under way, for the message when the engine fails in it.
        self.current = ""

    def run(self, spec: LaneSpec, on_progress: Callable[[int, int], None]) -> None:
        """Run one lane; everything that happens is written as records."""
        items = list(self._items(spec))
        budget = self._user_token_budget if spec.user_budget else self._whole_token_budget
        runs = tuple(_run_name(spec, item, attempt) for item, attempt in items
                     if isinstance(item, Request))
        self._write(LaneRecord(lane=spec.name, runs=runs, emptied=spec.emptied,
                               reads_prefix_cache=spec.reads_prefix_cache, token_budget=budget))
        # Every lane starts from empty caches; `cached` then lets them live.
        self._session.empty(("prefix", "encoder", "processor"))
        self._session.limit_steps(budget)
        done = 0
        for item, attempt in items:
            if isinstance(item, Control):
                outcome = self._session.control(item)
                self._write(ControlRecord(name=item.name, source=item.source, outcome=outcome))
                continue
            self._one(spec, item, attempt)
            done += 1
            on_progress(done, len(runs))
        self._session.limit_steps(None)
        self._session.end_lane(spec.name)

    def _items(self, spec: LaneSpec) -> Iterator[tuple[Request | Control, int]]:
        items = (self._requests.items if spec.reads_prefix_cache else self._requests.requests)
        if spec.append_reference_output:
            items = tuple(request for request in self._requests.requests
                          if self._appended(request))
        for attempt in range(1, spec.repeat + 1):
            for item in reversed(items) if spec.reverse else items:
                yield item, attempt

    def _one(self, spec: LaneSpec, request: Request, attempt: int) -> None:
        run = _run_name(spec, request, attempt)
        appended = self._appended(request) if spec.append_reference_output else ()
        self.current = run
        self._write(RunRecord(run=run, lane=spec.name, request=request.id, attempt=attempt,
                              appended=len(appended)))
        if spec.emptied:
            self._session.empty(spec.emptied)
        finished = self._session.run(
            request, run, reads_prefix_cache=spec.reads_prefix_cache, appended=appended,
            max_tokens=1 if spec.append_reference_output else None)
        if spec.name == "reference":
            self._reference[request.id] = finished

    def _appended(self, request: Request) -> tuple[int, ...]:
        """All but the last token of the reference's answer: its row is then computed anew."""
        finished = self._reference.get(request.id)
        return finished.token_ids[:-1] if finished is not None else ()


def _run_name(spec: LaneSpec, item: Request | Control, attempt: int) -> str:
    name = item.id if isinstance(item, Request) else item.name
    return f"{spec.name}/{name}#{attempt}" if spec.repeat > 1 else f"{spec.name}/{name}"
