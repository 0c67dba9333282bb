"""The network in plain PyTorch, as it is trained.

Parameter names are those of the checkpoint that `glyphocr.modeling` loads into vLLM.
The character decoder is the Llama of `transformers`.
"""

import torch
from torch import nn
from torch.nn import functional as F
from transformers import LlamaConfig, LlamaForCausalLM

WIDTH = 128
HEADS = 4
COLUMN_PIXELS = 8
MAX_COLUMNS = 64
#: CTC needs room for narrow letters, so every column of 8 pixels answers twice.
CTC_FRAMES_PER_COLUMN = 2


class Stem(nn.Module):
    """Three stride-2 convolutions: `[n, 1, 32, W]` pixels to `[n, W / 8, 512]` columns."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3, stride=2, padding=1)
        self.conv3 = nn.Conv2d(64, WIDTH, 3, stride=2, padding=1)

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        hidden = F.gelu(self.conv1(pixel_values))
        hidden = F.gelu(self.conv2(hidden))
        hidden = F.gelu(self.conv3(hidden))
        return hidden.permute(0, 3, 1, 2).flatten(2)


class EncoderLayer(nn.Module):
    """One pre-norm transformer layer; every column sees every other."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.q_proj = nn.Linear(WIDTH, WIDTH)
        self.k_proj = nn.Linear(WIDTH, WIDTH)
        self.v_proj = nn.Linear(WIDTH, WIDTH)
        self.out_proj = nn.Linear(WIDTH, WIDTH)
        self.fc1 = nn.Linear(WIDTH, 2 * WIDTH)
        self.fc2 = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        x = self.norm1(hidden)
        q, k, v = (p(x).unflatten(-1, (HEADS, -1)).transpose(1, 2)
                   for p in (self.q_proj, self.k_proj, self.v_proj))
        x = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        hidden = hidden + self.out_proj(x)
        return hidden + self.fc2(F.gelu(self.fc1(self.norm2(hidden))))


class Encoder(nn.Module):
    """Pixels to columns: `[n, 1, 32, W]` to `[n, W / 8, 128]`."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = Stem()
        self.stem_proj = nn.Linear(4 * WIDTH, WIDTH)
        self.position_embedding = nn.Embedding(MAX_COLUMNS, WIDTH)
        self.layer = EncoderLayer()
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        columns = self.stem_proj(self.stem(pixel_values))
        places = torch.arange(columns.shape[1], device=columns.device)
        return self.norm(self.layer(columns + self.position_embedding(places)))


class GlyphOCRNetwork(nn.Module):
    """Encoder, projector, decoder, and the CTC head that makes the encoder learn."""

    def __init__(self, text_config: LlamaConfig) -> None:
        super().__init__()
        self.encoder = Encoder()
        self.projector = nn.Linear(WIDTH, WIDTH)
        self.ctc_head = nn.Linear(WIDTH, CTC_FRAMES_PER_COLUMN * text_config.vocab_size)
        self.language_model = LlamaForCausalLM(text_config)

    def image_embeds(self, pixel_values: torch.Tensor) -> torch.Tensor:
        """`[n, 1, 32, W]` pixels to `[n, W / 8, 128]` rows for the decoder."""
        return self.projector(self.encoder(pixel_values))

    def ctc_log_probs(self, image_embeds: torch.Tensor) -> torch.Tensor:
        """`[n, columns, 128]` to `[2 * columns, n, vocabulary]`, as `ctc_loss` wants it."""
        frames = self.ctc_head(image_embeds).unflatten(-1, (CTC_FRAMES_PER_COLUMN, -1))
        return frames.flatten(1, 2).float().log_softmax(-1).transpose(0, 1)
