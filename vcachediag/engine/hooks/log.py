"""What all hooks share: where records go, which step it is, and whose request is whose run."""

from collections.abc import Callable
from typing import Any

from vcachediag.trace.records import Event, HookName, HookRecord, LaneName, NotObservedRecord

#: Key under which a run travels in `SamplingParams.extra_args`, to wherever its request goes.
RUN_KEY = "vcachediag_run"


class Log:
    """Takes what hooks see.

    A hook that raises is counted and named once, and never breaks the run that it watches.
    """

    def __init__(self, write: Callable[[Event], None]) -> None:
        self._write = write
        self._seen: dict[HookName, int] = {}
        self._failed: dict[HookName, int] = {}
        self._named: set[str] = set()
        #: Nothing is recorded while this is False.
        self.enabled = True
        #: Counts engine steps, from 1; set before a step is scheduled.
        self.step = 0
        #: The run whose prompt is being rendered.
        self.rendering: str | None = None
        self._runs: dict[str, str] = {}

    def run_of(self, request: Any) -> str | None:
        """The run that a vLLM `Request` belongs to; None: not one of ours."""
        params = request.sampling_params
        run = (params.extra_args or {}).get(RUN_KEY) if params is not None else None
        if run is not None:
            self._runs[request.request_id] = run
        return run

    def run_of_id(self, request_id: str) -> str | None:
        """The same by vLLM's own request id, once `run_of` has seen the request."""
        return self._runs.get(request_id)

    def forget(self, request_id: str) -> None:
        """A request has ended."""
        self._runs.pop(request_id, None)

    def write(self, hook: HookName, record: Event) -> None:
        """Record what `hook` saw."""
        self._seen[hook] = self._seen.get(hook, 0) + 1
        self._write(record)

    def watched(self, hook: HookName, see: Callable[..., None]) -> Callable[..., None]:
        """`see`, which does nothing while recording is off, and never raises."""
        def guarded(*args: Any, **kwargs: Any) -> None:
            if not self.enabled:
                return
            try:
                see(*args, **kwargs)
            except Exception as error:  # noqa: BLE001  # a recorder must never break the run
                self._failed[hook] = self._failed.get(hook, 0) + 1
                self.not_observed(hook, f"the hook raised {type(error).__name__}: {error}")

        return guarded

    def not_observed(self, what: str, why: str) -> None:
        """Say once that a hook is blind."""
        if what not in self._named:
            self._named.add(what)
            self._write(NotObservedRecord(what=what, why=why))

    def end_lane(self, lane: LaneName, hooks: tuple[HookName, ...]) -> None:
        """Write how often each of `hooks` saw something since the last lane, and begin anew."""
        for hook in hooks:
            self._write(HookRecord(lane=lane, hook=hook, seen=self._seen.get(hook, 0),
                                   failed=self._failed.get(hook, 0)))
        self._seen.clear()
        self._failed.clear()
