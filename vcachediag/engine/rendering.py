"""From messages or a prompt to tokens and image inputs, by vLLM's own renderer.

A `Rendering` is what prompts need of vLLM. `RendererRendering` uses the renderer that the server
shares with the engine; where vLLM has none yet, `rendering_older` does what the server did.
"""

from typing import Any, Protocol

from vcachediag.engine import capabilities
from vcachediag.engine.arguments import ServeArguments
from vcachediag.engine.rendering_older import PreprocessorRendering


class Rendering(Protocol):
    """Renders prompts in one engine's way."""

    @property
    def tokenizer(self) -> Any:
        """The tokenizer, as `transformers` knows it."""

    def chat(self, body: Any, messages: list[dict[str, Any]],
             extras: dict[str, Any]) -> dict[str, Any]:
        """The engine's input for `messages`; `body` is vLLM's request object.

        Args:
            body: Holds every field of the request but the messages.
            messages: As in a request to the server, images as vLLM takes them.
            extras: Fields of the prompt that go along: processor options, cache salt.
        """

    def completion(self, body: Any, prompt: dict[str, Any],
                   extras: dict[str, Any]) -> dict[str, Any]:
        """The engine's input for a text or for token ids, with or without images."""

    def close(self) -> None:
        """End what it started."""


def from_config(config: Any, arguments: ServeArguments) -> Rendering:
    """A rendering for a configuration, before there is an engine."""
    if not capabilities.has("BaseRenderer.render_chat"):
        return PreprocessorRendering.from_config(config, arguments)
    return RendererRendering(config, capabilities.find("renderer_from_config")(config), arguments)


def from_engine(config: Any, engine: Any, arguments: ServeArguments) -> Rendering:
    """The rendering of a running engine, with its processor cache."""
    if not capabilities.has("BaseRenderer.render_chat"):
        return PreprocessorRendering.from_engine(config, engine, arguments)
    return RendererRendering(config, engine.renderer, arguments)


class RendererRendering:
    """Renders with vLLM's `BaseRenderer`."""

    def __init__(self, config: Any, renderer: Any, arguments: ServeArguments) -> None:
        self._model_config = config.model_config
        self._renderer = renderer
        self._arguments = arguments

    @property
    def tokenizer(self) -> Any:
        """The tokenizer, as `transformers` knows it."""
        return self._renderer.get_tokenizer()

    def chat(self, body: Any, messages: list[dict[str, Any]],
             extras: dict[str, Any]) -> dict[str, Any]:
        """The engine's input for `messages`."""
        chat_params = body.build_chat_params(
            self._arguments.chat_template, self._arguments.chat_template_content_format
        ).with_defaults(self._arguments.default_chat_template_kwargs)
        _, inputs = self._renderer.render_chat(
            [messages], chat_params, body.build_tok_params(self._model_config),
            prompt_extras=extras)
        return inputs[0]  # type: ignore[no-any-return]  # vLLM's EngineInput

    def completion(self, body: Any, prompt: dict[str, Any],
                   extras: dict[str, Any]) -> dict[str, Any]:
        """The engine's input for a text or for token ids."""
        inputs = self._renderer.render_cmpl(
            [prompt], body.build_tok_params(self._model_config), prompt_extras=extras)
        return inputs[0]  # type: ignore[no-any-return]  # vLLM's EngineInput

    def close(self) -> None:
        """End the renderer's threads."""
        self._renderer.shutdown()
