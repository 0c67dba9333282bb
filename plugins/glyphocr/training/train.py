"""Train glyphocr from nothing; the seed names the run.

    python -m training.train --out model        (from plugins/glyphocr, about 45 minutes on 2 cores)

Loss: cross entropy on the answers, plus CTC on the encoder's columns. Without the CTC
part the decoder never finds the image. Lengths grow from 1-4 to 1-22 characters over the
first quarter of the run. Matrix products run in bfloat16, weights and sums in float32.
"""

import argparse
import json
import random
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from training import lines
from training.network import COLUMN_PIXELS, CTC_FRAMES_PER_COLUMN, HEADS, WIDTH, GlyphOCRNetwork
from training.vocabulary import (
    ASSISTANT,
    BOS,
    EOS,
    IMAGE,
    PAD,
    TOKEN_IDS,
    USER,
    VOCABULARY,
    encode,
    save_tokenizer,
)
from transformers import LlamaConfig

IGNORED = -100
MAX_POSITIONS = 4096
CANVAS_WIDTHS = (192, 256, 320, 384, 448, 512)


def text_config() -> LlamaConfig:
    """The decoder: three layers of width 128."""
    return LlamaConfig(
        vocab_size=len(VOCABULARY), hidden_size=WIDTH, intermediate_size=2 * WIDTH,
        num_hidden_layers=3, num_attention_heads=HEADS, num_key_value_heads=HEADS,
        max_position_embeddings=MAX_POSITIONS, tie_word_embeddings=True,
        bos_token_id=TOKEN_IDS[BOS], eos_token_id=TOKEN_IDS[EOS], pad_token_id=TOKEN_IDS[PAD])


def turn(rng: random.Random, text: str, columns: int, most: int, labels: list[int],
         ids: list[int]) -> None:
    """Append one question with its image and the answer; only the answer is learned.

    The instruction is cut to `most` characters, so that a batch is not padded to its longest.
    """
    before = after = ""
    place = rng.random()
    if place < 0.45:
        before = lines.random_instruction(rng)[:most]
    elif place < 0.9:
        after = lines.random_instruction(rng)[:most]
    image = [TOKEN_IDS[IMAGE]] * columns
    question = [TOKEN_IDS[USER], *encode(before), *image, *encode(after), TOKEN_IDS[ASSISTANT]]
    answer = [*encode(text), TOKEN_IDS[EOS]]
    ids += question + answer
    labels += [IGNORED] * len(question) + answer


def batch(rng: random.Random, size: int, longest: int) -> dict[str, torch.Tensor]:
    """`size` conversations of one or two turns, all on canvases of one width."""
    width = 512 if rng.random() < 0.4 else rng.choice(CANVAS_WIDTHS)
    most = rng.choice((20, 50, 90))
    turns = 2 if rng.random() < 0.1 else 1
    columns = width // COLUMN_PIXELS
    rows: list[tuple[list[int], list[int]]] = []
    drawn: list[lines.Line] = []
    for _ in range(size):
        ids, labels = [TOKEN_IDS[BOS]], [IGNORED]
        for _ in range(turns):
            line = lines.random_line(rng, 1, longest, width)
            drawn.append(line)
            turn(rng, line.text, columns, most, labels, ids)
        rows.append((ids, labels))
    span = max(len(ids) for ids, _ in rows)
    pad = TOKEN_IDS[PAD]
    pixels = np.stack([np.asarray(line.image) for line in drawn])
    targets = [encode(line.text) for line in drawn]
    return {
        "input_ids": torch.tensor([ids + [pad] * (span - len(ids)) for ids, _ in rows]),
        "labels": torch.tensor([ls + [IGNORED] * (span - len(ls)) for _, ls in rows]),
        "pixel_values": 1.0 - torch.from_numpy(pixels)[:, None].float() / 255.0,
        "targets": torch.tensor([t for target in targets for t in target]),
        "target_lengths": torch.tensor([len(target) for target in targets]),
    }


def losses(network: GlyphOCRNetwork, data: dict[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """(answer loss, CTC loss) of one batch."""
    # The fused attention kernel's backward pass is the slower one at these lengths.
    with torch.autocast("cpu", torch.bfloat16), sdpa_kernel(SDPBackend.MATH):
        image = network.image_embeds(data["pixel_values"])
        embeds = network.language_model.get_input_embeddings()(data["input_ids"])
        is_image = data["input_ids"] == TOKEN_IDS[IMAGE]
        embeds = embeds.masked_scatter(is_image[..., None], image.to(embeds.dtype))
        hidden = network.language_model.model(inputs_embeds=embeds, use_cache=False)[0]
        learned = data["labels"][:, 1:] != IGNORED
        logits = network.language_model.lm_head(hidden[:, :-1][learned])
        log_probs = network.ctc_log_probs(image)
    answer = F.cross_entropy(logits.float(), data["labels"][:, 1:][learned])
    frames = torch.full_like(data["target_lengths"], image.shape[1] * CTC_FRAMES_PER_COLUMN)
    ctc = F.ctc_loss(log_probs, data["targets"], frames, data["target_lengths"],
                     blank=TOKEN_IDS[PAD], zero_infinity=True)
    return answer, ctc


def save(network: GlyphOCRNetwork, folder: Path) -> None:
    """Write weights, configs and tokenizer as a model folder."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.detach().contiguous() for name, tensor in network.state_dict().items()
               if name != "language_model.lm_head.weight"}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    decoder = text_config().to_diff_dict()
    decoder["architectures"] = ["LlamaForCausalLM"]
    config = {
        "architectures": ["GlyphOCRForConditionalGeneration"], "model_type": "glyphocr",
        "dtype": "float32", "image_token_id": TOKEN_IDS[IMAGE],
        "bos_token_id": TOKEN_IDS[BOS], "eos_token_id": TOKEN_IDS[EOS],
        "pad_token_id": TOKEN_IDS[PAD], "tie_word_embeddings": True, "text_config": decoder,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    generation = {"bos_token_id": TOKEN_IDS[BOS], "eos_token_id": TOKEN_IDS[EOS],
                  "pad_token_id": TOKEN_IDS[PAD], "do_sample": False}
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")
    save_tokenizer(folder)


def train(out: Path, *, steps: int, size: int, seed: int, peak: float) -> None:
    """Run the schedule and write the model folder; a checkpoint is saved every 500 steps."""
    torch.manual_seed(seed)
    rng = random.Random(seed)
    network = GlyphOCRNetwork(text_config())
    count = sum(p.numel() for p in network.parameters())
    print(f"{count} parameters")
    optimizer = torch.optim.AdamW(network.parameters(), lr=peak, betas=(0.9, 0.98),
                                  weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, peak, total_steps=steps,
                                                   pct_start=0.1)
    started = time.monotonic()
    for step in range(steps):
        longest = min(22, 4 + round(18 * step / (steps / 4)))
        answer, ctc = losses(network, batch(rng, size, longest))
        optimizer.zero_grad()
        with sdpa_kernel(SDPBackend.MATH):
            (answer + ctc).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 100 == 99:
            print(f"step {step + 1}  longest {longest}  answer {answer.item():.4f}  "
                  f"ctc {ctc.item():.4f}  {time.monotonic() - started:.0f} s", flush=True)
        if step % 500 == 499:
            save(network, out)
    save(network, out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=9000)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--seed", type=int, default=20261201)
    parser.add_argument("--peak-lr", type=float, default=1.5e-3)
    options = parser.parse_args()
    train(options.out, steps=options.steps, size=options.batch_size, seed=options.seed,
          peak=options.peak_lr)
