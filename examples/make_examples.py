"""Draws the images of the examples and writes their request files.

    python examples/make_examples.py        (writes beside itself; --out DIR: elsewhere)

Seeded: a second run gives the same bytes. The lines come from the generator that glyphocr was
trained with, under another seed.
"""

import argparse
import json
import random
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "plugins" / "glyphocr"))

from training import lines  # noqa: E402  # it is not installed, only found by the path above

SEED = 20_411
BLOCK_SIZE = 32
PIXELS_PER_TOKEN = 8
#: `<s>`, `<user>` and `<assistant>`.
TEMPLATE_TOKENS = 3

INVOICE = "Invoice 2041: 98.50"
INSTRUCTION = lines.PHRASINGS[3]
#: 97 prompt tokens: three full blocks of 32, and one token that is computed on a hit.
TAIL_INSTRUCTION = "Please read this line of text."


def prompt_tokens(instruction: str, width: int = lines.MAX_LINE_WIDTH) -> int:
    """How long the prompt gets: a token per character, one per 8 pixel columns, the template."""
    return TEMPLATE_TOKENS + len(instruction) + width // PIXELS_PER_TOKEN


def chat(parts: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    """An OpenAI chat body with one user message."""
    return {"messages": [{"role": "user", "content": parts}], "temperature": 0, **fields}


def image_part(name: str) -> dict[str, Any]:
    """A picture of a chat message, by its path from the request file."""
    return {"type": "image_url", "image_url": {"url": f"images/{name}.png"}}


def text_part(text: str) -> dict[str, Any]:
    """Text of a chat message."""
    return {"type": "text", "text": text}


def write(path: Path, requests: list[dict[str, Any]]) -> None:
    """One request a line."""
    path.write_text("".join(json.dumps(request) + "\n" for request in requests))


def same_request_twice(folder: Path) -> None:
    """One image, then the instruction; vcachediag sends the request twice by itself."""
    line = lines.draw(random.Random(SEED), INVOICE)
    images = folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    line.image.save(images / "invoice.png")
    for name, instruction in (("requests", INSTRUCTION), ("single_token_tail", TAIL_INSTRUCTION)):
        parts = [image_part("invoice"), text_part(instruction)]
        write(folder / f"{name}.jsonl",
              [{"id": "r1", **chat(parts, max_tokens=256, expect=line.text)}])


def same_text_other_image(folder: Path) -> None:
    """The same instruction, then one of sixteen images."""
    rng = random.Random(SEED + 1)
    images = folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    requests = []
    for number in range(1, 17):
        line = lines.random_line(rng)
        name = f"{number:02d}"
        line.image.save(images / f"{name}.png")
        parts = [text_part(INSTRUCTION), image_part(name)]
        requests.append({"id": f"image{name}", **chat(parts, max_tokens=64, expect=line.text)})
    write(folder / "requests.jsonl", requests)


def make(out: Path) -> None:
    """Write both examples' request files and images below `out`."""
    if prompt_tokens(TAIL_INSTRUCTION) % BLOCK_SIZE != 1:
        raise SystemExit("the single-token tail is gone: change TAIL_INSTRUCTION")
    same_request_twice(out / "01_same_request_twice")
    same_text_other_image(out / "02_same_text_other_image")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to")
    make(parser.parse_args().out)
