"""Writes a trace folder; a record is one line in one write, so a kill tears at most the last."""

import os
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

import msgspec

from vcachediag.errors import FileError
from vcachediag.trace.records import Event, Footer, Header, RequestRecord

HEADER = "header.json"
REQUESTS = "requests.jsonl"
EVENTS = "events"
FOOTER = "footer.json"
ENGINE_LOG = "engine.log"


def now() -> str:
    """This moment in UTC, ISO 8601, seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def create_trace(folder: Path, header: Header) -> None:
    """Make the folder (mode 0700) with its header.

    Raises:
        FileError: the folder exists already, or cannot be made.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise FileError(f"{folder} exists already", hint="name another, or add --force")
        (folder / EVENTS).mkdir(mode=0o700)
        (folder / HEADER).write_bytes(_pretty(header))
    except OSError as error:
        raise FileError(f"cannot write the trace {folder}", cause=error.strerror) from error


def write_footer(folder: Path, footer: Footer) -> None:
    """Say how the recording ended."""
    (folder / FOOTER).write_bytes(_pretty(footer))


def _pretty(record: msgspec.Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"


class EventWriter:
    """Appends records of one process to `requests.jsonl` and `events/<role>-<pid>.jsonl`."""

    def __init__(self, folder: Path, role: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._encoder = msgspec.json.Encoder()
        self._requests = os.open(folder / REQUESTS, flags, 0o600)
        self._events = os.open(folder / EVENTS / f"{role}-{os.getpid()}.jsonl", flags, 0o600)

    def request(self, record: RequestRecord) -> None:
        """Append a request."""
        os.write(self._requests, self._encoder.encode(record) + b"\n")

    def event(self, record: Event) -> None:
        """Append an event."""
        os.write(self._events, self._encoder.encode(record) + b"\n")

    def close(self) -> None:
        """Close both files."""
        os.close(self._requests)
        os.close(self._events)

    def __enter__(self) -> "EventWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()
