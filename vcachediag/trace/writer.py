"""Writes a trace folder; a record is one line in one write, so a kill tears at most the last."""

import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

import msgspec

from vcachediag.errors import FileError
from vcachediag.trace.records import Event, Footer, Header, Record, RequestRecord

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
    """Appends records of one process to `requests.jsonl` and `events/<role>-<pid>.jsonl`.

    Threads may share one.
    """

    def __init__(self, folder: Path, role: str,
                 transform: Callable[[Record], Record] | None = None) -> None:
        """Open both files.

        Args:
            folder: The trace.
            role: What the process does, a word.
            transform: Applied to each record before it is written, to redact it.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._encoder = msgspec.json.Encoder()
        self._transform = transform
        self._lock = threading.Lock()
        self._requests = os.open(folder / REQUESTS, flags, 0o600)
        self._events = os.open(folder / EVENTS / f"{role}-{os.getpid()}.jsonl", flags, 0o600)

    def request(self, record: RequestRecord) -> None:
        """Append a request."""
        self._append(self._requests, record)

    def event(self, record: Event) -> None:
        """Append an event."""
        self._append(self._events, record)

    def _append(self, descriptor: int, record: Record) -> None:
        with self._lock:
            if self._transform is not None:
                record = self._transform(record)
            # The time is put in here, so that no caller has to think of it.
            start = b'{"at":%d,' % time.monotonic_ns()
            line = start + self._encoder.encode(record)[1:] + b"\n"
            written = os.write(descriptor, line)
            while written < len(line):  # a full disk or a signal: the rest, or an error
                written += os.write(descriptor, line[written:])

    def close(self) -> None:
        """Close both files."""
        os.close(self._requests)
        os.close(self._events)

    def __enter__(self) -> "EventWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()
