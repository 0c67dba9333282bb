"""What older vLLM releases call by other names, in terms of what the newest one calls.

The rest of this package is written for the newest vLLM. Where a release lacks something of it,
which is asked of vLLM itself and never of its version number, this module stands in.
"""

import inspect
from typing import Any, TypeVar

import torch
from transformers import BatchFeature
from vllm.model_executor.models.interfaces import MultiModalEmbeddings, SupportsMultiModal
from vllm.multimodal.processing import BaseMultiModalProcessor

try:
    from vllm.multimodal.processing import BaseDummyInputsBuilder
except ImportError:
    from vllm.multimodal.profiling import BaseDummyInputsBuilder

__all__ = ["BaseDummyInputsBuilder", "MultiModalModel", "with_prompt_text"]

_Processor = TypeVar("_Processor", bound=type[BaseMultiModalProcessor])


class _EarlierMultiModalModel(SupportsMultiModal):
    """The two methods as they were called up to 0.10, where the model itself had to find
    the image tokens of a prompt.
    """

    def get_multimodal_embeddings(self, **kwargs: object) -> MultiModalEmbeddings:
        return self.embed_multimodal(**kwargs)

    def get_input_embeddings(
        self,
        input_ids: torch.Tensor,
        multimodal_embeddings: MultiModalEmbeddings | None = None,
        **_: object,
    ) -> torch.Tensor:
        return self.embed_input_ids(
            input_ids,
            multimodal_embeddings,
            is_multimodal=input_ids == self.config.image_token_id,
        )

    def embed_input_ids(
        self,
        input_ids: torch.Tensor,
        multimodal_embeddings: MultiModalEmbeddings | None = None,
        *,
        is_multimodal: torch.Tensor,
    ) -> torch.Tensor:
        inputs_embeds = self.get_language_model().get_input_embeddings(input_ids)
        if multimodal_embeddings is not None and len(multimodal_embeddings) > 0:
            image_embeds = torch.cat(tuple(multimodal_embeddings))
            inputs_embeds[is_multimodal] = image_embeds.to(inputs_embeds.dtype)
        return inputs_embeds


#: `SupportsMultiModal` with `embed_multimodal` and `embed_input_ids`, whichever vLLM this is.
MultiModalModel = (
    SupportsMultiModal if hasattr(SupportsMultiModal, "embed_multimodal")
    else _EarlierMultiModalModel
)


def _apply_hf_processor_main(
    self: Any, mm_items: Any, hf_processor_mm_kwargs: Any
) -> BatchFeature:
    pictures, _ = self._get_hf_mm_data(mm_items)
    return self._call_hf_processor(pictures, hf_processor_mm_kwargs) if pictures else BatchFeature()


def with_prompt_text(processor: _Processor) -> _Processor:
    """Class decorator: earlier vLLM gives a processor the prompt's text beside the pictures, wants
    its tokens back, and has to be told that no placeholder was replaced in them yet.

    Release 0.30 has no such method at all, but one around it that can be replaced.
    """
    pictures_only = processor._call_hf_processor
    if not hasattr(BaseMultiModalProcessor, "_call_hf_processor"):
        processor._apply_hf_processor_main = _apply_hf_processor_main
        return processor
    expected = inspect.signature(BaseMultiModalProcessor._call_hf_processor).parameters
    if list(expected) == list(inspect.signature(pictures_only).parameters):
        return processor

    def _call_hf_processor(
        self: Any, prompt: str, mm_data: Any, mm_kwargs: Any, tok_kwargs: Any
    ) -> BatchFeature:
        inputs = pictures_only(self, mm_data, mm_kwargs) if mm_data else BatchFeature()
        inputs["input_ids"] = torch.tensor(
            [self.info.get_tokenizer().encode(prompt, **tok_kwargs)]
        )
        return inputs

    def _hf_processor_applies_updates(self: Any, *_: object, **__: object) -> bool:
        return False

    processor._call_hf_processor = _call_hf_processor
    processor._hf_processor_applies_updates = _hf_processor_applies_updates
    return processor
