"""Turns what the hooks see into records of the run that it belongs to."""

from collections.abc import Callable
from typing import Any

import torch

from vcachediag.engine.hooks import logits as logits_hook
from vcachediag.engine.hooks import schedule as schedule_hook
from vcachediag.engine.hooks.logits import Row
from vcachediag.trace.records import Event, NotObservedRecord, StepRecord

#: Key under which a run travels in `SamplingParams.extra_args`.
RUN_KEY = "vcachediag_run"


class Observer:
    """What is seen of the runs under way in this process.

    A hook that fails is noted once per kind and never breaks the run that it watches.
    """

    def __init__(self, write: Callable[[Event], None]) -> None:
        self._write = write
        self._step = 0
        #: Engine request id -> (run, stop token ids), for requests whose row this step samples.
        self._sampling: dict[str, tuple[str, tuple[int, ...]]] = {}
        self._rows: dict[str, list[Row]] = {}
        self._failed: set[str] = set()
        self._runner: Any = None
        #: Most tokens a step may compute; None: the engine's own limit.
        self.token_budget: int | None = None
        #: Tokens scheduled in the last step, all runs together.
        self.last_scheduled = 0

    def install(self) -> None:
        """Patch the scheduler class; before the engine starts."""
        schedule_hook.install(budget=lambda: self.token_budget,
                              see=self._guarded("scheduled tokens", self._see_schedule))

    def attach(self, runner: Any) -> None:
        """Watch the logits of the loaded model; after the engine has started."""
        self._runner = runner
        logits_hook.install(runner.get_model(), self._guarded("logits", self._see_logits))

    def take_rows(self, run: str) -> list[Row]:
        """The rows of `run` that no token was matched to yet, oldest first; they are forgotten."""
        return self._rows.pop(run, [])

    def _guarded(self, what: str, see: Callable[..., None]) -> Callable[..., None]:
        def guarded(*args: Any) -> None:
            try:
                see(*args)
            except Exception as error:  # noqa: BLE001  # a recorder must never break the run
                if what not in self._failed:
                    self._failed.add(what)
                    self._write(NotObservedRecord(
                        what=what, why=f"the hook raised {type(error).__name__}: {error}"))

        return guarded

    def _see_schedule(self, scheduler: Any, output: Any) -> None:
        self._step += 1
        self._sampling = {}
        self.last_scheduled = output.total_num_scheduled_tokens
        before = schedule_hook.computed_before(output)
        preempted = getattr(output, "preempted_req_ids", None) or ()
        for request_id, scheduled in output.num_scheduled_tokens.items():
            request = scheduler.requests[request_id]
            params = request.sampling_params
            run = (params.extra_args or {}).get(RUN_KEY) if params is not None else None
            if run is None:
                continue
            computed = before[request_id]
            self._write(StepRecord(
                run=run, step=self._step, num_computed_tokens=computed,
                num_scheduled_tokens=scheduled, preempted=request_id in preempted))
            if computed + scheduled >= request.num_tokens:
                self._sampling[request_id] = (run, _stop_ids(params))

    def _see_logits(self, logits: torch.Tensor) -> None:
        # Prompt logprobs come through the same method: only the first call of a step samples.
        sampling, self._sampling = self._sampling, {}
        if not sampling:
            return
        batch = getattr(self._runner, "input_batch", None)
        order = list(getattr(batch, "req_ids", sampling))
        if len(order) != logits.shape[0]:
            raise ValueError(f"{logits.shape[0]} rows of logits for {len(order)} requests")
        for request_id, row in zip(order, logits, strict=True):
            if request_id in sampling:
                run, stop_ids = sampling[request_id]
                self._rows.setdefault(run, []).append(logits_hook.summarise(row, stop_ids))


def _stop_ids(params: Any) -> tuple[int, ...]:
    return tuple(sorted(params.all_stop_token_ids))
