"""Rendering where vLLM has no renderer yet: what its server did then, step by step.

The messages are parsed and put through the chat template, the text becomes token ids, and the
engine's own input preprocessor runs the model's processor on them.
"""

from typing import Any

from vcachediag.engine import capabilities
from vcachediag.engine.arguments import ServeArguments


class PreprocessorRendering:
    """Renders with vLLM's chat functions and its `InputPreprocessor`."""

    def __init__(self, config: Any, preprocessor: Any, arguments: ServeArguments) -> None:
        self._config = config.model_config
        self._preprocess = preprocessor.preprocess
        self._arguments = arguments
        self._tokenizer = _of_transformers(preprocessor.tokenizer)

    @classmethod
    def from_config(cls, config: Any, arguments: ServeArguments) -> "PreprocessorRendering":
        """With a preprocessor of its own, without a processor cache."""
        model_config = config.model_config
        create = capabilities.find("tokenizer_from_config")
        tokenizer = create(**capabilities.accepted(
            create, model_config=model_config, scheduler_config=config.scheduler_config,
            lora_config=config.lora_config))
        kind = capabilities.find("InputPreprocessor")
        preprocessor = kind(**capabilities.accepted(
            kind, model_config=model_config, tokenizer=tokenizer))
        return cls(config, preprocessor, arguments)

    @classmethod
    def from_engine(cls, config: Any, engine: Any,
                    arguments: ServeArguments) -> "PreprocessorRendering":
        """With the engine's own preprocessor, which from now on passes on what we rendered."""
        processor = getattr(engine, "input_processor", None) or engine.processor
        rendering = cls(config, processor.input_preprocessor, arguments)
        _pass_on_rendered(processor.input_preprocessor)
        return rendering

    @property
    def tokenizer(self) -> Any:
        """The tokenizer, as `transformers` knows it."""
        return self._tokenizer

    def chat(self, body: Any, messages: list[dict[str, Any]],
             extras: dict[str, Any]) -> dict[str, Any]:
        """The engine's input for `messages`."""
        if getattr(self._config, "tokenizer_mode", "auto") == "mistral":
            raise ValueError("chat through a tokenizer of Mistral's own is not supported here; "
                             "send the prompt as text or as token ids")
        template = body.chat_template or self._arguments.chat_template
        tools = [tool.model_dump() for tool in body.tools] if body.tools else None
        conversation, data, uuids = self._parse(messages, template, tools)
        options = self._arguments.default_chat_template_kwargs | (body.chat_template_kwargs or {})
        apply = capabilities.find("apply_hf_chat_template")
        text = apply(
            tokenizer=self._tokenizer, conversation=conversation, model_config=self._config,
            **capabilities.accepted(apply, tokenize=False),
            **{"chat_template": template, "tools": tools, "documents": body.documents,
               "add_generation_prompt": body.add_generation_prompt,
               "continue_final_message": body.continue_final_message, **options})
        prompt = {"prompt_token_ids": self._tokenize(body, text)}
        if data is not None:
            prompt["multi_modal_data"] = data
        if uuids is not None:
            prompt["multi_modal_uuids"] = uuids
        return self._process(prompt | extras)

    def completion(self, body: Any, prompt: dict[str, Any],
                   extras: dict[str, Any]) -> dict[str, Any]:
        """The engine's input for a text or for token ids."""
        if "prompt" in prompt and "multi_modal_data" not in prompt:
            ids = self._tokenize(body, prompt["prompt"])
            return self._process({"prompt_token_ids": ids} | extras) | {"prompt": prompt["prompt"]}
        return self._process(prompt | extras)

    def close(self) -> None:
        """Nothing was started."""

    def _parse(self, messages: list[dict[str, Any]], template: str | None,
               tools: list[Any] | None) -> tuple[Any, Any, Any]:
        """Messages for the template, the images in them, and the identifiers given with those."""
        content_format = capabilities.find("resolve_chat_template_content_format")(
            template, tools, self._arguments.chat_template_content_format, self._tokenizer,
            model_config=self._config)
        parse = capabilities.find("parse_chat_messages")
        conversation, data, *uuids = parse(messages, content_format=content_format,
                                           **capabilities.accepted(
                                               parse, model_config=self._config,
                                               tokenizer=self._tokenizer))
        if not uuids and any("uuid" in part for message in messages
                             if isinstance(message.get("content"), list)
                             for part in message["content"]):
            raise ValueError("this vLLM takes no identifiers for images")
        return conversation, data, uuids[0] if uuids else None

    def _tokenize(self, body: Any, text: str) -> list[int]:
        """Token ids of `text`, cut where the request asks for it, and not too many."""
        options: dict[str, Any] = {"add_special_tokens": body.add_special_tokens}
        limit = getattr(body, "truncate_prompt_tokens", None)
        longest = int(self._config.max_model_len)
        if limit is not None:
            options |= {"truncation": True, "max_length": longest if limit < 0 else limit}
        ids: list[int] = self._tokenizer(text, **options).input_ids
        if len(ids) + (body.max_tokens or 0) > longest:
            raise ValueError(f"{len(ids)} prompt tokens and {body.max_tokens} to generate are more "
                             f"than the {longest} that the model takes")
        return ids

    def _process(self, prompt: dict[str, Any]) -> dict[str, Any]:
        """Run the model's processor; images become placeholders, hashes and tensors."""
        uuids = prompt.get("multi_modal_uuids")
        options = capabilities.accepted(self._preprocess, return_mm_hashes=True, mm_uuids=uuids)
        if uuids is not None and "mm_uuids" not in options:
            raise ValueError("this vLLM takes no identifiers for images")
        return self._preprocess(prompt, **options)  # type: ignore[no-any-return]  # a dict


def _of_transformers(tokenizer: Any) -> Any:
    """The tokenizer itself, of what may be a group with one tokenizer for each adapter."""
    if hasattr(tokenizer, "get_lora_tokenizer"):
        return tokenizer.get_lora_tokenizer(None)
    return tokenizer


def _pass_on_rendered(preprocessor: Any) -> None:
    """Let the engine take rendered prompts: it would render them again, through its cache."""
    original = preprocessor.preprocess

    def preprocess(prompt: Any, *args: Any, **kwargs: Any) -> Any:
        # Rendered inputs, and only those, say of which type they are.
        if isinstance(prompt, dict) and "type" in prompt:
            return prompt
        return original(prompt, *args, **kwargs)

    preprocessor.preprocess = preprocess
