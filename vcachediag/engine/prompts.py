"""From a `Request` to what vLLM's engine takes, by the code that `vllm serve` itself uses."""

import base64
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import PIL.Image

from vcachediag.engine import capabilities
from vcachediag.engine.arguments import ServeArguments
from vcachediag.engine.hooks.log import RUN_KEY
from vcachediag.engine.rendering import Rendering
from vcachediag.errors import RequestFileError
from vcachediag.requests import Image, Request
from vcachediag.trace.records import ImageSpan, RequestRecord

#: Sampling fields that make a lane random; every lane is greedy.
_NEUTRAL = {"temperature": 0.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0}
_DROPPED = frozenset({"seed", "n", "logprobs", "top_logprobs", "prompt_logprobs", "echo", "stream",
                      "use_beam_search"})
_SHOWN_PROMPT_CHARACTERS = 400


@dataclass(frozen=True, kw_only=True)
class RenderedPrompt:
    """A prompt as the engine takes it, and its sampling parameters."""

    #: vLLM's `EngineInput`.
    engine_input: dict[str, Any]
    #: vLLM's `SamplingParams`.
    params: Any
    lora_request: Any = None

    @property
    def token_ids(self) -> list[int]:
        """Prompt tokens, images expanded."""
        return list(self.engine_input["prompt_token_ids"])


