"""Where something stands in a request file, and how its text is shown in messages."""

import json
from pathlib import Path
from typing import Any

import msgspec

from vcachediag.errors import RequestFileError

#: Longest piece of a file's text that a message repeats, and of another library's message.
SHOWN = 60
CAUSE_SHOWN = 200


def escape(text: str, limit: int = SHOWN) -> str:
    """Return `text` cut at `limit`, with everything unprintable escaped as Python writes it."""
    # Cut first: the text may be a picture of many megabytes.
    head = text[:limit]
    shown = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in head
    )
    return shown + "…" if len(text) > limit else shown


def quote(text: str) -> str:
    """Return `text`, escaped, between backticks."""
    return f"`{escape(text)}`"


def describe(value: Any) -> str:
    """Return a short name of a JSON value, for `must be X, not Y`."""
    if isinstance(value, str):
        return f'"{escape(value)}"'
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if isinstance(value, dict):
        return "an object"
    return json.dumps(value)


def os_reason(error: OSError | ValueError) -> str:
    """Return why a file could not be read, in words."""
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, IsADirectoryError):
        return "it is a directory"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return escape(str(error), CAUSE_SHOWN)


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a request file."""

    path: Path
    line: int
    #: Position in a JSON array, from 1; None in a JSONL file, where the line says it all.
    item: int | None = None
    #: The field that is being read, such as `images[0]`.
    field: str | None = None

    @property
    def source(self) -> str:
        """The place as `file:line`."""
        return f"{self.path}:{self.line}"

    @property
    def short(self) -> str:
        """The place without its file: `line 3`, or `line 3, item 2`."""
        return f"line {self.line}" + ("" if self.item is None else f", item {self.item}")

    def at(self, field: str) -> "Where":
        """Return the same place, narrowed to one field."""
        return msgspec.structs.replace(self, field=field)

    def error(
        self, message: str, *, cause: str | None = None, hint: str | None = None
    ) -> RequestFileError:
        """Return (not raise) the error that something is wrong here."""
        item = "" if self.item is None else f"item {self.item}: "
        field = "" if self.field is None else f"`{self.field}`: "
        return RequestFileError(
            self.path, self.line, f"{item}{field}{message}", cause=cause, hint=hint
        )
