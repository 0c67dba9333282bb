"""The model as vLLM runs it: a line encoder, a projector and vLLM's own Llama."""

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from vllm.config import VllmConfig
from vllm.distributed import get_tensor_model_parallel_world_size
from vllm.model_executor.layers.linear import (
    ColumnParallelLinear,
    QKVParallelLinear,
    ReplicatedLinear,
    RowParallelLinear,
)
from vllm.model_executor.layers.quantization import QuantizationConfig
from vllm.model_executor.model_loader.weight_utils import default_weight_loader
from vllm.model_executor.models.interfaces import MultiModalEmbeddings, SupportsPP
from vllm.model_executor.models.utils import (
    AutoWeightsLoader,
    init_vllm_registered_model,
    maybe_prefix,
)
from vllm.multimodal import MULTIMODAL_REGISTRY
from vllm.sequence import IntermediateTensors

from glyphocr.configuration import GlyphOCRConfig
from glyphocr.older import MultiModalModel
from glyphocr.processing import (
    GlyphOCRDummyInputsBuilder,
    GlyphOCRMultiModalProcessor,
    GlyphOCRProcessingInfo,
)


class GlyphOCRStem(nn.Module):
    """Three stride-2 convolutions: `[1, 1, 32, W]` pixels to `[W / 8, 4 * width]` columns."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3, stride=2, padding=1)
        self.conv3 = nn.Conv2d(64, width, 3, stride=2, padding=1)

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        hidden_states = F.gelu(self.conv1(pixel_values))
        hidden_states = F.gelu(self.conv2(hidden_states))
        hidden_states = F.gelu(self.conv3(hidden_states))
        return hidden_states.permute(0, 3, 1, 2).flatten(2)[0].contiguous()


class GlyphOCREncoderLayer(nn.Module):
    """A pre-norm transformer layer in which every column sees every other."""

    def __init__(
        self,
        width: int,
        num_heads: int,
        quant_config: QuantizationConfig | None = None,
        prefix: str = "",
    ) -> None:
        super().__init__()
        self.num_heads = num_heads // get_tensor_model_parallel_world_size()
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.qkv_proj = QKVParallelLinear(
            width, width // num_heads, num_heads,
            quant_config=quant_config, prefix=f"{prefix}.qkv_proj",
        )
        self.out_proj = RowParallelLinear(
            width, width, quant_config=quant_config, prefix=f"{prefix}.out_proj"
        )
        self.fc1 = ColumnParallelLinear(
            width, 2 * width, quant_config=quant_config, prefix=f"{prefix}.fc1"
        )
        self.fc2 = RowParallelLinear(
            2 * width, width, quant_config=quant_config, prefix=f"{prefix}.fc2"
        )

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        qkv, _ = self.qkv_proj(self.norm1(hidden_states))
        q, k, v = (
            part.unflatten(-1, (self.num_heads, -1)).transpose(0, 1)
            for part in qkv.chunk(3, dim=-1)
        )
        attended = F.scaled_dot_product_attention(q, k, v).transpose(0, 1).flatten(1)
        attended, _ = self.out_proj(attended)
        hidden_states = hidden_states + attended
        inner, _ = self.fc1(self.norm2(hidden_states))
        inner, _ = self.fc2(F.gelu(inner))
        return hidden_states + inner

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> set[str]:
        """Load the layer; q, k and v stand apart in the checkpoint and fused here."""
        parameters = dict(self.named_parameters())
        loaded: set[str] = set()
        for name, tensor in weights:
            shard, _, kind = name.partition("_proj.")
            if shard in ("q", "k", "v"):
                name = f"qkv_proj.{kind}"
                parameters[name].weight_loader(parameters[name], tensor, shard)
            else:
                loader = getattr(parameters[name], "weight_loader", default_weight_loader)
                loader(parameters[name], tensor)
            loaded.add(name)
        return loaded


class GlyphOCREncoder(nn.Module):
    """One picture `[1, line_height, W]` to its columns `[W / column_pixels, width]`."""

    def __init__(
        self,
        config: GlyphOCRConfig,
        quant_config: QuantizationConfig | None = None,
        prefix: str = "",
    ) -> None:
        super().__init__()
        width = config.text_config.hidden_size
        self.stem = GlyphOCRStem(width)
        self.stem_proj = ReplicatedLinear(
            4 * width, width, quant_config=quant_config, prefix=f"{prefix}.stem_proj"
        )
        self.position_embedding = nn.Embedding(
            config.max_line_width // config.column_pixels, width
        )
        self.layer = GlyphOCREncoderLayer(
            width, config.encoder_heads, quant_config, prefix=f"{prefix}.layer"
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        columns, _ = self.stem_proj(self.stem(pixel_values[None]))
        hidden_states = columns + self.position_embedding.weight[: columns.shape[0]]
        return self.norm(self.layer(hidden_states))


def pictures_of(pixel_values: Any) -> Iterator[torch.Tensor]:
    """Each `[1, line_height, W]` in it: how pictures are stacked and nested is up to vLLM."""
    if isinstance(pixel_values, torch.Tensor) and pixel_values.ndim == 3:
        yield pixel_values
    else:
        for part in pixel_values:
            yield from pictures_of(part)


@MULTIMODAL_REGISTRY.register_processor(
    GlyphOCRMultiModalProcessor,
    info=GlyphOCRProcessingInfo,
    dummy_inputs=GlyphOCRDummyInputsBuilder,
)
class GlyphOCRForConditionalGeneration(nn.Module, MultiModalModel, SupportsPP):
    """Reads one printed line. It keeps no state of its own: all it knows of a request is in
    the KV cache, so a partial prefill and a prefix-cache hit need nothing else.
    """

    packed_modules_mapping = {
        "qkv_proj": ["q_proj", "k_proj", "v_proj"],
        "gate_up_proj": ["gate_proj", "up_proj"],
    }

    @classmethod
    def get_placeholder_str(cls, modality: str, i: int) -> str | None:
        if modality.startswith("image"):
            return "<image>"
        raise ValueError("Only image modality is supported")

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__()
        config: GlyphOCRConfig = vllm_config.model_config.hf_config
        quant_config = vllm_config.quant_config
        self.config = config

        width = config.text_config.hidden_size
        self.encoder = GlyphOCREncoder(
            config, quant_config, prefix=maybe_prefix(prefix, "encoder")
        )
        self.projector = ReplicatedLinear(
            width, width, quant_config=quant_config, prefix=maybe_prefix(prefix, "projector")
        )
        self.language_model = init_vllm_registered_model(
            vllm_config=vllm_config,
            hf_config=config.text_config,
            prefix=maybe_prefix(prefix, "language_model"),
            architectures=["LlamaForCausalLM"],
        )
        self.make_empty_intermediate_tensors = (
            self.language_model.make_empty_intermediate_tensors
        )

    def get_language_model(self) -> nn.Module:
        return self.language_model

    def embed_multimodal(self, **kwargs: object) -> MultiModalEmbeddings:
        """One `[columns, width]` tensor per picture.

        Pictures run one by one: the same picture gives the same bits whatever its company.
        """
        pixel_values = kwargs.get("pixel_values")
        if pixel_values is None:
            return []
        return tuple(self._embed_picture(picture) for picture in pictures_of(pixel_values))

    def _embed_picture(self, pixel_values: torch.Tensor) -> torch.Tensor:
        dtype = self.encoder.norm.weight.dtype
        image_embeds, _ = self.projector(self.encoder(pixel_values.to(dtype)))
        return image_embeds

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: IntermediateTensors | None = None,
        inputs_embeds: torch.Tensor | None = None,
        **kwargs: object,
    ) -> torch.Tensor | IntermediateTensors:
        """Hidden states `[tokens, width]` of the tokens scheduled in this step.

        `positions` are the absolute places of these tokens in their requests. After a
        prefix-cache hit, or in a later chunk of a prefill, they do not start at 0.
        """
        if intermediate_tensors is not None:
            inputs_embeds = None
        return self.language_model.model(
            input_ids, positions, intermediate_tensors, inputs_embeds=inputs_embeds
        )

    def compute_logits(
        self, hidden_states: torch.Tensor, *sampling_metadata: Any
    ) -> torch.Tensor | None:
        """Logits `[rows, vocabulary]`; only earlier vLLM also gives its sampling metadata."""
        return self.language_model.compute_logits(hidden_states, *sampling_metadata)

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> set[str]:
        """Load the checkpoint. Modules that this class does not have (the CTC head) only
        served training.
        """
        modules = {name for name, _ in self.named_children()}
        return AutoWeightsLoader(self).load_weights(
            (name, tensor) for name, tensor in weights if name.partition(".")[0] in modules
        )
