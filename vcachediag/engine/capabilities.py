"""What we touch in vLLM, in one table, and what of it this vLLM has.

Nothing here compares version numbers: a name is there, or it is not. Where a name moved, its
places are tried in order. The README says which versions were run.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from vcachediag.errors import VllmMissingError


@dataclass(frozen=True, kw_only=True)
class Capability:
    """One thing of vLLM's that we use."""

    name: str
    #: `module:attribute.attribute`, newest place first.
    places: tuple[str, ...]
    #: What stops working without it.
    used_for: str
    #: Parameters of the function, or of the class's constructor, that we give or read by name.
    takes: tuple[str, ...] = ()
    #: Attributes of its instances that we read; `new|old` where one of several will do.
    holds: tuple[str, ...] = ()
    #: Without it something is done in another way, or is not observed and the report says so.
    optional: bool = False


CAPABILITIES = (
    Capability(name="AsyncEngineArgs", places=("vllm.engine.arg_utils:AsyncEngineArgs",),
               used_for="the flags of `vllm serve`"),
    Capability(name="make_arg_parser",
               places=("vllm.entrypoints.launchers.cli_args:make_arg_parser",
                       "vllm.entrypoints.openai.cli_args:make_arg_parser"),
               used_for="the flags of `vllm serve`"),
    Capability(name="FrontendArgs",
               places=("vllm.entrypoints.launchers.cli_args:FrontendArgs",
                       "vllm.entrypoints.openai.cli_args:FrontendArgs"),
               used_for="telling which flags only concern the server"),
    Capability(name="FlexibleArgumentParser",
               places=("vllm.utils.argparse_utils:FlexibleArgumentParser",
                       "vllm.utils:FlexibleArgumentParser"),
               used_for="the flags of `vllm serve`"),
    Capability(name="ChatCompletionRequest",
               places=("vllm.entrypoints.openai.chat_completion.protocol:ChatCompletionRequest",
                       "vllm.entrypoints.openai.protocol:ChatCompletionRequest"),
               used_for="chat requests as the server reads them"),
    Capability(name="CompletionRequest",
               places=("vllm.entrypoints.openai.completion.protocol:CompletionRequest",
                       "vllm.entrypoints.openai.protocol:CompletionRequest"),
               used_for="completion requests as the server reads them"),
    # The first renderers, in `vllm.renderers.protocol`, left images to the engine: not enough.
    Capability(name="BaseRenderer.render_chat",
               places=("vllm.renderers.base:BaseRenderer.render_chat",),
               used_for="prompts as the server renders them", optional=True),
    Capability(name="renderer_from_config", places=("vllm.renderers:renderer_from_config",),
               used_for="prompts as the server renders them", optional=True),
    # The next five stand in for a renderer where there is none.
    Capability(name="parse_chat_messages",
               places=("vllm.entrypoints.chat_utils:parse_chat_messages",),
               used_for="prompts as the server renders them", optional=True),
    Capability(name="resolve_chat_template_content_format",
               places=("vllm.renderers.hf:resolve_chat_template_content_format",
                       "vllm.entrypoints.chat_utils:resolve_chat_template_content_format"),
               used_for="prompts as the server renders them", optional=True),
    Capability(name="apply_hf_chat_template",
               places=("vllm.renderers.hf:safe_apply_chat_template",
                       "vllm.entrypoints.chat_utils:apply_hf_chat_template"),
               used_for="prompts as the server renders them", optional=True),
    Capability(name="InputPreprocessor", places=("vllm.inputs.preprocess:InputPreprocessor",),
               used_for="prompts as the server renders them", optional=True),
    Capability(name="tokenizer_from_config",
               places=("vllm.tokenizers:cached_tokenizer_from_config",
                       "vllm.tokenizers:init_tokenizer_from_config",
                       "vllm.transformers_utils.tokenizer:init_tokenizer_from_configs",
                       "vllm.transformers_utils.tokenizer_group:init_tokenizer_from_configs"),
               used_for="prompts as the server renders them", optional=True),
    Capability(name="load_chat_template",
               places=("vllm.renderers.chat_utils:load_chat_template",
                       "vllm.entrypoints.chat_utils:load_chat_template"),
               used_for="--chat-template"),
    Capability(name="MediaConnector",
               places=("vllm.multimodal.media:MediaConnector",
                       "vllm.multimodal.utils:MediaConnector"),
               used_for="images as the server loads them"),
    Capability(name="LLMEngine", places=("vllm.v1.engine.llm_engine:LLMEngine",),
               used_for="running requests"),
    Capability(name="LLMEngine.reset_encoder_cache",
               places=("vllm.v1.engine.llm_engine:LLMEngine.reset_encoder_cache",),
               used_for="a reference without the encoder cache", optional=True),
    Capability(name="EncoderCacheManager.check_and_update_cache",
               places=("vllm.v1.core.encoder_cache_manager:"
                       "EncoderCacheManager.check_and_update_cache",),
               used_for="telling whether requests share the encoder cache", optional=True),
    Capability(name="LLMEngine.reset_mm_cache",
               places=("vllm.v1.engine.llm_engine:LLMEngine.reset_mm_cache",),
               used_for="a reference without the processor cache"),
    Capability(name="LLMEngine.reset_prefix_cache",
               places=("vllm.v1.engine.llm_engine:LLMEngine.reset_prefix_cache",),
               used_for="a reference without the prefix cache"),
    Capability(name="Scheduler.schedule",
               places=("vllm.v1.core.sched.scheduler:Scheduler.schedule",),
               used_for="scheduled tokens per step, and the token budget of a lane"),
    Capability(name="SamplingParams.skip_reading_prefix_cache",
               places=("vllm.sampling_params:SamplingParams.skip_reading_prefix_cache",),
               used_for="a reference that does not read the prefix cache", optional=True),
    Capability(name="VLLM_USE_V1", places=("vllm.envs:VLLM_USE_V1",),
               used_for="choosing the V1 engine where there still is another", optional=True),
    Capability(name="RequestOutputKind", places=("vllm.sampling_params:RequestOutputKind",),
               used_for="tokens step by step"),
    Capability(name="LoRARequest", places=("vllm.lora.request:LoRARequest",),
               used_for="requests with an adapter"),
    Capability(name="ModelRegistry", places=("vllm:ModelRegistry",),
               used_for="knowing which model class is the plugin's"),
)
_BY_NAME = {capability.name: capability for capability in CAPABILITIES}


