"""From the user's flags to vLLM's configuration for the diagnosis, before any weight is read."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcachediag.engine import rendering
from vcachediag.engine.arguments import ServeArguments
from vcachediag.engine.prompts import PromptRenderer
from vcachediag.errors import (
    InconclusiveError,
    LoadError,
    RequestFileError,
    UsageError,
    VcachediagError,
)
from vcachediag.requests import Request
from vcachediag.trace.records import Override, RequestRecord


@dataclass(frozen=True, kw_only=True)
class Configured:
    """A configuration that is ready to start, and what was learned on the way."""

    #: vLLM's `VllmConfig`.
    config: Any
    arguments: ServeArguments
    requests: tuple[RequestRecord, ...]
    user_token_budget: int
    whole_token_budget: int
    overrides: tuple[Override, ...]


def configure(arguments: ServeArguments, requests: tuple[Request, ...],
              max_tokens: int) -> Configured:
    """Resolve the user's flags, render every request, and apply our overrides.

    Raises:
        LoadError: vLLM refuses the configuration.
        InconclusiveError: prefix caching is off for this model or platform.
        RequestFileError: vLLM refuses a request.
        UsageError: the flags ask for several engine processes.
    """
    engine_args = arguments.engine_args
    _refuse_several_processes(engine_args)
    overrides = list(_override(engine_args))
    config = _create(engine_args)
    if not config.cache_config.enable_prefix_caching:
        raise InconclusiveError(
            "prefix caching is off for this model on this platform",
            cause="vLLM switched it off when it resolved the configuration (VCD505)",
            hint="the log of vLLM says why; there is no cache to diagnose")
    records = _render(config, arguments, requests, max_tokens)
    user_budget = int(config.scheduler_config.max_num_batched_tokens)
    longest = max(len(record.prompt_token_ids) + record.max_tokens for record in records)
    whole = max(user_budget, min(longest, int(config.model_config.max_model_len)))
    if whole != user_budget:
        given = engine_args.max_num_batched_tokens
        engine_args.max_num_batched_tokens = whole
        overrides.append(Override(
            name="max_num_batched_tokens", given=str(given or f"default, {user_budget}"),
            used=str(whole), why="the longest prompt must prefill in one step in the reference; "
                                 f"the cached lane keeps to {user_budget}"))
        config = _create(engine_args)
    return Configured(config=config, arguments=arguments, requests=records,
                      user_token_budget=user_budget, whole_token_budget=whole,
                      overrides=tuple(overrides))


def _override(engine_args: Any) -> list[Override]:
    """Set what the diagnosis needs on `engine_args`; returns what differs from the user's flags."""
    wanted = (
        ("enforce_eager", True, "hooks see every step only in eager mode"),
        ("async_scheduling", False, "steps must end before they are read"),
        ("enable_prefix_caching", True, "prefix caching is what is diagnosed"),
        ("distributed_executor_backend", "uni", "the model runs in the process that we watch"),
    )
    overrides = []
    for name, used, why in wanted:
        given = getattr(engine_args, name)
        if given != used:
            overrides.append(Override(name=name, given="default" if given is None else str(given),
                                      used=str(used), why=why))
            setattr(engine_args, name, used)
    return overrides


def _refuse_several_processes(engine_args: Any) -> None:
    for name in ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"):
        if (getattr(engine_args, name, 1) or 1) > 1:
            flag = "--" + name.replace("_", "-")
            raise UsageError(f"{flag} above 1 is not supported yet",
                             hint=f"leave {flag} out: the diagnosis runs in one process")
    if getattr(engine_args, "speculative_config", None):
        raise UsageError("speculative decoding is not supported yet",
                         hint="leave --speculative-config out")


def _create(engine_args: Any) -> Any:
    try:
        config = engine_args.create_engine_config()
        # Some vLLM put the worker of a CPU into a process of its own, whatever the user says.
        config.parallel_config.distributed_executor_backend = (
            engine_args.distributed_executor_backend)
        return config
    except VcachediagError:
        raise
    except Exception as error:
        raise LoadError("vLLM cannot configure this model",
                        cause=" ".join(str(error).split())[:600],
                        hint="does `vllm serve` start with the same flags?") from error


def _render(config: Any, arguments: ServeArguments, requests: tuple[Request, ...],
            max_tokens: int) -> tuple[RequestRecord, ...]:
    renderer = rendering.from_config(config, arguments)
    try:
        prompts = PromptRenderer(config, renderer, arguments)
        records = tuple(prompts.record(request, prompts.render(request, max_tokens=max_tokens))
                        for request in requests)
    finally:
        renderer.close()
    for record in records:
        _check_length(record, int(config.model_config.max_model_len))
    return records


def _check_length(record: RequestRecord, limit: int) -> None:
    """Refuse a prompt that only its expanded images make too long: the renderer lets it pass."""
    length = len(record.prompt_token_ids)
    if length >= limit:
        path, _, line = record.source.rpartition(":")
        raise RequestFileError(
            Path(path), int(line), f"the prompt of request `{record.id}` is too long",
            cause=f"it has {length} tokens, its images included; the model takes {limit}, "
                  "and one must be left for the answer",
            hint="raise `--max-model-len`, or shorten the prompt or its images")
