"""How a picture is found, read and checked."""

import base64
import io
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from PIL import Image as Pillow

from vcachediag.errors import RequestFileError
from vcachediag.requests import Image, RequestFile
from vcachediag.requests.images import load_image
from vcachediag.requests.where import Where

Read = Callable[..., RequestFile]
Fail = Callable[..., RequestFileError]

HERE = Where(path=Path("requests.jsonl"), line=3, field="images[0]")
AT = "requests.jsonl:3: `images[0]`: "


def fails(reference: str, base: Path) -> tuple[str, str | None, str | None]:
    """Load a picture that cannot be loaded; return what the error says."""
    with pytest.raises(RequestFileError) as caught:
        load_image(reference, base=base, where=HERE)
    return caught.value.message, caught.value.cause, caught.value.hint


def chunk(kind: bytes, data: bytes) -> bytes:
    """Return one chunk of a PNG file."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(
        ">I", zlib.crc32(kind + data)
    )


def header(width: int, height: int) -> bytes:
    """Return the head of a PNG file that claims this size."""
    return b"\x89PNG\r\n\x1a\n" + chunk(
        b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    )


@pytest.mark.parametrize("template", ["{}", "file:{}", "file://{}", "file://localhost{}"])
def test_absolute_paths_and_file_urls(tmp_path: Path, png: bytes, template: str) -> None:
    """An absolute path is itself, whatever the base; in URLs, percent escapes are decoded."""
    path = tmp_path / "a page.png"
    path.write_bytes(png)
    shown = str(path) if template == "{}" else quote(str(path))

    actual = load_image(template.format(shown), base=Path("/nowhere"), where=HERE)

    assert png == actual.data


@pytest.mark.parametrize("reference", ["in/50%25.png", "file:in/50%2525.png", "FILE://in/50%2525.png"])
def test_relative_paths_start_at_the_base(tmp_path: Path, png: bytes, reference: str) -> None:
    """Relative paths start at the request file's folder; plain ones are not decoded."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "50%25.png").write_bytes(png)

    actual = load_image(reference, base=tmp_path, where=HERE)

    assert (reference, png) == (actual.label, actual.data)


@pytest.mark.parametrize(
    ("mode", "form", "media_type"),
    [("RGB", "JPEG", "image/jpeg"), ("P", "PNG", "image/png"), ("1", "TIFF", "image/tiff"),
     ("RGBA", "WEBP", "image/webp")],
)
def test_what_is_known_of_a_picture(
    tmp_path: Path, mode: str, form: str, media_type: str
) -> None:
    """Type, size and mode come from the bytes, not from the name; the bytes stay as they are."""
    path = tmp_path / "picture.png"
    Pillow.new(mode, (5, 2)).save(path, form)

    actual = load_image("picture.png", base=tmp_path, where=HERE)

    assert Image(
        label="picture.png", data=path.read_bytes(), media_type=media_type, width=5, height=2,
        mode=mode,
    ) == actual


def test_data_url(png: bytes) -> None:
    """A data URL is decoded; its label is short, and what it claims about its type is not used."""
    url = "data:image/jpeg;base64," + base64.b64encode(png).decode()

    actual = load_image(url, base=Path("/nowhere"), where=HERE)

    assert (png, "image/png", f"data:image/jpeg ({len(png)} bytes)") == (
        actual.data, actual.media_type, actual.label,
    )


def test_a_path_is_read_once(read: Read, folder: Path, png: bytes) -> None:
    """Requests that name the same file share its bytes, each under the name it gave."""
    (folder / "a.png").write_bytes(png)

    actual = read(
        {"prompt": "a", "images": ["a.png", "./a.png"]}, {"prompt": "b", "images": ["file:a.png"]}
    )

    images = [image for request in actual.requests for image in request.images]
    assert ["a.png", "./a.png", "file:a.png"] == [image.label for image in images]
    assert len({id(image.data) for image in images}) == 1


RELATIVE = "paths are relative to the folder of the request file"


@pytest.mark.parametrize("reference", ["no.png", "file:no.png"])
def test_missing_file(tmp_path: Path, reference: str) -> None:
    """A picture that is not there is named, with where paths start."""
    expected = (f"{AT}cannot read `{reference}`", "no such file", RELATIVE)

    assert expected == fails(reference, tmp_path)


def test_directory(tmp_path: Path) -> None:
    """A folder in place of a picture is called one."""
    (tmp_path / "scans").mkdir()

    expected = (f"{AT}cannot read `scans`", "it is a directory", RELATIVE)

    assert expected == fails("scans", tmp_path)


def test_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """A pipe is refused instead of read, which would never end."""
    os.mkfifo(tmp_path / "pipe")

    expected = (f"{AT}cannot read `pipe`", "it is not a regular file", RELATIVE)

    assert expected == fails("pipe", tmp_path)


