"""One running engine: start it, empty its caches, run one request, stop it.

`Session` is what lanes need of an engine. `InProcessSession` drives vLLM's `LLMEngine` with
everything in this process; another way of driving vLLM is another class with these methods.
"""

import gc
import time
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from vcachediag.engine import caches as engine_caches
from vcachediag.engine import capabilities, rendering
from vcachediag.engine.configuration import Configured
from vcachediag.engine.jobs import Cache
from vcachediag.engine.observer import Observer
from vcachediag.engine.prompts import PromptRenderer, RenderedPrompt
from vcachediag.requests import Control, Request
from vcachediag.trace.records import (
    Event,
    FinishedRecord,
    FinishReason,
    LaneName,
    NotObservedRecord,
)

#: A run that gets no token for so many steps in a row will never get one.
STALLED_STEPS = 50


class Session(Protocol):
    """A running engine, as lanes see it."""

    def empty(self, caches: tuple[Cache, ...]) -> None:
        """Empty the named caches; no request may be under way."""

    def limit_steps(self, tokens: int | None) -> None:
        """Let a step compute at most `tokens`; None: as many as the engine can."""

    def run(self, request: Request, run: str, *, reads_prefix_cache: bool,
            appended: tuple[int, ...] = (), max_tokens: int | None = None) -> FinishedRecord:
        """Send one request alone and wait for its end; its records are written on the way."""

    def end_lane(self, lane: LaneName) -> None:
        """A lane is over: write what each hook saw in it."""

    def control(self, control: Control) -> str:
        """Do what a control line says; returns the outcome in words."""

    def close(self) -> None:
        """Stop the engine."""


