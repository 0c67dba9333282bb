"""What we touch in vLLM, in one table, and what of it this vLLM has.

Nothing here compares version numbers: a name is there, or it is not. Where a name moved, its
places are tried in order. The README says which versions were run.
"""

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
    #: Without it something is not observed, and the report says what; the rest works.
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
               places=("vllm.entrypoints.openai.chat_completion.protocol:ChatCompletionRequest",),
               used_for="chat requests as the server reads them"),
    Capability(name="CompletionRequest",
               places=("vllm.entrypoints.openai.completion.protocol:CompletionRequest",),
               used_for="completion requests as the server reads them"),
    Capability(name="renderer_from_config", places=("vllm.renderers:renderer_from_config",),
               used_for="prompts as the server renders them"),
    Capability(name="load_chat_template",
               places=("vllm.renderers.chat_utils:load_chat_template",
                       "vllm.entrypoints.chat_utils:load_chat_template"),
               used_for="--chat-template"),
    Capability(name="MediaConnector", places=("vllm.multimodal.media:MediaConnector",),
               used_for="images as the server loads them"),
    Capability(name="LLMEngine", places=("vllm.v1.engine.llm_engine:LLMEngine",),
               used_for="running requests"),
    Capability(name="LLMEngine.reset_encoder_cache",
               places=("vllm.v1.engine.llm_engine:LLMEngine.reset_encoder_cache",),
               used_for="a reference without the encoder cache"),
    Capability(name="LLMEngine.reset_mm_cache",
               places=("vllm.v1.engine.llm_engine:LLMEngine.reset_mm_cache",),
               used_for="a reference without the processor cache"),
    Capability(name="LLMEngine.reset_prefix_cache",
               places=("vllm.v1.engine.llm_engine:LLMEngine.reset_prefix_cache",),
               used_for="a reference without the prefix cache"),
    Capability(name="Scheduler.schedule",
               places=("vllm.v1.core.sched.scheduler:Scheduler.schedule",),
               used_for="scheduled tokens per step, and the token budget of a lane"),
    Capability(name="Scheduler", places=("vllm.v1.core.sched.scheduler:Scheduler",),
               holds=("requests", "kv_cache_manager", "max_num_scheduled_tokens"),
               used_for="the requests of a step"),
    Capability(name="SchedulerOutput", places=("vllm.v1.core.sched.output:SchedulerOutput",),
               holds=("scheduled_new_reqs", "scheduled_cached_reqs", "num_scheduled_tokens",
                      "total_num_scheduled_tokens", "scheduled_encoder_inputs",
                      "finished_req_ids", "free_encoder_mm_hashes|free_encoder_input_ids"),
               used_for="scheduled tokens per step"),
    Capability(name="SchedulerOutput.preempted_req_ids",
               places=("vllm.v1.core.sched.output:SchedulerOutput",),
               holds=("preempted_req_ids",), optional=True, used_for="preemptions"),
    Capability(name="NewRequestData", places=("vllm.v1.core.sched.output:NewRequestData",),
               holds=("req_id", "num_computed_tokens"), used_for="scheduled tokens per step"),
    Capability(name="CachedRequestData", places=("vllm.v1.core.sched.output:CachedRequestData",),
               holds=("req_ids", "num_computed_tokens"), used_for="scheduled tokens per step"),
    Capability(name="Request", places=("vllm.v1.request:Request",),
               holds=("request_id", "sampling_params", "num_tokens", "num_computed_tokens",
                      "mm_features|mm_positions"),
               used_for="telling runs apart"),
    Capability(name="Request.mm_hashes", places=("vllm.v1.request:Request",),
               holds=("mm_features|mm_hashes", "cache_salt"),
               used_for="media identifiers"),
    Capability(name="KVCacheManager.get_computed_blocks",
               places=("vllm.v1.core.kv_cache_manager:KVCacheManager.get_computed_blocks",),
               takes=("request",), used_for="prefix-cache lookups"),
    Capability(name="KVCacheManager", places=("vllm.v1.core.kv_cache_manager:KVCacheManager",),
               holds=("enable_caching", "get_block_ids", "block_pool"),
               used_for="block tables"),
    Capability(name="KVCacheBlocks", places=("vllm.v1.core.kv_cache_manager:KVCacheBlocks",),
               holds=("blocks",), used_for="hit blocks"),
    Capability(name="KVCacheManager.allocate_slots",
               places=("vllm.v1.core.kv_cache_manager:KVCacheManager.allocate_slots",),
               takes=("request",), used_for="whose blocks are allocated"),
    Capability(name="KVCacheManager.free",
               places=("vllm.v1.core.kv_cache_manager:KVCacheManager.free",),
               takes=("request",), used_for="whose blocks are freed"),
    Capability(name="block hashes of a request",
               places=("vllm.v1.request:Request",
                       "vllm.v1.core.kv_cache_manager:KVCacheManager"),
               holds=("block_hashes|req_to_block_hashes",), used_for="block hashes in a lookup"),
    Capability(name="BlockPool", places=("vllm.v1.core.block_pool:BlockPool",),
               holds=("num_gpu_blocks",), used_for="the number of blocks"),
    Capability(name="BlockPool.get_new_blocks",
               places=("vllm.v1.core.block_pool:BlockPool.get_new_blocks",),
               used_for="allocated blocks"),
    Capability(name="BlockPool.touch", places=("vllm.v1.core.block_pool:BlockPool.touch",),
               used_for="reused blocks"),
    Capability(name="BlockPool.free_blocks",
               places=("vllm.v1.core.block_pool:BlockPool.free_blocks",),
               takes=("ordered_blocks",), used_for="freed blocks"),
    Capability(name="BlockPool._maybe_evict_cached_block",
               places=("vllm.v1.core.block_pool:BlockPool._maybe_evict_cached_block",),
               takes=("block",), used_for="evicted blocks"),
    Capability(name="BlockPool.reset_prefix_cache",
               places=("vllm.v1.core.block_pool:BlockPool.reset_prefix_cache",),
               used_for="resets of the prefix cache"),
    Capability(name="BlockPool.cache_full_blocks",
               places=("vllm.v1.core.block_pool:BlockPool.cache_full_blocks",),
               takes=("request", "blocks", "num_cached_blocks", "num_full_blocks",
                      "kv_cache_group_id"),
               used_for="registered blocks"),
    Capability(name="KVCacheBlock", places=("vllm.v1.core.kv_cache_utils:KVCacheBlock",),
               holds=("block_id", "ref_cnt", "is_null", "block_hash"),
               used_for="blocks and their hashes"),
    Capability(name="KVCacheBlock.pool", places=("vllm.v1.core.kv_cache_utils:KVCacheBlock",),
               holds=("pool",), optional=True, used_for="freed blocks of several pools"),
    Capability(name="hash_block_tokens",
               places=("vllm.v1.core.kv_cache_utils:hash_block_tokens",),
               used_for="the inputs of block hashes"),
    Capability(name="block_pool.hash_block_tokens",
               places=("vllm.v1.core.block_pool:hash_block_tokens",), optional=True,
               used_for="block hashes where the block pool makes them itself"),
    Capability(name="generate_block_hash_extra_keys",
               places=("vllm.v1.core.kv_cache_utils:generate_block_hash_extra_keys",),
               takes=("request",), used_for="telling extra keys apart"),
    Capability(name="block_pool.generate_block_hash_extra_keys",
               places=("vllm.v1.core.block_pool:generate_block_hash_extra_keys",), optional=True,
               used_for="extra keys where the block pool makes hashes itself"),
    Capability(name="EncoderCacheManager.check_and_update_cache",
               places=("vllm.v1.core.encoder_cache_manager:"
                       "EncoderCacheManager.check_and_update_cache",
                       "vllm.v1.core.encoder_cache_manager:EncoderCacheManager.has_cache"),
               takes=("request", "input_id"), used_for="encoder-cache lookups"),
    Capability(name="EncoderCacheManager.reset",
               places=("vllm.v1.core.encoder_cache_manager:EncoderCacheManager.reset",),
               optional=True, used_for="resets of the encoder cache"),
    Capability(name="EncoderCacheManager",
               places=("vllm.v1.core.encoder_cache_manager:EncoderCacheManager",),
               holds=("cached",), used_for="resets of the encoder cache"),
    Capability(name="PlaceholderRange", places=("vllm.multimodal.inputs:PlaceholderRange",),
               holds=("offset", "length"), used_for="image spans"),
    Capability(name="MultiModalFeatureSpec",
               places=("vllm.multimodal.inputs:MultiModalFeatureSpec",), optional=True,
               holds=("identifier", "mm_position"), used_for="media identifiers"),
    Capability(name="BaseMultiModalProcessorCache.is_cached",
               places=("vllm.multimodal.cache.base:BaseMultiModalProcessorCache.is_cached",
                       "vllm.multimodal.cache:BaseMultiModalProcessorCache.is_cached"),
               optional=True, used_for="hits of the processor cache"),
    Capability(name="get_forward_context",
               places=("vllm.forward_context:get_forward_context",),
               used_for="the attention metadata of a step"),
    Capability(name="ForwardContext", places=("vllm.forward_context:ForwardContext",),
               holds=("attn_metadata", "no_compile_layers"),
               used_for="the attention metadata of a step"),
    Capability(name="SamplingParams.skip_reading_prefix_cache",
               places=("vllm.sampling_params:SamplingParams.skip_reading_prefix_cache",),
               used_for="a reference that does not read the prefix cache"),
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


def locate(name: str) -> tuple[Any, str]:
    """Where `name` is kept, to patch it: its class or module, and the attribute there.

    Raises:
        KeyError, VllmMissingError: as `find`.
    """
    found = find(name)
    for place in _BY_NAME[name].places:
        module_name, _, path = place.partition(":")
        parent, _, attribute = path.rpartition(".")
        try:
            owner = import_module(module_name)
            for part in filter(None, parent.split(".")):
                owner = getattr(owner, part)
        except (ImportError, AttributeError):
            continue
        if getattr(owner, attribute, None) is found:
            return owner, attribute
    raise KeyError(name)  # `find` has just found it


def version() -> str:
    """vLLM's version, or `not installed`."""
    try:
        return str(import_module("vllm").__version__)
    except ImportError:
        return "not installed"


def require_all() -> None:
    """Check the whole table at once.

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