def test_impossible_path(tmp_path: Path) -> None:
    """A path that the system cannot even ask for is an error like any other, shown escaped."""
    message, cause, _ = fails("a\x00\x1b[31mb.png", tmp_path)

    assert f"{AT}cannot read `a\\x00\\x1b[31mb.png`" == message
    assert cause is not None
    assert "null" in cause


@pytest.mark.parametrize(
    "reference", ["http://host/a.png", "HTTPS://host/a.png", "s3://bucket/a.png"]
)
def test_no_network(tmp_path: Path, reference: str) -> None:
    """A picture elsewhere is not fetched, and the way out is said."""
    expected = (
        f"{AT}`{reference}` is not a local file", "no network fetch",
        "save the picture and give its path",
    )

    assert expected == fails(reference, tmp_path)


@pytest.mark.parametrize(
    ("data", "cause"),
    [(b"", "it is empty"), (b"hello", "its bytes are of no format that Pillow knows"),
     (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 1 1\n%%EndComments\n",
      "its bytes are of no format that Pillow knows")],
)
def test_not_a_picture(tmp_path: Path, data: bytes, cause: str) -> None:
    """Other files are refused; EPS too, as opening one starts another program."""
    (tmp_path / "a.png").write_bytes(data)

    expected = (
        f"{AT}`a.png` is not a picture", cause, "PNG, JPEG, WEBP, TIFF and the like can be read",
    )

    assert expected == fails("a.png", tmp_path)


@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_truncated_picture(tmp_path: Path, form: str) -> None:
    """A picture whose head is fine and whose end is missing is found before the engine starts."""
    buffer = io.BytesIO()
    Pillow.effect_noise((64, 64), 90).save(buffer, form)
    (tmp_path / "cut").write_bytes(buffer.getvalue()[:-900])

    message, cause, hint = fails("cut", tmp_path)

    assert (
        f"{AT}`cut` does not decode", "open it in an image viewer; save it again or copy it again"
    ) == (message, hint)
    assert cause is not None
    assert "truncated" in cause


@pytest.mark.parametrize("height", [10_000, 60_000])
def test_decompression_bomb(tmp_path: Path, height: int) -> None:
    """A head that claims too many pixels is refused, also where Pillow would only warn."""
    (tmp_path / "bomb.png").write_bytes(
        header(10_000, height) + chunk(b"IDAT", b"")
    )

    message, cause, hint = fails("bomb.png", tmp_path)

    assert (
        f"{AT}`bomb.png` is too large",
        f"scale it down to {Pillow.MAX_IMAGE_PIXELS} pixels at most",
    ) == (message, hint)
    assert cause is not None
    assert cause.startswith(f"Image size ({10_000 * height} pixels) exceeds limit")


@pytest.mark.parametrize(
    "bomb",
    [chunk(b"zTXt", b"k\0\0" + zlib.compress(bytes(2**21))),
     chunk(b"iCCP", b"k\0\0" + zlib.compress(bytes(2**21)))],
    ids=["text", "profile"],
)
def test_bomb_in_the_side_data(tmp_path: Path, bomb: bytes) -> None:
    """Side data that unpacks without end is refused as well."""
    (tmp_path / "bomb.png").write_bytes(
        header(1, 1) + bomb + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")
    )

    message, cause, _ = fails("bomb.png", tmp_path)

    assert f"{AT}`bomb.png` does not decode" == message
    assert cause == "Decompressed data too large for PngImagePlugin.MAX_TEXT_CHUNK"


@pytest.mark.parametrize("body", ["AAA", "A A=", "AAA=\n", "äöü=", "%41AA="])
def test_data_url_is_strict_base64(tmp_path: Path, body: str) -> None:
    """Half-valid base64 is not guessed at, as vLLM would refuse it."""
    message, cause, hint = fails(f"data:image/png;base64,{body}", tmp_path)

    assert (
        f"{AT}`data:image/png;base64` does not hold base64",
        "the text after the comma must be plain base64, with its padding",
    ) == (message, hint)
    assert cause


@pytest.mark.parametrize("head", ["data:image/png,AAAA", "data:image/png;base64", "data:"])
def test_data_url_of_another_form(tmp_path: Path, head: str) -> None:
    """A data URL that is not base64 is told how to be."""
    expected = (
        f"{AT}`{head.partition(',')[0]}` is not a base64 data URL", None,
        "write it as data:image/png;base64,...",
    )

    assert expected == fails(head, tmp_path)


def test_message_names_the_field_of_a_chat_picture(fail: Fail) -> None:
    """In a chat body, the error says which part of which message holds the picture."""
    error = fail({"messages": [
        {"role": "user", "content": ["a", {"image_url": {"url": "no.png"}}]},
    ]})

    assert (
        "requests.jsonl:1: `messages[0].content[1].image_url.url`: cannot read `no.png`"
    ) == error.message
