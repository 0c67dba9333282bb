"""Sees what the scheduler gives each run in each step, and holds a lane to its token budget."""

from collections.abc import Callable
from typing import Any, Final

from vcachediag.engine import capabilities
from vcachediag.engine.hooks.log import Log
from vcachediag.engine.hooks.patch import wrap
from vcachediag.trace.records import BlockTableRecord, EncoderEvictionRecord, StepRecord

HOOK: Final = "schedule"


class ScheduleHook:
    """Patches `Scheduler.schedule` for every scheduler of this process."""

    def __init__(self, log: Log, on_step: Callable[[Any, Any, dict[str, int]], None]) -> None:
        self._log = log
        self._on_step = on_step
        #: Most tokens a step may compute; None: the engine's own limit.
        self.token_budget: int | None = None
        #: Tokens scheduled in the last step, all runs together.
        self.last_scheduled = 0
        self._tables: dict[tuple[str, int], list[int]] = {}

    def install(self) -> None:
        """Patch; before the engine starts."""
        wrap(*capabilities.locate("Scheduler.schedule"), before=self._count,
             after=self._log.watched(HOOK, self._see))

    def limit_budget(self) -> None:
        """Patch so that `token_budget` holds; before the engine starts."""
        owner, name = capabilities.locate("Scheduler.schedule")
        original = getattr(owner, name)

        def schedule(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            given = scheduler.max_num_scheduled_tokens
            if self.token_budget is not None:
                scheduler.max_num_scheduled_tokens = min(self.token_budget, given)
            try:
                output = original(scheduler, *args, **kwargs)
            finally:
                scheduler.max_num_scheduled_tokens = given
            self.last_scheduled = output.total_num_scheduled_tokens
            return output

        setattr(owner, name, schedule)

    def _count(self, *_args: Any, **_kwargs: Any) -> None:
        self._log.step += 1

    def _see(self, output: Any, scheduler: Any, *_args: Any, **_kwargs: Any) -> None:
        before = _computed_before(output)
        preempted = getattr(output, "preempted_req_ids", None) or ()
        for request_id, scheduled in output.num_scheduled_tokens.items():
            run = self._log.run_of(scheduler.requests[request_id])
            if run is None:
                continue
            self._see_table(run, scheduler.kv_cache_manager.get_block_ids(request_id))
            self._log.write(HOOK, StepRecord(
                run=run, step=self._log.step, num_computed_tokens=before[request_id],
                num_scheduled_tokens=scheduled,
                encoder_inputs=tuple(output.scheduled_encoder_inputs.get(request_id, ()))))
        self._see_preempted(scheduler, preempted)
        self._see_freed(output)
        self._on_step(scheduler, output, before)
        for request_id in output.finished_req_ids:
            self._forget(request_id)

    def _see_preempted(self, scheduler: Any, preempted: Any) -> None:
        """A preempted run gets nothing in this step, so it has no record of its own there."""
        for request_id in preempted:
            request = scheduler.requests.get(request_id)
            run = self._log.run_of(request) if request is not None else None
            if run is not None:
                # Its blocks are gone: when it comes back, its table is told anew.
                self._forget_tables(run)
                self._log.write(HOOK, StepRecord(
                    run=run, step=self._log.step, num_computed_tokens=0, num_scheduled_tokens=0,
                    preempted=True))

    def _see_table(self, run: str, groups: Any) -> None:
        for group, ids in enumerate(groups):
            known = self._tables.get((run, group), [])
            if ids == known:
                continue
            first = _first_change(known, ids)
            self._log.write("blocks", BlockTableRecord(
                run=run, step=self._log.step, group=group, first=first,
                block_ids=tuple(ids[first:])))
            self._tables[run, group] = list(ids)

    def _see_freed(self, output: Any) -> None:
        """What the workers are told to drop in this step."""
        freed = getattr(output, "free_encoder_mm_hashes", None)
        if freed is None:
            # Keyed by request there: (request id, place of the item).
            freed = [f"{self._log.run_of_id(request_id)}[{index}]"
                     for request_id, index in getattr(output, "free_encoder_input_ids", ())]
        if freed:
            self._log.write("encoder", EncoderEvictionRecord(
                step=self._log.step, identifiers=tuple(map(str, freed))))

    def _forget(self, request_id: str) -> None:
        run = self._log.run_of_id(request_id)
        self._log.forget(request_id)
        self._forget_tables(run)

    def _forget_tables(self, run: str | None) -> None:
        for key in [key for key in self._tables if key[0] == run]:
            del self._tables[key]


def _computed_before(output: Any) -> dict[str, int]:
    """Engine request id -> tokens computed before this step, for all requests of the step."""
    new = {request.req_id: request.num_computed_tokens
           for request in output.scheduled_new_reqs}
    cached = output.scheduled_cached_reqs
    return new | dict(zip(cached.req_ids, cached.num_computed_tokens, strict=True))


def _first_change(known: list[int], now: list[int]) -> int:
    """The usual case, a longer table with the same beginning, is compared at C's speed."""
    if now[:len(known)] == known:
        return len(known)
    return next(place for place, (a, b) in enumerate(zip([*known, -1], [*now, -2], strict=False))
                if a != b)
