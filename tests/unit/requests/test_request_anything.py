"""Whatever a file holds, reading it ends in requests or in one kind of error."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vcachediag.errors import RequestFileError
from vcachediag.requests import read_requests
from vcachediag.requests.fields import BATCH, KNOWN
from vcachediag.requests.images import load_image
from vcachediag.requests.where import Where

relaxed = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["user", "text", "image_url", "a.png", "data:image/png;base64,AAAA"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.text(max_size=4)
        | st.sampled_from(["role", "content", "type", "image_url", "url", "text", "uuid"]),
        inner, max_size=4,
    ),
    max_leaves=12,
)
lines = st.dictionaries(
    st.sampled_from(sorted(KNOWN | BATCH | {"control"})) | st.text(max_size=5),
    values, min_size=1, max_size=4,
)
part = st.dictionaries(
    st.sampled_from(["type", "text", "image_url", "uuid", "detail"]),
    st.sampled_from(["text", "image_url", "input_image", "a.png", ""]) | values, max_size=4,
)
chats = st.builds(
    lambda content, more: {**more, "messages": [{"role": "user", "content": content}]},
    st.lists(part, max_size=3), lines,
)


def error_of(action: Callable[[], Any]) -> RequestFileError | None:
    """Do something; return the one kind of error that it may raise, if it does."""
    try:
        action()
    except RequestFileError as error:
        return error
    return None


def check(path: Path, data: bytes) -> None:
    """Read `data`; what it gives can be written to a trace, what it raises can be shown."""
    path.write_bytes(data)

    error = error_of(lambda: msgspec.json.encode(read_requests(path)))

    if error is not None:
        shown = error.message.removeprefix(str(path))
        assert shown.startswith(":")
        assert len(shown) < 400
        assert (shown + (error.cause or "")).isprintable()


@relaxed
@given(data=st.binary(max_size=200))
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    """Arbitrary bytes are read or refused, never a traceback."""
    check(tmp_path / "requests.jsonl", data)


@relaxed
@given(items=st.lists(lines | chats, min_size=1, max_size=3), array=st.booleans())
def test_any_json(tmp_path: Path, png: bytes, items: list[dict[str, Any]], array: bool) -> None:
    """Arbitrary values under known and unknown names are read or refused, never a traceback."""
    (tmp_path / "a.png").write_bytes(png)
    text = json.dumps(items) if array else "\n".join(map(json.dumps, items))

    check(tmp_path / "requests.jsonl", text.encode())


@relaxed
@given(start=st.integers(0, 80), noise=st.binary(max_size=20), reference=st.text(max_size=12))
def test_any_picture(
    tmp_path: Path, png: bytes, start: int, noise: bytes, reference: str
) -> None:
    """A damaged picture and an arbitrary reference are read or refused, never a traceback."""
    (tmp_path / "a.png").write_bytes(png[:start] + noise + png[start + len(noise) :])
    where = Where(path=Path("requests.jsonl"), line=1)

    for name in ("a.png", reference):
        error = error_of(functools.partial(load_image, name, base=tmp_path, where=where))

        assert error is None or (error.message + (error.cause or "")).isprintable()


@pytest.mark.parametrize("depth", [99, 5_000, 200_000])
def test_any_depth(tmp_path: Path, depth: int) -> None:
    """No nesting runs the reader out of stack."""
    data = b'{"prompt": "a", "extra_args": {"x": %s}}' % (b"[" * depth + b"]" * depth)
    path = tmp_path / "requests.jsonl"
    path.write_bytes(data)

    with pytest.raises(RequestFileError, match="nested more than 100 levels deep"):
        read_requests(path)
