"""Who stands where in a batch: both model runners lay requests out one after another."""

from typing import Any

from vcachediag.engine.hooks.patch import wrap


class BatchRows:
    """The order of the requests in the batch that a model runner is computing."""

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        self._prepared: list[str] | None = None
        if hasattr(runner, "prepare_inputs"):
            # Runner V2 makes a batch anew in each step, and keeps it to itself.
            wrap(runner, "prepare_inputs", after=self._see_batch)

    def _see_batch(self, batch: Any, *_args: Any, **_kwargs: Any) -> None:
        self._prepared = list(batch.req_ids)[:batch.num_reqs]

    def order(self) -> list[str]:
        """vLLM's request ids, in the order of their rows."""
        if self._prepared is not None:
            return self._prepared
        # Runner V1 keeps one batch, and its list may hold empty places behind the requests.
        return [request_id for request_id in self._runner.input_batch.req_ids
                if request_id is not None]

    def spans(self, scheduled: dict[str, int]) -> list[tuple[str, int, int]]:
        """(request id, first row, row after the last) of each request's tokens in the batch.

        Raises:
            KeyError: the batch holds a request that was not scheduled.
        """
        spans, start = [], 0
        for request_id in self.order():
            end = start + scheduled[request_id]
            spans.append((request_id, start, end))
            start = end
        return spans
