"""Every kind of request on a real vLLM; the model is healthy, so every one is SAME."""

import json

import pytest

from tests.engine.conftest import IMAGES

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(600)]


def image_part(number):
    """An image as a part of a chat message."""
    return {"type": "image_url", "image_url": {"url": str(IMAGES[number])}}


def text_part(text):
    """Text as a part of a chat message."""
    return {"type": "text", "text": text}


def write(path, lines):
    """A request file of `lines`."""
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return str(path)


def test_every_kind_of_request_is_same(replay, tmp_path):
    """Two images, PIL objects, options, salt, caller ids, token ids, two turns, control lines,
    and prompts that the user's own token budget cuts.
    """
    two = "<s><user>Read both lines of this, please: <image> and <image><assistant>"
    one = "<s><user><image>Read the negative, a long instruction of some words.<assistant>"
    requests = write(tmp_path / "kinds.jsonl", [
        {"id": "two", "prompt": two, "images": [str(IMAGES[0]), str(IMAGES[1])]},
        {"id": "pil", "prompt": two, "images": [str(IMAGES[1]), str(IMAGES[0])],
         "image_as": "pil", "temperature": 0.7},
        {"control": "reset_encoder_cache"},
        {"id": "option", "prompt": one, "images": [str(IMAGES[0])],
         "mm_processor_kwargs": {"invert": True}},
        {"id": "salt", "prompt": one, "images": [str(IMAGES[0])], "cache_salt": "x",
         "mm_uuids": ["mine"]},
        {"id": "ids", "prompt_token_ids": [1, 4, *(20 + i % 60 for i in range(120)), 5]},
        {"id": "turns", "messages": [
            {"role": "user", "content": [image_part(2), text_part("Read:")]},
            {"role": "assistant", "content": "ABC"},
            {"role": "user", "content": [text_part("And this one? "), image_part(3)]}]},
    ])
    code, report = replay(requests, "glyphocr", "float32", "--max-num-batched-tokens", "64",
                          "--port", "9000")

    assert (0, "SAME") == (code, report["status"])
    assert 12 == report["coverage"]["runs"]
    assert report["coverage"]["chunked_prefills"] >= 6
    assert any("temperature of pil" in note for note in report["notes"])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_every_tail_is_same(replay, tmp_path, dtype):
    """Prompts of 33 lengths in a row: hits with tails from 1 token to a block, no false alarm."""
    words = "Please read the text in this image, all of it, now."
    requests = write(tmp_path / "tails.jsonl", [
        {"id": f"t{i}", "prompt": f"<s><user>{words[:i + 2]}<image><assistant>",
         "images": [str(IMAGES[i % 16])], "max_tokens": 40} for i in range(33)])
    code, report = replay(requests, "glyphocr", dtype)

    assert (0, "SAME") == (code, report["status"])
    assert set(range(1, 33)) <= set(report["coverage"]["tails"])
