"""From a picture to `pixel_values`, and from `<image>` to as many tokens as it has columns."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps
from transformers import BatchFeature
from vllm.multimodal.inputs import MultiModalFieldConfig
from vllm.multimodal.parse import ImageProcessorItems, MultiModalDataItems
from vllm.multimodal.processing import (
    BaseMultiModalProcessor,
    BaseProcessingInfo,
    PromptReplacement,
    PromptUpdate,
)

from glyphocr.configuration import GlyphOCRConfig
from glyphocr.older import BaseDummyInputsBuilder, with_prompt_text


def line_width(config: GlyphOCRConfig, width: int, height: int) -> tuple[int, int]:
    """Pixels of width of a `width` x `height` picture at line height: (drawn, with padding)."""
    drawn = round(width * config.line_height / height)
    drawn = max(1, min(drawn, config.max_line_width))
    return drawn, -(-drawn // config.width_step) * config.width_step


def to_pixel_values(config: GlyphOCRConfig, image: Image.Image, *, invert: bool) -> torch.Tensor:
    """`[1, line_height, padded width]` in float32: ink is 1, paper is 0.

    Args:
        config: Line height and widths.
        image: Any picture of one line.
        invert: The picture is light on dark.
    """
    grey = image.convert("L")
    if invert:
        grey = ImageOps.invert(grey)
    drawn, padded = line_width(config, *grey.size)
    if grey.size != (drawn, config.line_height):
        grey = grey.resize((drawn, config.line_height), Image.Resampling.BILINEAR)
    ink = np.zeros((1, config.line_height, padded), dtype=np.float32)
    ink[0, :, :drawn] = 1.0 - np.asarray(grey, dtype=np.float32) / 255.0
    return torch.from_numpy(ink)


class GlyphOCRProcessingInfo(BaseProcessingInfo):
    """What vLLM asks about pictures before it has seen one."""

    def get_hf_config(self) -> GlyphOCRConfig:
        return self.ctx.get_hf_config(GlyphOCRConfig)

    def get_hf_processor(self, **kwargs: object) -> None:
        """There is no processor on the Hugging Face side: `to_pixel_values` is all it takes."""
        return

    def get_supported_mm_processor_kwargs(self) -> dict[str, set[str]]:
        """No scopes: `invert` stays a flat option."""
        return {}

    def get_supported_mm_limits(self) -> Mapping[str, int | None]:
        return {"image": None}

    def get_num_image_tokens(self, *, image_width: int, image_height: int) -> int:
        config = self.get_hf_config()
        return line_width(config, image_width, image_height)[1] // config.column_pixels

    def get_max_image_tokens(self) -> int:
        config = self.get_hf_config()
        return config.max_line_width // config.column_pixels

    def get_mm_max_tokens_per_item(
        self, seq_len: int, mm_counts: Mapping[str, int]
    ) -> Mapping[str, int]:
        return {"image": self.get_max_image_tokens()}


class GlyphOCRDummyInputsBuilder(BaseDummyInputsBuilder[GlyphOCRProcessingInfo]):
    """The largest input there can be, for vLLM's memory profile."""

    def get_dummy_text(self, mm_counts: Mapping[str, int]) -> str:
        return "<image>" * mm_counts.get("image", 0)

    def get_dummy_mm_data(
        self, seq_len: int, mm_counts: Mapping[str, int], mm_options: Any = None
    ) -> dict[str, Any]:
        config = self.info.get_hf_config()
        options = {"overrides": mm_options.get("image")} if mm_options else {}
        return {
            "image": self._get_dummy_images(
                width=config.max_line_width,
                height=config.line_height,
                num_images=mm_counts.get("image", 0),
                **options,
            )
        }


@with_prompt_text
class GlyphOCRMultiModalProcessor(BaseMultiModalProcessor[GlyphOCRProcessingInfo]):
    """Pictures to tensors, and each `<image>` to one placeholder per column."""

    def _call_hf_processor(
        self, hf_data: Mapping[str, Any], hf_kwargs: Mapping[str, object]
    ) -> BatchFeature:
        config = self.info.get_hf_config()
        invert = bool(hf_kwargs.get("invert", False))
        pictures = [to_pixel_values(config, image, invert=invert) for image in hf_data["images"]]
        return BatchFeature({"pixel_values": pictures})

    def _get_mm_fields_config(
        self, hf_inputs: BatchFeature, hf_processor_mm_kwargs: Mapping[str, object]
    ) -> Mapping[str, MultiModalFieldConfig]:
        return {"pixel_values": MultiModalFieldConfig.batched("image")}

    def _get_prompt_updates(
        self,
        mm_items: MultiModalDataItems,
        hf_processor_mm_kwargs: Mapping[str, Any],
        out_mm_kwargs: Any,
    ) -> Sequence[PromptUpdate]:
        image_token_id = self.info.get_hf_config().image_token_id

        def columns_of(item_index: int) -> list[int]:
            size = mm_items.get_items("image", ImageProcessorItems).get_image_size(item_index)
            count = self.info.get_num_image_tokens(
                image_width=size.width, image_height=size.height
            )
            return [image_token_id] * count

        return [
            PromptReplacement(modality="image", target=[image_token_id], replacement=columns_of)
        ]
