"""Configuration of glyphocr, as `config.json` holds it."""

from typing import Any

from transformers import LlamaConfig, PretrainedConfig


class GlyphOCRConfig(PretrainedConfig):
    """A line encoder in front of a Llama that writes one character per token.

    Args:
        text_config: The decoder, as a `LlamaConfig` or its fields.
        image_token_id: The placeholder that each column of the picture replaces.
        line_height: Pixels; every picture is scaled to it.
        max_line_width: Pixels; wider lines are squeezed.
        width_step: Pixels; lines are padded with paper to a multiple of it.
        column_pixels: Pixels of width behind one image token.
        encoder_heads: Attention heads of the encoder layer.
        ctc_frames_per_column: Answers of the CTC head per image token.
    """

    model_type = "glyphocr"
    sub_configs = {"text_config": LlamaConfig}

    def __init__(
        self,
        text_config: LlamaConfig | dict[str, Any] | None = None,
        image_token_id: int = 3,
        line_height: int = 32,
        max_line_width: int = 512,
        width_step: int = 64,
        column_pixels: int = 8,
        encoder_heads: int = 4,
        ctc_frames_per_column: int = 2,
        **kwargs: Any,
    ) -> None:
        if not isinstance(text_config, LlamaConfig):
            text_config = LlamaConfig(**(text_config or {}))
        self.text_config = text_config
        self.image_token_id = image_token_id
        self.line_height = line_height
        self.max_line_width = max_line_width
        self.width_step = width_step
        self.column_pixels = column_pixels
        self.encoder_heads = encoder_heads
        self.ctc_frames_per_column = ctc_frames_per_column
        super().__init__(**kwargs)

    def get_text_config(self, *_: Any, **__: Any) -> LlamaConfig:
        """The decoder's config: where vLLM looks for heads, layers and lengths."""
        return self.text_config
