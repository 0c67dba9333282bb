"""The shapes that a request may have, and what becomes of each."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vcachediag.requests import Control, Image, Request, RequestFile, read_requests
from vcachediag.requests.lines import read_objects

Read = Callable[..., RequestFile]
ReadOne = Callable[[dict[str, Any]], Request]


@pytest.fixture
def page(folder: Path, png: bytes) -> Image:
    """`page.png` in the folder, as it should be read."""
    (folder / "page.png").write_bytes(png)
    return Image(
        label="page.png", data=png, media_type="image/png", width=4, height=3, mode="L"
    )


def test_own_shape_fills_every_field(read_one: ReadOne, page: Image) -> None:
    """Each field of our own shape arrives in its place, unchanged."""
    expected = Request(
        id="a", source="requests.jsonl:1", prompt="<image>read", images=(page,), image_as="pil",
        max_tokens=9, sampling={"temperature": 0, "stop": ["x"]},
        chat_options={"add_special_tokens": False}, cache_salt="s", mm_uuids=("u",),
        mm_processor_kwargs={"crop": 1}, lora="n=p", expect="",
    )

    actual = read_one({
        "id": "a", "prompt": "<image>read", "images": ["page.png"], "image_as": "pil",
        "max_tokens": 9, "temperature": 0, "stop": ["x"], "add_special_tokens": False,
        "cache_salt": "s", "mm_uuids": ["u"], "mm_processor_kwargs": {"crop": 1},
        "lora": "n=p", "expect": "",
    })

    assert expected == actual


def test_token_ids_are_a_prompt(read_one: ReadOne) -> None:
    """A prompt may be given as token ids, under its own name."""
    expected = Request(id="r1", source="requests.jsonl:1", prompt_token_ids=(1, 0, 7))

    assert expected == read_one({"prompt_token_ids": [1, 0, 7]})


@pytest.mark.parametrize(
    ("prompt", "text", "token_ids"),
    [("a", "a", None), (["a"], "a", None), ([3, 4], None, (3, 4)), ([[3, 4]], None, (3, 4))],
)
def test_completion_prompt_has_four_forms(
    read_one: ReadOne, prompt: object, text: str | None, token_ids: tuple[int, ...] | None
) -> None:
    """A completion body's prompt is text or token ids, bare or as a list of one."""
    actual = read_one({"prompt": prompt})

    assert (text, token_ids) == (actual.prompt, actual.prompt_token_ids)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "page.png", "detail": "low"}},
        {"type": "image_url", "image_url": "page.png"},
        {"type": "input_image", "image_url": "page.png", "detail": "auto"},
        {"image_url": "page.png"},
    ],
)
def test_chat_image_parts_are_numbered(
    read_one: ReadOne, page: Image, part: dict[str, object]
) -> None:
    """Every way to write an image part gives the picture and a numbered part in its place."""
    text = {"type": "text", "text": "read"}

    actual = read_one({"messages": [{"role": "user", "content": [part, text, "this"]}]})

    assert (page,) == actual.images
    assert (
        {"role": "user", "content": [{"type": "image", "index": 0}, text, "this"]},
    ) == actual.messages
    assert actual.mm_uuids is None


@pytest.mark.usefixtures("page")
def test_images_are_numbered_across_messages(read_one: ReadOne, png: bytes) -> None:
    """Numbers go on from message to message; uuids and keys meant for the template are kept."""
    url = "data:image/png;base64," + base64.b64encode(png).decode()

    actual = read_one({"messages": [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "image_url", "image_url": "page.png"}]},
        {"role": "assistant", "tool_calls": []},
        {"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": url}, "uuid": "u", "max_pixels": 5},
        ]},
    ]})

    assert ["page.png", f"data:image/png ({len(png)} bytes)"] == [
        image.label for image in actual.images
    ]
    assert (None, "u") == actual.mm_uuids
    assert (
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "image", "index": 0}]},
        {"role": "assistant", "tool_calls": []},
        {"role": "user", "content": [{"type": "image", "index": 1, "max_pixels": 5}]},
    ) == actual.messages


