"""Synthetic text lines: what the model is trained and judged on.

Everything is drawn from a `random.Random`, so a seed names a data set. The font is
the one that Pillow ships (Aileron Regular, CC0).
"""

import random
from dataclasses import dataclass

from PIL import Image, ImageDraw, ImageFilter, ImageFont

LINE_HEIGHT = 32
MAX_LINE_WIDTH = 512
WIDTH_STEP = 64

UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LOWER = "abcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"
MARKS = ".,:-/#%&+()"
CHARSET = UPPER + LOWER + DIGITS + MARKS + " "

#: Phrasings of the instruction, 5 to 80 characters (one token each).
PHRASINGS = (
    "Read:",
    "OCR this line",
    "What does the picture say?",
    "Please read the text in this image.",
    "Transcribe the line exactly as printed, then stop.",
    "You are a careful reader. Copy out every character that the image shows. Go now.",
)


@dataclass(frozen=True, kw_only=True)
class Line:
    """One drawn line: its text and its 8-bit grey image (white paper, dark ink)."""

    text: str
    image: Image.Image


def _word(rng: random.Random) -> str:
    kind = rng.random()
    length = rng.randint(1, 8)
    if kind < 0.2:
        return "".join(rng.choices(LOWER, k=length))
    if kind < 0.35:
        return rng.choice(UPPER) + "".join(rng.choices(LOWER, k=length - 1))
    if kind < 0.5:
        return "".join(rng.choices(UPPER, k=length))
    if kind < 0.65:
        return "".join(rng.choices(DIGITS, k=length))
    if kind < 0.72:
        return f"{rng.randint(0, 9999)}.{rng.randint(0, 99):02d}"
    if kind < 0.78:
        separator = rng.choice("-/.:")
        return separator.join(f"{rng.randint(0, 99):02d}" for _ in range(rng.randint(2, 3)))
    return "".join(rng.choices(UPPER + LOWER + DIGITS + MARKS, k=length))


def random_text(rng: random.Random, shortest: int, longest: int) -> str:
    """Words, prices, dates and codes, joined by single spaces, `shortest` to `longest` long."""
    length = rng.randint(shortest, longest)
    text = _word(rng)
    while len(text) < length:
        text += " " + _word(rng)
    text = text[:length]
    # A space at either end leaves no ink, so nobody could read it.
    return "".join(rng.choice(UPPER + DIGITS) if i in (0, length - 1) and c == " " else c
                   for i, c in enumerate(text))


def draw(rng: random.Random, text: str, width: int = MAX_LINE_WIDTH) -> Line:
    """Draw `text`, cut to what fits `width` pixels, with jitter in size, place, ink and paper."""
    font = ImageFont.load_default(rng.uniform(20.0, 23.0))
    margin = rng.randint(2, 10)
    while len(text) > 1 and font.getlength(text) > width - margin - 2:
        text = text[:-1].rstrip()
    paper, ink = rng.randint(225, 255), rng.randint(0, 70)
    image = Image.new("L", (width, LINE_HEIGHT), paper)
    ImageDraw.Draw(image).text((margin, rng.uniform(1.0, 5.0)), text, font=font, fill=ink)
    if rng.random() < 0.3:
        image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0.2, 0.6)))
    if rng.random() < 0.5:
        noise = Image.frombytes("L", image.size, rng.randbytes(image.width * image.height))
        image = Image.blend(image, noise, rng.uniform(0.01, 0.06))
    return Line(text=text, image=image)


def random_line(rng: random.Random, shortest: int = 6, longest: int = 22,
                width: int = MAX_LINE_WIDTH) -> Line:
    """A fresh line of `shortest` to `longest` characters on a canvas of `width` x 32 pixels."""
    return draw(rng, random_text(rng, shortest, longest), width)


def random_instruction(rng: random.Random) -> str:
    """A phrasing, sometimes bent, sometimes plain nonsense: the model must not depend on it."""
    if rng.random() < 0.6:
        text = rng.choice(PHRASINGS)
        kind = rng.random()
        if kind < 0.2:
            return text.upper()
        if kind < 0.4:
            return text[rng.randint(0, len(text) // 2):]
        return text
    return random_text(rng, 1, 90)
