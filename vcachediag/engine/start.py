"""Brings an engine up for a job: plugin, flags, configuration, weights, checks, in this order."""

import inspect
import os
import platform
from collections.abc import Callable
from typing import Any

from vcachediag.engine import arguments, capabilities, plugin, recorder
from vcachediag.engine.configuration import Configured, configure
from vcachediag.engine.jobs import Job
from vcachediag.engine.lanes import LaneRunner
from vcachediag.engine.observer import Observer
from vcachediag.engine.session import InProcessSession
from vcachediag.errors import EngineFailedError, LoadError, VcachediagError
from vcachediag.trace.records import EngineRecord
from vcachediag.trace.writer import EventWriter


def start(job: Job, writer: EventWriter,
          on_stage: Callable[[str], None]) -> tuple[LaneRunner, Callable[[], None]]:
    """An engine for `job` that is ready to run lanes, and the function that stops it.

    Raises:
        VcachediagError: see `errors`; everything that fails here has its own exit code.
    """
    if capabilities.has("VLLM_USE_V1"):
        # Where there still is another engine, it has no prefix cache of this kind.
        os.environ["VLLM_USE_V1"] = "1"
    capabilities.require_all()
    observer = Observer(writer.event, watch=job.watch)
    recorder.arm(observer.install)
    on_stage("loading the plugin")
    plugin.export(job.plugins)
    plugins = [plugin.load(spec) for spec in job.plugins]
    on_stage("reading the model's configuration")
    configured = configure(arguments.parse(job.engine_arguments), job.requests.requests,
                           job.max_tokens)
    for record in configured.requests:
        writer.request(record)
    on_stage("starting the engine")
    recorder.ensure()
    session = _start_session(configured, observer, writer, job.max_tokens)
    _check_model_class(session.model, plugins)
    writer.event(_engine_record(configured, session))
    runner = LaneRunner(session, job.requests, writer.event,
                        user_token_budget=configured.user_token_budget,
                        whole_token_budget=configured.whole_token_budget)
    return runner, session.close


def _start_session(configured: Configured, observer: Observer, writer: EventWriter,
                   max_tokens: int) -> InProcessSession:
    try:
        return InProcessSession(configured, observer, writer.event, max_tokens)
    except VcachediagError:
        raise
    except Exception as error:
        raise _start_failure(error) from error


def _start_failure(error: Exception) -> VcachediagError:
    """A fault in the model's own code is a load error; the rest is the engine's."""
    cause = f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
    frames = inspect.getinnerframes(error.__traceback__) if error.__traceback__ else []
    if any(frame.function in ("load_model", "initialize_model", "load_weights")
           for frame in frames):
        where = frames[-1]
        return LoadError("the model did not load", cause=f"{cause} ({where.filename}:"
                         f"{where.lineno})", hint="the traceback is at the end of engine.log")
    return EngineFailedError("the engine did not start", cause=cause)


def _check_model_class(model: Any, plugins: list[plugin.LoadedPlugin]) -> None:
    own = {reference: loaded.spec for loaded in plugins for reference in loaded.classes.values()}
    actual = plugin.class_reference(type(model))
    if own and actual not in own:
        raise LoadError(
            "the model that vLLM loaded is not the plugin's",
            cause=f"vLLM loaded {actual}; the plugin registers {', '.join(sorted(own))}",
            hint="`architectures` in config.json must name what the plugin registers")


def _engine_record(configured: Configured, session: InProcessSession) -> EngineRecord:
    import torch

    config = configured.config
    model_class = type(session.model)
    runner = type(session.runner)
    generation = "V2" if getattr(config, "use_v2_model_runner", False) else "V1"
    return EngineRecord(
        vllm=capabilities.version(), torch=str(torch.__version__), python=platform.python_version(),
        platform=str(config.device_config.device_type),
        runner=f"{generation} {runner.__module__}.{runner.__name__}",
        model_class=f"{model_class.__module__}.{model_class.__qualname__}",
        model_file=inspect.getsourcefile(model_class) or "",
        model=configured.arguments.model,
        dtype=str(config.model_config.dtype).removeprefix("torch."),
        num_layers=_num_layers(config.model_config),
        block_size=int(config.cache_config.block_size), num_blocks=session.num_blocks,
        max_model_len=int(config.model_config.max_model_len),
        user_token_budget=configured.user_token_budget,
        whole_token_budget=configured.whole_token_budget,
        stop_tokens=_stop_tokens(config, session), overrides=configured.overrides,
        unused_flags=configured.arguments.unused_flags,
        seconds_to_start=round(session.seconds_to_start, 3))


def _num_layers(model_config: Any) -> int:
    """Layers of the language model."""
    if hasattr(model_config, "get_total_num_hidden_layers"):
        return int(model_config.get_total_num_hidden_layers())
    return int(model_config.hf_text_config.num_hidden_layers)


def _stop_tokens(config: Any, session: InProcessSession) -> tuple[tuple[int, str], ...]:
    """End-of-answer tokens of the tokenizer and of the generation config."""
    extra = config.model_config.try_get_generation_config().get("eos_token_id")
    ids = [session.eos_token_id, *(extra if isinstance(extra, list) else [extra])]
    known = sorted({token for token in ids if token is not None})
    return tuple((token, session.token_text(token)) for token in known)