class PromptRenderer:
    """Renders requests for one engine configuration."""

    def __init__(self, config: Any, rendering: Rendering, arguments: ServeArguments) -> None:
        self._model_config = config.model_config
        self._rendering = rendering
        self._arguments = arguments
        self._can_skip_reading = capabilities.has("SamplingParams.skip_reading_prefix_cache")
        self._loras: dict[str, int] = {}
        self._media = capabilities.find("MediaConnector")(
            media_io_kwargs=_media_io_kwargs(config.model_config))

    @property
    def tokenizer(self) -> Any:
        """The tokenizer, as `transformers` knows it."""
        return self._rendering.tokenizer

    def render(self, request: Request, *, max_tokens: int, run: str = "",
               reads_prefix_cache: bool = True) -> RenderedPrompt:
        """Render `request` anew, through the processor cache, as the server does for each arrival.

        Raises:
            RequestFileError: vLLM refuses it: too long, wrong number of images, bad field.
        """
        try:
            body = self._body(request, request.max_tokens or max_tokens)
            salt = self._cache_salt(request, run, reads_prefix_cache)
            engine_input = self._engine_input(request, body, salt)
            params = self._params(body, request.max_tokens or max_tokens)
        except Exception as error:  # the plugin's own processor may raise anything
            raise _refused(request, error) from error
        params.extra_args = {**(params.extra_args or {}), RUN_KEY: run}
        params.output_kind = capabilities.find("RequestOutputKind").DELTA
        if self._can_skip_reading:
            params.skip_reading_prefix_cache = not reads_prefix_cache
        return RenderedPrompt(engine_input=engine_input, params=params,
                              lora_request=self._lora(request))

    def _params(self, body: Any, max_tokens: int) -> Any:
        create = body.to_sampling_params
        # Earlier vLLM wants to be told which logits processors a request may name: none.
        return create(max_tokens=max_tokens,
                      default_sampling_params=self._model_config.get_diff_sampling_param(),
                      **capabilities.accepted(create, logits_processor_pattern=None))

    def _cache_salt(self, request: Request, run: str, reads_prefix_cache: bool) -> str | None:
        """The request's own, or one that no other run has, where vLLM cannot skip the lookup."""
        if reads_prefix_cache or self._can_skip_reading:
            return request.cache_salt
        return f"{request.cache_salt or ''}:{RUN_KEY}:{run}"

    def _body(self, request: Request, max_tokens: int) -> Any:
        fields = {k: v for k, v in request.sampling.items() if k not in _DROPPED} | _NEUTRAL
        fields |= {"model": self._arguments.model, "max_tokens": max_tokens}
        if request.mm_processor_kwargs is not None:
            fields["mm_processor_kwargs"] = request.mm_processor_kwargs
        if request.messages is not None:
            # The real messages are rendered apart; here they only have to be valid.
            placeholder = [{"role": "user", "content": ""}]
            kind = capabilities.find("ChatCompletionRequest")
            return kind(messages=placeholder, **request.chat_options, **fields)
        fields.pop("mm_processor_kwargs", None)
        return capabilities.find("CompletionRequest")(
            prompt=request.prompt or list(request.prompt_token_ids or ()),
            **request.chat_options, **fields)

    def _engine_input(self, request: Request, body: Any, salt: str | None) -> dict[str, Any]:
        extras = {key: value for key, value in (
            ("mm_processor_kwargs", request.mm_processor_kwargs),
            ("cache_salt", salt)) if value is not None}
        if request.messages is not None:
            return self._rendering.chat(body, self._messages(request), extras)
        prompt: dict[str, Any] = (
            {"prompt": request.prompt} if request.prompt is not None
            else {"prompt_token_ids": list(request.prompt_token_ids or ())})
        if request.images:
            prompt["multi_modal_data"] = {
                "image": [self._load(request, image) for image in request.images]}
            if request.mm_uuids is not None:
                prompt["multi_modal_uuids"] = {"image": list(request.mm_uuids)}
        return self._rendering.completion(body, prompt, extras)

    def _messages(self, request: Request) -> list[dict[str, Any]]:
        messages = []
        for message in request.messages or ():
            content = message.get("content")
            if isinstance(content, list | tuple):
                content = [self._part(request, part) for part in content]
            messages.append({**message, "content": content})
        return messages

    def _part(self, request: Request, part: dict[str, Any]) -> dict[str, Any]:
        if part.get("type") != "image":
            return part
        image = request.images[part["index"]]
        uuid = request.mm_uuids[part["index"]] if request.mm_uuids else None
        named = {} if uuid is None else {"uuid": uuid}
        if request.image_as == "pil":
            return {"type": "image_pil", "image_pil": _open(image), **named}
        return {"type": "image_url", "image_url": {"url": _data_url(image)}, **named}

    def _load(self, request: Request, image: Image) -> Any:
        if request.image_as == "pil":
            return _open(image)
        return self._media.fetch_image(_data_url(image))

    def _lora(self, request: Request) -> Any:
        if request.lora is None:
            return None
        name, _, path = request.lora.partition("=")
        number = self._loras.setdefault(request.lora, len(self._loras) + 1)
        return capabilities.find("LoRARequest")(name, number, path or name)

    def record(self, request: Request, prompt: RenderedPrompt) -> RequestRecord:
        """What the trace keeps of a rendered request."""
        hashes = prompt.engine_input.get("mm_hashes") or {}
        spans = [
            ImageSpan(modality=modality, identifier=str(hashes.get(modality, {})[number] or ""),
                      offset=place.offset, length=place.length)
            for modality, places in (prompt.engine_input.get("mm_placeholders") or {}).items()
            for number, place in enumerate(places)]
        text = prompt.engine_input.get("prompt") or ""
        return RequestRecord(
            id=request.id, source=request.source, prompt_token_ids=tuple(prompt.token_ids),
            prompt_text=text[:_SHOWN_PROMPT_CHARACTERS],
            images=tuple(sorted(spans, key=lambda span: span.offset)),
            image_labels=tuple(f"{image.label} {image.width}x{image.height} {image.mode}"
                               for image in request.images),
            max_tokens=prompt.params.max_tokens, expect=request.expect)


def _open(image: Image) -> PIL.Image.Image:
    picture = PIL.Image.open(io.BytesIO(image.data))
    picture.load()
    return picture


def _data_url(image: Image) -> str:
    return f"data:{image.media_type};base64,{base64.b64encode(image.data).decode()}"


def _media_io_kwargs(model_config: Any) -> dict[str, Any]:
    multimodal = getattr(model_config, "multimodal_config", None)
    given = getattr(multimodal, "media_io_kwargs", None) or getattr(
        model_config, "media_io_kwargs", None)
    return dict(given or {})


def _refused(request: Request, error: Exception) -> RequestFileError:
    path, _, line = request.source.rpartition(":")
    cause = f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
    return RequestFileError(Path(path), int(line), f"vLLM refuses request `{request.id}`",
                            cause=cause,
                            hint="see `--max-model-len` and `--limit-mm-per-prompt`")
