"""The JSON objects of a file, each with its place; says nothing about what they mean."""

import codecs
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vcachediag.errors import RequestFileError
from vcachediag.requests.where import Where, describe, os_reason, quote

#: Deepest nesting accepted, so that nothing which handles a request later runs out of stack.
MAX_DEPTH = 100
TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"
SHAPE_HINT = "one JSON object a line (JSONL), or one JSON array of objects"

_BLANK = re.compile(r"[ \t\r\n]*")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_objects(path: Path) -> Iterator[tuple[Where, dict[str, Any]]]:
    """Yield the objects of a JSONL file, line by line, or those of one JSON array.

    Raises:
        RequestFileError: the file cannot be read, or is not UTF-8 text of that form.

    """
    lines = _lines(path)
    seen = False
    for number, raw in lines:
        data = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
        if not data.strip():
            continue
        where = Where(path=path, line=number)
        if not seen and data.lstrip().startswith(b"["):
            rest = b"".join(line for _, line in lines)
            yield from _array(_decode(data + rest, where), where)
            return
        seen = True
        text = _decode(data, where)
        value, end = _parse(text, _skip(text, 0), where, where)
        _expect_end(text, end, where)
        yield where, value


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            yield from enumerate(file, start=1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise RequestFileError(path, None, f"cannot be read: {os_reason(error)}") from error


def _array(text: str, begin: Where) -> Iterator[tuple[Where, dict[str, Any]]]:
    """Yield the objects of an array whose text starts at `begin`."""
    position = _skip(text, text.index("[") + 1)
    line, counted, item = begin.line, 0, 0
    while item or not text.startswith("]", position):
        item += 1
        line += text.count("\n", counted, position)
        counted = position
        where = Where(path=begin.path, line=line, item=item)
        value, position = _parse(text, position, where, begin)
        yield where, value
        position = _skip(text, position)
        if text.startswith("]", position):
            break
        if not text.startswith(",", position):
            raise _not_json("expected `,` or `]`", text, position, begin)
        position = _skip(text, position + 1)
    _expect_end(text, position + 1, begin)


def _decode(data: bytes, where: Where) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = where.line + data.count(b"\n", 0, error.start)
        raise RequestFileError(
            where.path, line, "not UTF-8 text", cause=f"byte 0x{data[error.start]:02x}",
            hint="save the file as UTF-8",
        ) from error


def _skip(text: str, position: int) -> int:
    """Return the first position from `position` on that is not blank."""
    match = _BLANK.match(text, position)
    return match.end() if match else position


def _expect_end(text: str, position: int, begin: Where) -> None:
    position = _skip(text, position)
    if position != len(text):
        raise _not_json("more text after the end", text, position, begin)


def _not_json(what: str, text: str, position: int, begin: Where) -> RequestFileError:
    """Return the error for a mistake in `text`, which starts at `begin`."""
    line = begin.line + text.count("\n", 0, position)
    column = position - text.rfind("\n", 0, position)
    return RequestFileError(
        begin.path, line, f"not JSON: {what} (column {column})", hint=SHAPE_HINT
    )


def _parse(text: str, position: int, where: Where, begin: Where) -> tuple[dict[str, Any], int]:
    """Return the object at `position`, which is the place `where`, and where it ends."""
    try:
        value, end = _DECODER.raw_decode(text, position)
    except json.JSONDecodeError as error:
        what = error.msg[:1].lower() + error.msg[1:]
        raise _not_json(what, text, error.pos, begin) from error
    except _RefusedError as error:
        raise where.error(str(error)) from error
    except RecursionError as error:
        raise where.error(TOO_DEEP) from error
    if not isinstance(value, dict):
        raise where.error(f"a request must be an object, not {describe(value)}", hint=SHAPE_HINT)
    if _deeper_than(MAX_DEPTH, value):
        raise where.error(TOO_DEEP)
    # Half of a surrogate pair is a string to JSON, but no text: tokenizers and files refuse it.
    if _SURROGATE.search(text, position, end):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise where.error(
                f"not text: {quote(error.object[error.start])} is half of a surrogate pair"
            ) from error
    return value, end


def _deeper_than(limit: int, value: Any) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
        ]
    return any(isinstance(node, dict | list) for node in level)


class _RefusedError(ValueError):
    """Well-formed JSON that Python's parser takes and we do not."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name in fields if counts[name] > 1)
        raise _RefusedError(f"{quote(twice)} is given twice")
    return fields


def _integer(text: str) -> int:
    # Beyond 64 bits nothing downstream can hold it; beyond 4300 digits int() itself refuses.
    if len(text) > 20 or not -(2**63) <= int(text) < 2**64:
        raise _RefusedError(f"the number {quote(text)} is too large")
    return int(text)


def _real(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise _RefusedError(f"the number {quote(text)} is too large")
    return number


def _constant(text: str) -> None:
    raise _RefusedError(f"not JSON: {quote(text)} is not a number")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=_integer, parse_float=_real, parse_constant=_constant
)
