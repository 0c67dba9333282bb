"""The names that a request may have: ours, and those of vLLM's chat and completion bodies.

Names of several vLLM versions stand side by side. A name that is in none of these tables is an
error in the file, most often a typing mistake.
"""

from typing import Final

from vcachediag.requests import kinds
from vcachediag.requests.kinds import Kind

#: Read by name in `build`, the prompt and what belongs to it.
OWN: Final = frozenset({
    "id", "custom_id", "prompt", "prompt_token_ids", "messages", "images", "image_as",
    "max_tokens", "max_completion_tokens", "cache_salt", "mm_uuids", "mm_processor_kwargs",
    "lora", "expect",
})

#: Around the body of an OpenAI batch line.
BATCH: Final = frozenset({"method", "url", "body"})

#: What vLLM makes its sampling parameters from.
SAMPLING: Final[dict[str, Kind]] = {
    "temperature": kinds.NOT_NEGATIVE,
    "top_p": kinds.SHARE,
    "top_k": kinds.INTEGER,
    "min_p": kinds.SHARE,
    "seed": kinds.INTEGER,
    "frequency_penalty": kinds.NUMBER,
    "presence_penalty": kinds.NUMBER,
    "repetition_penalty": kinds.POSITIVE,
    "logit_bias": kinds.OBJECT,
    "allowed_token_ids": kinds.TOKEN_IDS,
    "bad_words": kinds.TEXTS,
    "stop": kinds.TEXT_OR_TEXTS,
    "stop_token_ids": kinds.TOKEN_IDS,
    "ignore_eos": kinds.FLAG,
    "min_tokens": kinds.COUNT,
    "include_stop_str_in_output": kinds.FLAG,
    "skip_special_tokens": kinds.FLAG,
    "spaces_between_special_tokens": kinds.FLAG,
    "response_format": kinds.OBJECT,
    "structured_outputs": kinds.OBJECT,
    "guided_json": kinds.ANY,
    "guided_regex": kinds.TEXT,
    "guided_choice": kinds.TEXTS,
    "guided_grammar": kinds.TEXT,
    "guided_decoding_backend": kinds.TEXT,
    "guided_whitespace_pattern": kinds.TEXT,
    "structural_tag": kinds.TEXT,
    "thinking_token_budget": kinds.INTEGER,
    "repetition_detection": kinds.OBJECT,
    "watermarking": kinds.FLAG,
    "trace_decode_token_ids": kinds.TOKEN_IDS,
    "vllm_xargs": kinds.OBJECT,
    "extra_args": kinds.OBJECT,
    # These do more than report: a request for prompt logprobs does not read the prefix cache.
    "echo": kinds.FLAG,
    "logprobs": kinds.ANY,
    "top_logprobs": kinds.INTEGER,
    "logprob_token_ids": kinds.TOKEN_IDS,
    "prompt_logprobs": kinds.INTEGER,
    "prompt_logprob_start": kinds.INTEGER,
    "prompt_logprob_token_ids": kinds.LIST,
    "skip_reading_prefix_cache": kinds.FLAG,
}

#: How text becomes a prompt, whichever way it is given.
PROMPT_OPTIONS: Final[dict[str, Kind]] = {
    "add_special_tokens": kinds.FLAG,
    "truncate_prompt_tokens": kinds.INTEGER,
    "truncation_side": kinds.TEXT,
    "media_io_kwargs": kinds.OBJECT,
}

#: How messages become a prompt; without effect when the prompt is given as it is.
CHAT_OPTIONS: Final[dict[str, Kind]] = {
    **PROMPT_OPTIONS,
    "add_generation_prompt": kinds.FLAG,
    "continue_final_message": kinds.FLAG,
    "chat_template": kinds.TEXT,
    "chat_template_kwargs": kinds.OBJECT,
    "documents": kinds.LIST,
    "tools": kinds.LIST,
    "tool_choice": kinds.ANY,
    "reasoning_effort": kinds.TEXT,
    "include_reasoning": kinds.FLAG,
}

#: Fields that would change the answer in a way that is not replayed, with the value that does
#: nothing, and why.
REFUSED: Final[dict[str, tuple[object, str]]] = {
    "n": (1, "one answer per request is compared"),
    "best_of": (1, "one answer per request is compared"),
    "use_beam_search": (False, "one answer per request is compared"),
    "prompt_embeds": (None, "blocks are told apart by tokens; give `prompt` or `messages`"),
    "suffix": ("", "write the whole text into `prompt`, as the model expects it"),
}

#: Accepted so that a logged body can be used as it is: transport, accounting, and the form of
#: the answer.
WITHOUT_EFFECT: Final = frozenset({
    # vLLM
    "model", "user", "request_id", "session_id", "priority", "stream", "stream_options",
    "stream_interval", "parallel_tool_calls", "length_penalty", "early_stopping",
    "return_tokens_as_token_ids", "return_token_ids", "return_token_offsets",
    "return_prompt_text", "return_mm_kwargs", "mm_payload", "routed_experts_prompt_start",
    "kv_transfer_params", "ec_transfer_params", "logits_processors", "detokenize",
    "flat_logprobs", "output_kind", "skip_clone", "output_text_buffer_length",
    # OpenAI's API, ignored by vLLM too
    "store", "metadata", "service_tier", "modalities", "audio", "prediction", "verbosity",
    "web_search_options", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
    "functions", "function_call",
})

#: Every name that a request may have.
KNOWN: Final = OWN | SAMPLING.keys() | CHAT_OPTIONS.keys() | REFUSED.keys() | WITHOUT_EFFECT
