"""The mistake: how far the line has been read is kept on the model, outside the KV cache.

A real bug of this kind: the model sometimes stopped early, at a wide gap in the line. Training had
left a CTC head, which tells roughly how many characters a picture holds. So the author counts
them while the picture is prefilled, and holds the stop token back until half of them are written.
The count is forgotten when the answer ends. After a prefix-cache hit no picture runs through the
model: there is no count, the line never counts as read, and the stop token stays held back.
"""

from dataclasses import dataclass
from itertools import pairwise

import torch
from glyphocr.modeling import GlyphOCRForConditionalGeneration
from vllm import ModelRegistry
from vllm.forward_context import get_forward_context
from vllm.model_executor.layers.linear import ReplicatedLinear
from vllm.model_executor.models.utils import maybe_prefix

BLANK = 0


@dataclass
class Reading:
    """How far one line has been read, in characters."""

    expected: int
    written: int = 0

    @property
    def may_stop(self) -> bool:
        return self.written >= self.expected // 2


def first_blocks(metadata):
    """The first KV cache block of each sequence in this step, in their order."""
    if hasattr(metadata, "block_table"):
        return metadata.block_table[:, 0].tolist()
    # On the CPU of vLLM 0.10: sequences in prefill stand in front, in a table of their own.
    tables = (metadata.prefill_block_tables, metadata.block_tables)
    return [block for table in tables for block in table[:, 0].tolist()]


class GlyphOCRWithStopGuard(GlyphOCRForConditionalGeneration):
    """glyphocr, with the stop token held back until at least half of the line is written."""

    def __init__(self, *, vllm_config, prefix=""):
        super().__init__(vllm_config=vllm_config, prefix=prefix)
        text_config = self.config.text_config
        self.eos_token_id = text_config.eos_token_id
        self.ctc_head = ReplicatedLinear(
            text_config.hidden_size, self.config.ctc_frames_per_column * text_config.vocab_size,
            prefix=maybe_prefix(prefix, "ctc_head"))
        # Sequences are told apart by the first block of their KV cache.
        self.readings: dict[int, Reading] = {}
        self.sequences: list[int] = []
        self.is_image: torch.Tensor | None = None

    def embed_input_ids(self, input_ids, multimodal_embeddings=None, *, is_multimodal=None):
        self.is_image = is_multimodal
        return super().embed_input_ids(input_ids, multimodal_embeddings,
                                       is_multimodal=is_multimodal)

    def forward(self, input_ids, positions, intermediate_tensors=None, inputs_embeds=None,
                **kwargs):
        metadata = get_forward_context().attn_metadata
        self.sequences = []
        if metadata:
            self.follow(next(iter(metadata.values())), inputs_embeds)
        return super().forward(input_ids, positions, intermediate_tensors, inputs_embeds,
                               **kwargs)

    def follow(self, metadata, inputs_embeds):
        """Note the pictures that come in, and count the characters that go out."""
        starts = metadata.query_start_loc.tolist()
        self.sequences = first_blocks(metadata)
        for sequence, (start, end) in zip(self.sequences, pairwise(starts), strict=False):
            here = None if self.is_image is None else self.is_image[start:end]
            if here is not None and here.any():
                columns = inputs_embeds[start:end][here.to(inputs_embeds.device)]
                self.readings[sequence] = Reading(self.count_characters(columns))
            elif sequence in self.readings:
                self.readings[sequence].written += 1

    def count_characters(self, columns):
        """Characters that the CTC head sees in the columns of a picture."""
        frames, _ = self.ctc_head(columns)
        best = frames.unflatten(-1, (self.config.ctc_frames_per_column, -1)).argmax(-1).flatten()
        new = torch.ones_like(best, dtype=torch.bool)
        new[1:] = best[1:] != best[:-1]
        return int((new & (best != BLANK)).sum())

    def compute_logits(self, hidden_states, *sampling_metadata):
        logits = super().compute_logits(hidden_states, *sampling_metadata)
        if logits is None or not self.sequences:
            return logits
        for row, sequence in enumerate(self.sequences):
            reading = self.readings.get(sequence)
            if reading is None or not reading.may_stop:
                logits[row, self.eos_token_id] = -torch.inf
            elif logits[row].argmax() == self.eos_token_id:
                del self.readings[sequence]
        return logits


def register() -> None:
    """Entry point of the plugin."""
    from glyphocr import register

    register()
    ModelRegistry.register_model("GlyphOCRForConditionalGeneration", GlyphOCRWithStopGuard)
