"""The mistake: a prefill counts its positions from 0.

A real bug of this kind: the author ported a model whose original code computes positions by
itself, `torch.arange(length)` for a prompt and one number per decode step. In vLLM a prefill may
start in the middle of a prompt, after a prefix-cache hit or in a later chunk. A tail of one token
looks like decode, so there the mistake is silent.
"""

from itertools import pairwise

import torch
from glyphocr.modeling import GlyphOCRForConditionalGeneration
from vllm import ModelRegistry
from vllm.forward_context import get_forward_context


class GlyphOCRWithOwnPositions(GlyphOCRForConditionalGeneration):
    """glyphocr, with positions computed from the lengths of the sequences in this step."""

    def forward(self, input_ids, positions, intermediate_tensors=None, inputs_embeds=None,
                **kwargs):
        metadata = get_forward_context().attn_metadata
        if metadata:
            starts = next(iter(metadata.values())).query_start_loc.tolist()
            positions = positions.clone()
            for start, end in pairwise(starts):
                if end - start > 1:
                    positions[start:end] = torch.arange(end - start)
        return super().forward(input_ids, positions, intermediate_tensors, inputs_embeds,
                               **kwargs)


def register() -> None:
    """Entry point of the plugin."""
    from glyphocr import register

    register()
    ModelRegistry.register_model("GlyphOCRForConditionalGeneration", GlyphOCRWithOwnPositions)