def test_chat_options_are_kept_apart_from_sampling(read_one: ReadOne) -> None:
    """What shapes the prompt and what shapes the answer land in their own fields."""
    actual = read_one({
        "messages": [{"role": "user", "content": "a"}], "top_k": 1,
        "chat_template_kwargs": {"x": 1}, "truncate_prompt_tokens": 5,
    })

    assert {"top_k": 1} == actual.sampling
    assert {"chat_template_kwargs": {"x": 1}, "truncate_prompt_tokens": 5} == actual.chat_options


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_both_names_of_the_token_limit(read_one: ReadOne, name: str) -> None:
    """OpenAI's newer name means the same."""
    assert read_one({"prompt": "a", name: 3}).max_tokens == 3


def test_batch_lines(read: Read) -> None:
    """A batch line is its body, named by its custom_id; our own fields may stand next to it."""
    chat = {"model": "m", "messages": [{"role": "user", "content": "a"}], "max_tokens": 5}

    actual = read(
        {"custom_id": "c", "method": "POST", "url": "/v1/chat/completions", "body": chat,
         "expect": "b"},
        {"custom_id": "d", "url": "/v1/completions", "body": {"prompt": "a"}},
    )

    assert (
        Request(
            id="c", source="requests.jsonl:1", messages=({"role": "user", "content": "a"},),
            max_tokens=5, expect="b",
        ),
        Request(id="d", source="requests.jsonl:2", prompt="a"),
    ) == actual.items


def test_control_lines_stand_between_requests(read: Read) -> None:
    """A control line keeps its place and everything else on it."""
    actual = read(
        {"prompt": "a"}, {"control": "sleep", "level": 2}, {"control": "reset_mm_cache"},
        {"prompt": "b"},
    )

    assert (
        Request(id="r1", source="requests.jsonl:1", prompt="a"),
        Control(source="requests.jsonl:2", name="sleep", arguments={"level": 2}),
        Control(source="requests.jsonl:3", name="reset_mm_cache"),
        Request(id="r2", source="requests.jsonl:4", prompt="b"),
    ) == actual.items


def test_blank_lines_count_and_byte_order_mark_does_not_matter(read: Read) -> None:
    """Line numbers are the editor's, and files saved by Windows programs are read."""
    actual = read(b"\xef\xbb\xbf\r", b" \t\r", b'{"prompt": "\xc3\xa4"}\r', b"")

    assert (Request(id="r1", source="requests.jsonl:3", prompt="ä"),) == actual.items


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_json_array(folder: Path, mark: str) -> None:
    """One array holds the requests as well, over as many lines as it likes."""
    text = mark + '\n[{"prompt":\n"a"}, {"prompt": "b"}\n,\n{"prompt": "c"}\n]\n'
    (folder / "requests.json").write_text(text, encoding="utf-8")

    actual = read_requests(Path("requests.json"))

    assert [("r1", "requests.json:2"), ("r2", "requests.json:3"), ("r3", "requests.json:5")] == [
        (request.id, request.source) for request in actual.requests
    ]


def test_fields_without_effect_are_noted_once(read: Read) -> None:
    """Ignored fields are named in one note for the whole file, not per line."""
    actual = read(
        {"prompt": "a", "stream": True, "model": "m", "tools": []},
        {"prompt": "b", "model": "m", "user": None, "n": 1, "logprobs": None},
    )

    assert ("fields without effect here, ignored: `model`, `stream`, `tools`",) == actual.notes
    assert [{}, {}] == [request.sampling for request in actual.requests]


def test_nothing_ignored_no_note(read: Read) -> None:
    """A file of which every field counts has no notes."""
    assert () == read({"prompt": "a", "seed": 1}).notes


def test_null_is_as_good_as_absent(read_one: ReadOne) -> None:
    """Clients that write every optional field as null are understood."""
    line = dict.fromkeys(["messages", "images", "id", "lora", "temperature", "max_tokens"])

    expected = Request(id="r1", source="requests.jsonl:1", prompt="a")

    assert expected == read_one({"prompt": "a", **line})


def test_lines_are_read_one_by_one(folder: Path) -> None:
    """A JSONL file is a stream: a request is there before the lines after it are looked at."""
    path = folder / "requests.jsonl"
    path.write_bytes(b'{"prompt": "a"}\n\xff')

    _, actual = next(read_objects(path))

    assert {"prompt": "a"} == actual
