"""Pictures of a request: found, read once, and decoded once to see that they are whole."""

import base64
import binascii
import functools
import io
import re
import stat
import warnings
from pathlib import Path
from urllib.parse import unquote

import msgspec
from PIL import Image as Pillow
from PIL import UnidentifiedImageError

from vcachediag.requests.records import Image
from vcachediag.requests.where import CAUSE_SHOWN, Where, escape, os_reason, quote

PATH_HINT = "paths are relative to the folder of the request file"
FETCH_HINT = "save the picture and give its path"
REPAIR_HINT = "open it in an image viewer; save it again or copy it again"

_REMOTE = re.compile(r"https?:|[a-z][a-z0-9+.-]+://", re.IGNORECASE)


def load_image(
    reference: str, *, base: Path, where: Where, cache: dict[Path, Image] | None = None
) -> Image:
    """Return the picture that a path, `file:` URL or `data:` URL names.

    Relative paths start at `base`. A path found in `cache` is not read again.

    Raises:
        RequestFileError: it cannot be read, is not a picture, is cut short, or claims more pixels
            than Pillow's limit.

    """
    scheme = reference[:5].lower()
    if scheme == "data:":
        head, data = _from_data_url(reference, where)
        return _inspect(data, f"{escape(head)} ({len(data)} bytes)", where)
    if scheme == "file:":
        path = base / _from_file_url(reference)
    elif _REMOTE.match(reference):
        raise where.error(
            f"{quote(reference)} is not a local file", cause="no network fetch", hint=FETCH_HINT
        )
    else:
        path = base / reference
    cache = {} if cache is None else cache
    if path not in cache:
        cache[path] = _inspect(_from_file(path, reference, where), reference, where)
    return msgspec.structs.replace(cache[path], label=reference)


def _from_file_url(url: str) -> str:
    """Return the path in a `file:` URL; a host other than localhost is read as its first folder."""
    path = url[len("file:") :]
    if path.startswith("//"):
        path = path[2:]
        if path.lower().startswith("localhost/"):
            path = path[len("localhost") :]
    return unquote(path)


def _from_file(path: Path, reference: str, where: Where) -> bytes:
    try:
        mode = path.stat().st_mode
        # Reading a pipe or a device may never end.
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise OSError(0, "it is not a regular file")
        return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise where.error(
            f"cannot read {quote(reference)}", cause=os_reason(error), hint=PATH_HINT
        ) from error


def _from_data_url(url: str, where: Where) -> tuple[str, bytes]:
    """Return the head of a base64 data URL, `data:image/png`, and its bytes."""
    head, comma, body = url.partition(",")
    kind, _, encoding = head.rpartition(";")
    if not comma or encoding.lower() != "base64":
        raise where.error(
            f"{quote(head)} is not a base64 data URL",
            hint="write it as data:image/png;base64,...",
        )
    try:
        return kind, base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError) as error:  # ValueError: letters outside ASCII
        raise where.error(
            f"{quote(head)} does not hold base64", cause=str(error),
            hint="the text after the comma must be plain base64, with its padding",
        ) from error


def _inspect(data: bytes, label: str, where: Where) -> Image:
    """Return the picture that `data` encodes, once it has decoded from end to end."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Pillow warns before it decodes, and fails only at twice the limit.
            warnings.simplefilter("error", Pillow.DecompressionBombWarning)
            with Pillow.open(io.BytesIO(data), formats=_formats()) as picture:
                width, height, mode = picture.width, picture.height, picture.mode
                media_type = picture.get_format_mimetype() or f"image/{picture.format}".lower()
                picture.load()
    except UnidentifiedImageError as error:
        raise where.error(
            f"{quote(label)} is not a picture",
            cause="its bytes are of no format that Pillow knows" if data else "it is empty",
            hint="PNG, JPEG, WEBP, TIFF and the like can be read",
        ) from error
    except (Pillow.DecompressionBombWarning, Pillow.DecompressionBombError) as error:
        raise where.error(
            f"{quote(label)} is too large", cause=escape(str(error), CAUSE_SHOWN),
            hint=f"scale it down to {Pillow.MAX_IMAGE_PIXELS} pixels at most",
        ) from error
    except Exception as error:  # on broken bytes, Pillow's decoders raise nearly anything
        raise where.error(
            f"{quote(label)} does not decode",
            cause=escape(str(error) or type(error).__name__, CAUSE_SHOWN), hint=REPAIR_HINT,
        ) from error
    return Image(
        label=label, data=data, media_type=media_type, width=width, height=height, mode=mode
    )


@functools.cache
def _formats() -> tuple[str, ...]:
    Pillow.init()
    # Opening an EPS file starts Ghostscript.
    return tuple(name for name in Pillow.ID if name != "EPS")
