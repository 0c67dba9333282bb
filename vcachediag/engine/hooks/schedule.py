"""Sees what the scheduler gives each run in each step, and holds a lane to its token budget."""

from collections.abc import Callable
from typing import Any

from vcachediag.engine import capabilities


def install(*, budget: Callable[[], int | None], see: Callable[[Any, Any], None]) -> None:
    """Wrap `Scheduler.schedule` for every scheduler of this process.

    Args:
        budget: Most tokens that the next step may compute; None: the engine's own limit.
        see: Called with the scheduler and its `SchedulerOutput` after each step.
    """
    scheduler_class = capabilities.find("Scheduler.schedule")
    owner = _owner(scheduler_class)
    original = owner.schedule

    def schedule(self: Any, *args: Any, **kwargs: Any) -> Any:
        limit = budget()
        given = self.max_num_scheduled_tokens
        if limit is not None:
            self.max_num_scheduled_tokens = min(limit, given)
        try:
            output = original(self, *args, **kwargs)
        finally:
            self.max_num_scheduled_tokens = given
        see(self, output)
        return output

    owner.schedule = schedule


def _owner(method: Any) -> Any:
    module = __import__(method.__module__, fromlist=["_"])
    return getattr(module, method.__qualname__.partition(".")[0])


def computed_before(output: Any) -> dict[str, int]:
    """Engine request id -> tokens computed before this step, for all requests of the step."""
    new = {request.req_id: request.num_computed_tokens
           for request in output.scheduled_new_reqs}
    cached = output.scheduled_cached_reqs
    return new | dict(zip(cached.req_ids, cached.num_computed_tokens, strict=True))
