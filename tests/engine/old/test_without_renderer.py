"""What is done in another way on a vLLM that has no renderer yet; see README.md beside it."""

import importlib.util
import json
from pathlib import Path

import pytest

from tests.engine.conftest import IMAGES

FOUND = importlib.util.find_spec("vllm")
VLLM = Path(FOUND.origin).parent if FOUND and FOUND.origin else None
pytestmark = [
    pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(600),
    pytest.mark.skipif(VLLM is None or (VLLM / "renderers" / "base.py").exists(),
                       reason="needs a vLLM without a renderer, 0.10 for instance")]
ONE = "<s><user><image>Read the negative, a long instruction of some words.<assistant>"
TWO = "<s><user>Read both lines of this, please: <image> and <image><assistant>"


def image_part(number):
    """An image as a part of a chat message."""
    return {"type": "image_url", "image_url": {"url": str(IMAGES[number])}}


def write(path, lines):
    """A request file of `lines`."""
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return str(path)


def test_every_kind_of_request_is_same(replay, tmp_path):
    """Two images, PIL objects, options, salt, text, token ids, two turns and control lines, with
    prompts that the user's own token budget cuts.
    """
    requests = write(tmp_path / "kinds.jsonl", [
        {"id": "two", "prompt": TWO, "images": [str(IMAGES[0]), str(IMAGES[1])]},
        {"id": "pil", "prompt": TWO, "images": [str(IMAGES[1]), str(IMAGES[0])],
         "image_as": "pil"},
        {"control": "reset_encoder_cache"},
        {"control": "reset_prefix_cache"},
        {"id": "option", "prompt": ONE, "images": [str(IMAGES[0])],
         "mm_processor_kwargs": {"invert": True}},
        {"id": "salt", "prompt": ONE, "images": [str(IMAGES[0])], "cache_salt": "x"},
        {"id": "text", "prompt": f"<s><user>{'No image here. ' * 8}<assistant>"},
        {"id": "ids", "prompt_token_ids": [1, 4, *(20 + i % 60 for i in range(120)), 5]},
        {"id": "turns", "messages": [
            {"role": "user", "content": [image_part(2), {"type": "text", "text": "Read:"}]},
            {"role": "assistant", "content": "ABC"},
            {"role": "user", "content": [{"type": "text", "text": "And this one? "},
                                         image_part(3)]}]},
    ])
    code, report = replay(requests, "glyphocr", "float32", "--max-num-batched-tokens", "64",
                          "--max-num-seqs", "16",
                          "--port", "9000")

    assert (0, "SAME") == (code, report["status"])
    assert 14 == report["coverage"]["runs"]
    assert report["coverage"]["chunked_prefills"] >= 6
    uncached = [run for run in report["requests"] if run["lane"].startswith("reference")]
    assert {0} == {run["cached_tokens"] for run in uncached}


@pytest.mark.parametrize("request_line", [
    {"id": "named", "prompt": ONE, "images": [str(IMAGES[0])], "mm_uuids": ["mine"]},
    {"id": "named", "mm_uuids": ["mine"],
     "messages": [{"role": "user", "content": [image_part(0)]}]},
])
def test_identifiers_are_taken_or_refused(replay, tmp_path, request_line):
    """Identifiers for images are never left out silently: a vLLM that knows none refuses them."""
    requests = write(tmp_path / "named.jsonl", [request_line])
    assert VLLM is not None
    if "multi_modal_uuids" in (VLLM / "inputs" / "data.py").read_text():
        code, report = replay(requests, "glyphocr", "float32")
        assert (0, "SAME") == (code, report["status"])
    else:
        with pytest.raises(AssertionError, match="this vLLM takes no identifiers for images"):
            replay(requests, "glyphocr", "float32")


def test_no_room_for_the_answer_is_refused(replay, tmp_path):
    """A prompt that leaves no room for its answer is refused before anything runs."""
    line = {"id": "long", "messages": [{"role": "user", "content": "word " * 1000}]}
    with pytest.raises(AssertionError, match="vLLM refuses request `long`"):
        replay(write(tmp_path / "long.jsonl", [line]), "glyphocr", "float32")