def find(name: str) -> Any:
    """The object of vLLM's behind `name` in the table.

    Raises:
        KeyError: `name` is not in the table.
        VllmMissingError: this vLLM has it in none of the known places, or there is no vLLM.
    """
    capability = _BY_NAME[name]
    failure: Exception | None = None
    for place in capability.places:
        module_name, _, path = place.partition(":")
        try:
            found = import_module(module_name)
            for attribute in path.split("."):
                found = getattr(found, attribute)
        except (ImportError, AttributeError) as error:
            failure = error
        else:
            return found
    raise VllmMissingError(
        f"this vLLM ({version()}) lacks `{name}`, needed for {capability.used_for}",
        cause=str(failure),
        hint="the README lists the supported versions",
    )


def has(name: str) -> bool:
    """Whether this vLLM has what stands behind `name` in the table."""
    try:
        find(name)
    except VllmMissingError:
        return False
    return True


def accepted(function: Callable[..., Any], **arguments: Any) -> dict[str, Any]:
    """Those of `arguments` that `function` has a parameter for."""
    parameters = inspect.signature(function).parameters
    return {name: value for name, value in arguments.items() if name in parameters}


def version() -> str:
    """vLLM's version, or `not installed`."""
    try:
        return str(import_module("vllm").__version__)
    except ImportError:
        return "not installed"


def require_all() -> None:
    """Check at once everything in the table that we cannot do without.

    Raises:
        VllmMissingError: vLLM is missing, or too old or too new for us; names the first gap.
    """
    try:
        import_module("vllm")
    except ImportError as error:
        raise VllmMissingError(
            "vLLM cannot be imported in this environment", cause=str(error),
            hint="install vcachediag into the environment that serves your model",
        ) from error
    for capability in CAPABILITIES:
        if not capability.optional:
            find(capability.name)
