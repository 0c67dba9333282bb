"""Watches one engine: puts the hooks in, and matches rows of logits to the runs they belong to."""

from collections.abc import Callable
from typing import Any

import torch

from vcachediag.engine import capabilities
from vcachediag.engine.hooks import blocks, encoder, forward, hashes, processor, schedule
from vcachediag.engine.hooks import logits as logits_hook
from vcachediag.engine.hooks.log import Log
from vcachediag.engine.hooks.logits import Row
from vcachediag.engine.hooks.rows import BatchRows
from vcachediag.errors import VllmMissingError
from vcachediag.trace.records import Event, HookName, LaneName

#: All hooks, by the names that the trace uses.
HOOKS: tuple[HookName, ...] = (
    schedule.HOOK, blocks.LOOKUP, blocks.HOOK, hashes.HOOK, encoder.HOOK, processor.HOOK,
    forward.HOOK, logits_hook.HOOK)


class Observer:
    """All hooks of this process.

    With `watch` False nothing is recorded, and of vLLM only the token budget of a step is patched:
    the same run without us, to compare with.
    """

    def __init__(self, write: Callable[[Event], None], *, watch: bool = True) -> None:
        self._log = Log(write)
        self._log.enabled = watch
        self.watch = watch
        self._schedule = schedule.ScheduleHook(self._log, self._on_step)
        self._encoder = encoder.EncoderHook(self._log)
        self._processor = processor.ProcessorHook(self._log)
        self._forward = forward.ForwardHook(self._log)
        self._batch: BatchRows | None = None
        #: Engine request id -> (run, stop token ids), for requests whose row this step samples.
        self._sampling: dict[str, tuple[str, tuple[int, ...]]] = {}
        self._rows: dict[str, list[Row]] = {}

    @property
    def last_scheduled(self) -> int:
        """Tokens scheduled in the last step, all runs together."""
        return self._schedule.last_scheduled

    def limit_steps(self, tokens: int | None) -> None:
        """Let a step compute at most `tokens`; None: the engine's own limit."""
        self._schedule.token_budget = tokens

    def record(self, enabled: bool) -> None:
        """Record what is seen from now on, or let it pass. Limits on steps hold either way."""
        self._log.enabled = self.watch = enabled

    def install(self) -> None:
        """Patch vLLM's classes; before the engine starts.

        What this vLLM lacks is written as not observed, hook by hook.
        """
        self._schedule.limit_budget()
        if not self.watch:
            return
        self._schedule.install()
        kv_blocks = blocks.BlocksHook(self._log)
        hooks: tuple[tuple[HookName, Callable[[], None]], ...] = (
            (blocks.LOOKUP, kv_blocks.install_lookup), (blocks.HOOK, kv_blocks.install),
            (hashes.HOOK, hashes.HashHook(self._log).install),
            (encoder.HOOK, self._encoder.install),
            (processor.HOOK, self._processor.install))
        for name, install in hooks:
            try:
                capabilities.require_hook(name)
                install()
            except VllmMissingError as error:
                self._log.not_observed(name, error.message)

    def attach(self, runner: Any, block_size: int) -> None:
        """Watch the loaded model; after the engine has started, so that no dummy pass is seen."""
        if not self.watch:
            return
        model = runner.get_model()
        self._batch = BatchRows(runner)
        try:
            capabilities.require_hook(forward.HOOK)
            self._forward.attach(model, self._batch, block_size)
        except VllmMissingError as error:
            self._log.not_observed(forward.HOOK, error.message)
        logits_hook.install(model, self._log.watched(logits_hook.HOOK, self._see_logits))

    def begin_render(self, run: str) -> None:
        """The prompt of `run` is rendered from now on."""
        self._processor.begin(run)

    def end_render(self) -> None:
        """The prompt is rendered."""
        self._processor.begin(None)

    def end_run(self, run: str) -> None:
        """Forget a run that has ended, and rows of it that no token was matched to."""
        self._forward.end_run(run)
        self._rows.pop(run, None)

    def end_lane(self, lane: LaneName) -> None:
        """Write how often each hook saw something."""
        if self._log.enabled:
            self._log.end_lane(lane, HOOKS)

    def take_rows(self, run: str) -> list[Row]:
        """The rows of `run` that no token was matched to yet, oldest first; they are forgotten."""
        return self._rows.pop(run, [])

    def write_logits(self, record: Event) -> None:
        """Record a row of logits whose token is known now."""
        self._log.write(logits_hook.HOOK, record)

    def _on_step(self, scheduler: Any, output: Any, before: dict[str, int]) -> None:
        # Each for itself: a hook that raises must not blind another.
        self._log.watched(encoder.HOOK, self._encoder.see_step)(scheduler, output)
        self._log.watched(forward.HOOK, self._forward.see_step)(output)
        self._sampling = {}
        for request_id, scheduled in output.num_scheduled_tokens.items():
            request = scheduler.requests[request_id]
            run = self._log.run_of(request)
            if run is not None and before[request_id] + scheduled >= request.num_tokens:
                self._sampling[request_id] = (run, _stop_ids(request.sampling_params))

    def _see_logits(self, logits: torch.Tensor) -> None:
        # Prompt logprobs come through the same method: only the first call of a step samples.
        sampling, self._sampling = self._sampling, {}
        if not sampling or self._batch is None:
            return
        order = self._batch.order()
        if len(order) != logits.shape[0]:
            raise ValueError(f"{logits.shape[0]} rows of logits for {len(order)} requests")
        for request_id, row in zip(order, logits, strict=True):
            if request_id in sampling:
                run, stop_ids = sampling[request_id]
                self._rows.setdefault(run, []).append(logits_hook.summarise(row, stop_ids))


def _stop_ids(params: Any) -> tuple[int, ...]:
    return tuple(sorted(params.all_stop_token_ids))
