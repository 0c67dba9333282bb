"""A folder to write request files and pictures into."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

from vcachediag.errors import RequestFileError
from vcachediag.requests import Request, RequestFile, read_requests

Read = Callable[..., RequestFile]
ReadOne = Callable[[dict[str, Any]], Request]
Fail = Callable[..., RequestFileError]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, so that messages hold no path but the file's name."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def png() -> bytes:
    """A grey picture, 4 wide and 3 high."""
    buffer = io.BytesIO()
    Pillow.new("L", (4, 3), 200).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture
def read(folder: Path) -> Read:
    """Write objects (or raw bytes) as `requests.jsonl`, one a line, and read it."""

    def read(*lines: dict[str, Any] | bytes) -> RequestFile:
        data = b"\n".join(
            line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines
        )
        (folder / "requests.jsonl").write_bytes(data)
        return read_requests(Path("requests.jsonl"))

    return read


@pytest.fixture
def read_one(read: Read) -> ReadOne:
    """Read a file of one request."""
    return lambda line: read(line).requests[0]


@pytest.fixture
def fail(read: Read) -> Fail:
    """Read a file that is wrong, and return the error."""

    def fail(*lines: dict[str, Any] | bytes) -> RequestFileError:
        with pytest.raises(RequestFileError) as caught:
            read(*lines)
        return caught.value

    return fail
