"""Every mistake in a request file, and the line that is shown for it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vcachediag.errors import ExitCode, RequestFileError
from vcachediag.requests import read_requests

Fail = Callable[..., RequestFileError]

PROMPT = {"prompt": "a"}
USER = {"role": "user", "content": "a"}
SHAPE = "one JSON object a line (JSONL), or one JSON array of objects"


def user(content: Any) -> dict[str, Any]:
    """Return a chat body with one message."""
    return {"messages": [{"role": "user", "content": content}]}


FIELD_ERRORS: list[tuple[dict[str, Any], str]] = [
    ({"prompt": "a", "imges": []}, "unknown field `imges` (did you mean `images`?)"),
    ({"prompt": "a", "zzzzzz": None}, "unknown field `zzzzzz`"),
    ({"prompt": "a", "\x1b[31m\n": 1}, "unknown field `\\x1b[31m\\n`"),
    ({"prompt": "a", "x" * 99: 1}, f"unknown field `{'x' * 60}…`"),
    ({"body": {"prompt": "a", "temprature": 1}},
     "`body`: unknown field `temprature` (did you mean `temperature`?)"),
    # the prompt
    ({}, "there is no `prompt`, `prompt_token_ids` or `messages`"),
    ({"prompt": "a", "messages": [USER]},
     "`prompt` and `messages` are both given; a request has one"),
    ({"prompt": ""}, "`prompt` is empty"),
    ({"prompt": []}, "`prompt` is empty"),
    ({"prompt": [""]}, "`prompt` is empty"),
    ({"prompt": 0}, "`prompt` must be a string, not 0"),
    ({"prompt": {}}, "`prompt` must be a string, not an object"),
    ({"prompt": ["a", "b"]}, "`prompt` holds 2 prompts; give one a line"),
    ({"prompt": [1, "b"]},
     "`prompt` must be a list of token ids, whole numbers of at least 0, not a list"),
    ({"prompt_token_ids": []}, "`prompt_token_ids` is empty"),
    ({"prompt_token_ids": "1"},
     '`prompt_token_ids` must be a list of token ids, whole numbers of at least 0, not "1"'),
    ({"prompt_token_ids": [True]},
     "`prompt_token_ids` must be a list of token ids, whole numbers of at least 0, not a list"),
    ({"prompt": "a", "images": "a.png"},
     '`images` must be a list of paths and data URLs, not "a.png"'),
    ({"prompt": "a", "images": [""]},
     "`images` must be a list of paths and data URLs, not a list"),
    # ids
    ({"prompt": "a", "id": 5}, "`id` must be a string that is not empty, not 5"),
    ({"prompt": "a", "id": ""}, '`id` must be a string that is not empty, not ""'),
    *(
        ({"prompt": "a", name: value},
         f"`{name}` must be of printable characters without blanks, `#` and `/`, not \"{shown}\"")
        for name, value, shown in [
            ("id", "a b", "a b"), ("id", "a#1", "a#1"), ("custom_id", "a/b", "a/b"),
            ("id", "a\t", "a\\t"), ("id", "a\u202e", "a\\u202e"),
        ]
    ),
    ({"prompt": "a", "id": "a", "custom_id": "a"},
     "`id` and `custom_id` are both given; one is enough"),
    # limits and sampling
    ({"prompt": "a", "max_tokens": -1},
     "`max_tokens` must be a whole number of at least 1, not -1"),
    ({"prompt": "a", "max_completion_tokens": 0},
     "`max_completion_tokens` must be a whole number of at least 1, not 0"),
    ({"prompt": "a", "max_tokens": 1.0},
     "`max_tokens` must be a whole number of at least 1, not 1.0"),
    ({"prompt": "a", "max_tokens": True},
     "`max_tokens` must be a whole number of at least 1, not true"),
    ({"prompt": "a", "max_tokens": 1, "max_completion_tokens": 2},
     "`max_tokens` and `max_completion_tokens` differ; one is enough"),
    ({"prompt": "a", "n": 2}, "`n` cannot be replayed: one answer per request is compared"),
    ({"prompt": "a", "n": True}, "`n` cannot be replayed: one answer per request is compared"),
    ({"prompt": "a", "best_of": 3},
     "`best_of` cannot be replayed: one answer per request is compared"),
    ({"prompt": "a", "use_beam_search": True},
     "`use_beam_search` cannot be replayed: one answer per request is compared"),
    ({"prompt_embeds": "AA=="},
     "`prompt_embeds` cannot be replayed: blocks are told apart by tokens; give `prompt` or "
     "`messages`"),
    ({"prompt": "a", "suffix": "b"},
     "`suffix` cannot be replayed: write the whole text into `prompt`, as the model expects it"),
    ({"prompt": "a", "temperature": -0.5},
     "`temperature` must be a number of at least 0, not -0.5"),
    ({"prompt": "a", "temperature": "0"},
     '`temperature` must be a number of at least 0, not "0"'),
    ({"prompt": "a", "top_p": 1.5}, "`top_p` must be a number from 0 to 1, not 1.5"),
    ({"prompt": "a", "repetition_penalty": 0},
     "`repetition_penalty` must be a number above 0, not 0"),
    ({"prompt": "a", "presence_penalty": []},
     "`presence_penalty` must be a number, not an empty list"),
    ({"prompt": "a", "seed": 1.5}, "`seed` must be a whole number, not 1.5"),
    ({"prompt": "a", "min_tokens": -1},
     "`min_tokens` must be a whole number of at least 0, not -1"),
    ({"prompt": "a", "stop": 5}, "`stop` must be a string or a list of strings, not 5"),
    ({"prompt": "a", "bad_words": "x"}, '`bad_words` must be a list of strings, not "x"'),
    ({"prompt": "a", "ignore_eos": 1}, "`ignore_eos` must be true or false, not 1"),
    ({"prompt": "a", "logit_bias": [1]}, "`logit_bias` must be an object, not a list"),
    ({"prompt": "a", "truncation_side": {}}, "`truncation_side` must be a string, not an object"),
    ({"messages": [USER], "tools": "x"}, '`tools` must be a list, not "x"'),
    # ours
    ({"prompt": "a", "image_as": "pill"}, '`image_as` must be `encoded` or `pil`, not "pill"'),
    ({"prompt": "a", "cache_salt": ""}, '`cache_salt` must be a string that is not empty, not ""'),
    ({"prompt": "a", "mm_processor_kwargs": 1}, "`mm_processor_kwargs` must be an object, not 1"),
    ({"prompt": "a", "lora": "x"}, '`lora` must be `name=path` of an adapter, not "x"'),
    ({"prompt": "a", "expect": 1}, "`expect` must be a string, not 1"),
    ({"prompt": "a", "mm_uuids": "u"},
     '`mm_uuids` must be a list of strings that are not empty, or null, not "u"'),
    ({"prompt": "a", "mm_uuids": ["u"]},
     "`mm_uuids` needs one entry per image: has 1, images: 0"),
    ({**user([{"image_url": "no.png", "uuid": "u"}]), "mm_uuids": ["u"]},
     "`messages[0].content[0].image_url`: cannot read `no.png`"),
    # messages
    ({"messages": []}, "`messages` is empty"),
    ({"messages": "hi"}, '`messages` must be a list, not "hi"'),
    ({"messages": ["hi"]}, '`messages[0]` must be an object, not "hi"'),
    ({"messages": [{"content": "a"}]},
     "`messages[0].role` must be a string that is not empty, not null"),
    ({"messages": [USER, {"role": "user"}]}, "`messages[1]` has no `content`"),
    (user(5), "`messages[0].content` must be a string or a list of parts, not 5"),
    (user([5]), "`messages[0].content[0]` must be an object, not 5"),
    (user([{"text": "a"}]),
     "`messages[0].content[0].type` must be a string that is not empty, not null"),
    (user([{"type": "text"}]), "`messages[0].content[0].text` must be a string, not null"),
    (user([{"type": "video_url", "video_url": "a"}]),
     "`messages[0].content[0]` is of type `video_url`, and only text and images are replayed"),
    (user([{"type": "image_url"}]),
     "`messages[0].content[0].image_url` must be a string that is not empty, not null"),
    (user([{"type": "image_url", "image_url": {}}]),
     "`messages[0].content[0].image_url.url` must be a string that is not empty, not null"),
    (user([{"image_url": "a", "uuid": 1}]),
     "`messages[0].content[0].uuid` must be a string that is not empty, not 1"),
    (user([{"image_url": None, "uuid": "u"}]),
     "`messages[0].content[0]` names its picture by `uuid` alone"),
    ({"messages": [USER], "images": ["a.png"]}, "`images` goes with `prompt`"),
    # batch lines
    ({"prompt": "a", "url": "/v1/completions"},
     "`url` belongs to a batch line, and there is no `body`"),
    ({"body": []}, "`body` must be an object, not an empty list"),
    ({"body": {"prompt": "a", "expect": "b"}, "expect": "b"},
     "`expect` is both in `body` and next to it"),
    ({"method": "GET", "body": PROMPT}, '`method` must be `POST`, not "GET"'),
    ({"url": "/v1/embeddings", "body": PROMPT},
     '`url` must be `/v1/chat/completions` or `/v1/completions`, not "/v1/embeddings"'),
    ({"url": "/v1/chat/completions", "body": PROMPT},
     "`url` is `/v1/chat/completions`, and `body` is not for it"),
    # control lines
    ({"control": "reset_mm_cach"},
     "`control` must be `reset_prefix_cache` or `reset_mm_cache` or `reset_encoder_cache` or "
     '`sleep` or `wake_up` or `collective_rpc`, not "reset_mm_cach" (did you mean '
     "`reset_mm_cache`?)"),
    ({"control": None},
     "`control` must be `reset_prefix_cache` or `reset_mm_cache` or `reset_encoder_cache` or "
     "`sleep` or `wake_up` or `collective_rpc`, not null"),
    ({"control": "collective_rpc"}, "`method` must be a string that is not empty, not null"),
]


@pytest.mark.parametrize(("line", "message"), FIELD_ERRORS, ids=[m for _, m in FIELD_ERRORS])
def test_field_errors(fail: Fail, line: dict[str, Any], message: str) -> None:
    """A mistake in a field is one line that names file, line and field."""
    assert f"requests.jsonl:2: {message}" == fail(PROMPT, line).message


def test_mm_uuids_twice(fail: Fail, folder: Path, png: bytes) -> None:
    """Identifiers come from the parts or from the list, never from both."""
    (folder / "a.png").write_bytes(png)

    error = fail({**user([{"image_url": "a.png", "uuid": "u"}]), "mm_uuids": ["u"]})

    assert (
        "requests.jsonl:1: `mm_uuids` is given, and so is the `uuid` of a part; one is enough"
    ) == error.message


def test_duplicate_id_names_both_lines(fail: Fail) -> None:
    """Two requests with one id: both places are named."""
    error = fail({"prompt": "a", "id": "x"}, b"", {"prompt": "b", "custom_id": "x"})

    assert "requests.jsonl:3: id `x` is taken: line 1 has it" == error.message


def test_duplicate_of_a_number_is_explained(fail: Fail) -> None:
    """An id that meets an automatic one says where that came from."""
    error = fail({"prompt": "a"}, {"prompt": "b", "id": "r1"})

    assert (
        "requests.jsonl:2: id `r1` is taken: line 1 has it",
        "a request without an id is numbered: r1, r2, ...",
    ) == (error.message, error.hint)


JSON_ERRORS: list[tuple[bytes, str]] = [
    (b"{prompt: 1}",
     "not JSON: expecting property name enclosed in double quotes (column 2)"),
    (b'{"prompt": "a"} {}', "not JSON: more text after the end (column 17)"),
    (b'{"prompt": ', "not JSON: expecting value (column 12)"),
    (b'{"prompt": "a\tb"}', "not JSON: invalid control character at (column 14)"),
    (b'{"prompt": "a", "seed": NaN}', "not JSON: `NaN` is not a number"),
    (b'{"prompt": "a", "seed": -Infinity}', "not JSON: `-Infinity` is not a number"),
    (b'{"prompt": "a", "seed": 18446744073709551616}',
     "the number `18446744073709551616` is too large"),
    (b'{"prompt": "a", "seed": ' + b"9" * 5000 + b"}",
     f"the number `{'9' * 60}…` is too large"),
    (b'{"prompt": "a", "seed": 1e999}', "the number `1e999` is too large"),
    (b'{"prompt": "a", "prompt": "b"}', "`prompt` is given twice"),
    (b'{"prompt": "\\ud800"}', "not text: `\\ud800` is half of a surrogate pair"),
    (b'"prompt"', 'a request must be an object, not "prompt"'),
    (b"[]", "a request must be an object, not an empty list"),
    (b'{"prompt": "\xff"}', "not UTF-8 text"),
    (b'{"extra_args": ' + b"[" * 120 + b"]" * 120 + b"}", "nested more than 100 levels deep"),
    (b"[" * 100_000, "nested more than 100 levels deep"),
]


@pytest.mark.parametrize(("line", "message"), JSON_ERRORS, ids=[m for _, m in JSON_ERRORS])
def test_json_errors(fail: Fail, line: bytes, message: str) -> None:
    """Text that is not JSON, or not what any program can hold, is placed by line and column."""
    assert f"requests.jsonl:2: {message}" == fail(PROMPT, line).message


def test_surrogate_pairs_and_limits_are_fine(folder: Path) -> None:
    """What comes close to the errors above and is right is read."""
    deep: Any = {"extra_args": {}, "prompt": "😀", "seed": 2**63}
    for _ in range(97):
        deep["extra_args"] = {"x": deep["extra_args"]}
    (folder / "requests.jsonl").write_text(json.dumps(deep))

    actual = read_requests(Path("requests.jsonl")).requests[0]

    assert ("😀", 2**63) == (actual.prompt, actual.sampling["seed"])


ARRAY_ERRORS: list[tuple[bytes, str]] = [
    (b"[{},", "1: item 1: there is no `prompt`, `prompt_token_ids` or `messages`"),
    (b'[{"prompt": "a"},\n{"id": 4, "prompt": "b"}]',
     "2: item 2: `id` must be a string that is not empty, not 4"),
    (b'[{"id": "a", "prompt": "a"}, {"id": "a", "prompt": "a"}]',
     "1: item 2: id `a` is taken: line 1, item 1 has it"),
    (b'[\n{"prompt": "a"}\n{"prompt": "b"}]', "3: not JSON: expected `,` or `]` (column 1)"),
    (b'[{"prompt": "a"},\n]', "2: not JSON: expecting value (column 1)"),
    (b'[\n{"prompt":\n x}]', "3: not JSON: expecting value (column 2)"),
    (b'[{"prompt": "a"}]\n  {}', "2: not JSON: more text after the end (column 3)"),
    (b'[{"prompt": "a"}', "1: not JSON: expected `,` or `]` (column 17)"),
    (b"[5]", "1: item 1: a request must be an object, not 5"),
    (b'[\n{"prompt": "\xff"}]', "2: not UTF-8 text"),
]


@pytest.mark.parametrize(("data", "message"), ARRAY_ERRORS, ids=[m for _, m in ARRAY_ERRORS])
def test_array_errors(fail: Fail, data: bytes, message: str) -> None:
    """In an array, the line is that of the text, and the item is named as well."""
    assert f"requests.jsonl:{message}" == fail(data).message


@pytest.mark.parametrize("data", [b"", b"\n \r\n", b"[]", b"\xef\xbb\xbf", b'{"control": "sleep"}'])
def test_no_request(fail: Fail, data: bytes) -> None:
    """A file without requests is a mistake, not a success without findings."""
    error = fail(data)

    assert ("requests.jsonl: holds no request", SHAPE) == (error.message, error.hint)


def test_file_errors(folder: Path) -> None:
    """A file that cannot be opened says why, and ends with the exit code of files."""
    (folder / "scans").mkdir()

    for name, reason in [
        ("no.jsonl", "no such file"),
        ("scans", "it is a directory"),
        ("x" * 999, "file name too long"),
        ("a\0", "embedded null byte"),
    ]:
        with pytest.raises(RequestFileError) as caught:
            read_requests(Path(name))

        assert f"{name}: cannot be read: {reason}" == caught.value.message
        assert ExitCode.FILE == caught.value.exit_code


def test_utf8_error_has_cause_and_hint(fail: Fail) -> None:
    """A file in another encoding is told which byte gave it away and what to do."""
    error = fail(b'{"prompt": "\xe4"}')

    assert ("byte 0xe4", "save the file as UTF-8") == (error.cause, error.hint)