class InProcessSession:
    """`LLMEngine` with scheduler, worker and model in this process."""

    def __init__(self, configured: Configured, observer: Observer,
                 write: Callable[[Event], None], default_max_tokens: int) -> None:
        self._write = write
        self._observer = observer
        self._default_max_tokens = default_max_tokens
        self._texts: dict[int, str] = {}
        started = time.monotonic()
        self._engine = capabilities.find("LLMEngine").from_vllm_config(
            configured.config, disable_log_stats=True)
        self.seconds_to_start = time.monotonic() - started
        self.runner = _model_runner(self._engine)
        observer.attach(self.runner, int(configured.config.cache_config.block_size))
        self.prompts = PromptRenderer(
            configured.config, rendering.from_engine(configured.config, self._engine,
                                                     configured.arguments), configured.arguments)

    @property
    def model(self) -> Any:
        """The loaded model, an `nn.Module`."""
        return self.runner.get_model()

    @property
    def num_blocks(self) -> int:
        """KV cache blocks, the null block included."""
        return int(self._core.scheduler.kv_cache_manager.block_pool.num_gpu_blocks)

    @property
    def eos_token_id(self) -> int | None:
        """The tokenizer's own end-of-answer token."""
        return getattr(self.prompts.tokenizer, "eos_token_id", None)

    @property
    def _core(self) -> Any:
        return self._engine.engine_core.engine_core

    def empty(self, caches: tuple[Cache, ...]) -> None:
        """Empty the named caches."""
        if "processor" in caches:
            self._engine.reset_mm_cache()
        if "encoder" in caches and not engine_caches.empty_encoder(self._engine, self.runner):
            self._write(NotObservedRecord(
                what="a run with an empty encoder cache",
                why="this vLLM shares it between requests and has no way to empty it"))
        if "prefix" in caches and not engine_caches.empty_prefix(self._engine):
            self._write(NotObservedRecord(
                what="a run with an empty prefix cache",
                why="vLLM did not empty the prefix cache: blocks are still in use"))

    def limit_steps(self, tokens: int | None) -> None:
        """Let a step compute at most `tokens`."""
        self._observer.limit_steps(tokens)

    def run(self, request: Request, run: str, *, reads_prefix_cache: bool,
            appended: tuple[int, ...] = (), max_tokens: int | None = None) -> FinishedRecord:
        """Send one request alone and wait for its end."""
        started = time.monotonic()
        self._observer.begin_render(run)
        prompt = self.prompts.render(request, max_tokens=self._default_max_tokens, run=run,
                                     reads_prefix_cache=reads_prefix_cache)
        self._observer.end_render()
        if appended:
            prompt.engine_input["prompt_token_ids"] = [*prompt.token_ids, *appended]
        if max_tokens is not None:
            prompt.params.max_tokens = max_tokens
            prompt.params.min_tokens = 0
        finished = self._generate(run, prompt, first_index=len(appended))
        finished = _with_seconds(finished, time.monotonic() - started)
        self._observer.end_run(run)
        self._write(finished)
        return finished

    def end_lane(self, lane: LaneName) -> None:
        """Write what each hook saw in `lane`."""
        self._observer.end_lane(lane)

    def _generate(self, run: str, prompt: RenderedPrompt, first_index: int) -> FinishedRecord:
        # Earlier vLLM takes the name that we give and returns nothing.
        request_id = self._engine.add_request(
            run, prompt.engine_input, prompt.params, lora_request=prompt.lora_request) or run
        tokens: list[int] = []
        text, cached, idle = "", 0, 0
        reason: FinishReason = "abort"
        while self._engine.has_unfinished_requests():
            for output in self._engine.step():
                completion = output.outputs[0]
                self._match(run, first_index + len(tokens), completion.token_ids)
                tokens += completion.token_ids
                text += completion.text
                cached = max(cached, output.num_cached_tokens or 0)
                reason = completion.finish_reason or reason
            idle = 0 if self._observer.last_scheduled else idle + 1
            if idle >= STALLED_STEPS:
                self._engine.abort_request([request_id], **capabilities.accepted(
                    self._engine.abort_request, internal=True))
                return FinishedRecord(
                    run=run, token_ids=tuple(tokens), text=text, reason="error",
                    num_cached_tokens=cached,
                    error=f"no token was scheduled for {STALLED_STEPS} steps")
        return FinishedRecord(run=run, token_ids=tuple(tokens), text=text, reason=reason,
                              num_cached_tokens=cached)

    def _match(self, run: str, index: int, token_ids: Any) -> None:
        if not self._observer.watch:
            return
        rows = self._observer.take_rows(run)
        if len(rows) != len(token_ids):
            self._write(NotObservedRecord(
                what="logits", run=run,
                why=f"{len(rows)} rows seen for {len(token_ids)} tokens at output token {index}"))
            return
        for offset, (row, token) in enumerate(zip(rows, token_ids, strict=True)):
            self._observer.write_logits(row.record(
                run=run, index=index + offset, chosen=token, decode=self.token_text))

    def token_text(self, token: int) -> str:
        """A single token, as text."""
        if token not in self._texts:
            self._texts[token] = self.prompts.tokenizer.decode([token],
                                                              skip_special_tokens=False)
        return self._texts[token]

    def control(self, control: Control) -> str:
        """Do what a control line says."""
        target = getattr(self._engine, control.name, None)
        if target is None:
            return f"not done: this vLLM has no {control.name}"
        try:
            result = target(**control.arguments)
        except Exception as error:  # noqa: BLE001  # the user's own RPC may raise anything
            return f"raised {type(error).__name__}: {error}"
        return "done" if result is None else str(result)[:200]

    def close(self) -> None:
        """Stop the engine and free its memory."""
        self._engine.engine_core.shutdown()
        del self._engine
        gc.collect()


def _model_runner(engine: Any) -> Any:
    worker = engine.engine_core.engine_core.model_executor.driver_worker
    return getattr(worker, "worker", worker).model_runner


def _with_seconds(record: FinishedRecord, seconds: float) -> FinishedRecord:
    return msgspec.structs.replace(record, seconds=round(seconds, 3))
