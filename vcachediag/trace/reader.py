"""Reads a trace folder back: whole or torn, one process or several, from friend or stranger."""

import heapq
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from vcachediag.errors import FileError
from vcachediag.trace import files
from vcachediag.trace.records import (
    SCHEMA_VERSION,
    Event,
    Footer,
    Header,
    Record,
    RequestRecord,
    Trace,
)
from vcachediag.trace.writer import EVENTS, FOOTER, HEADER, REQUESTS

#: Damages that are told one by one.
MOST_DAMAGES = 100
#: What decoding may raise: not JSON, not a record, not text, or nested too deep.
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

AnyRecord = TypeVar("AnyRecord", bound=Record)


class _Version(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a header that every schema has."""

    schema: int
    tool: str = "unknown"


class _Damage:
    """What could not be read, in words; a wild file cannot fill the memory with them."""

    def __init__(self) -> None:
        self._words: list[str] = []
        self._more = 0

    def add(self, words: str) -> None:
        if len(self._words) < MOST_DAMAGES:
            self._words.append(words[:300])
        else:
            self._more += 1

    def told(self) -> tuple[str, ...]:
        more = (f"and {self._more:,} more",) if self._more else ()
        return (*self._words, *more)


def read_trace(folder: Path) -> Trace:
    """The records of `folder`; those of several processes in the order of their clocks.

    What cannot be read is named in `Trace.damage`.

    Raises:
        FileError: there is no trace, or it is of a newer schema.
    """
    header = _header(folder)
    damage = _Damage()
    budget = _Budget()
    requests = tuple(_records(folder / REQUESTS, RequestRecord, damage, budget))
    events = tuple(_merged(folder / EVENTS, damage, budget))
    footer = _footer(folder, damage)
    return Trace(path=str(folder), header=header, requests=requests, events=events,
                 footer=footer, damage=damage.told())


class _Budget:
    """How much more may be read of a trace."""

    def __init__(self) -> None:
        self.bytes = files.MOST_BYTES
        self.records = files.MOST_RECORDS
        self.told = False

    def take(self, size: int) -> bool:
        """Whether a line of `size` bytes may still be read."""
        self.bytes -= size
        self.records -= 1
        return self.bytes >= 0 and self.records >= 0


def _header(folder: Path) -> Header:
    if not folder.is_dir():
        what = "it is a file" if folder.exists() else "there is no such folder"
        raise FileError(f"cannot read the trace {folder}", cause=what,
                        hint="a trace is the folder that --out named")
    path = folder / HEADER
    try:
        data = files.read_small(path)
        # First of all the version: a newer header may not even decode.
        version = msgspec.json.decode(data, type=_Version)
        if version.schema > SCHEMA_VERSION:
            raise FileError(
                f"{folder} was written by a newer vcachediag ({version.tool})",
                cause=f"schema {version.schema}, this version reads up to {SCHEMA_VERSION}",
                hint="pip install --upgrade vcachediag",
            )
        return msgspec.json.decode(data, type=Header)
    except (OSError, *_UNREADABLE) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise FileError(f"{folder} is not a trace", cause=f"{HEADER}: {why}",
                        hint="a trace is the folder that --out named") from error


def _merged(folder: Path, damage: _Damage, budget: _Budget) -> Iterator[Event]:
    """The events of all processes; each process's own order stays as it wrote it."""
    try:
        paths = files.event_files(folder)
    except OSError as error:
        damage.add(f"{EVENTS}: {error.strerror or error}")
        return
    if len(paths) > files.MOST_FILES:
        damage.add(f"{EVENTS}: {len(paths):,} files; only {files.MOST_FILES:,} were read")
    timed = [_timed(_records(path, Event, damage, budget), place)
             for place, path in enumerate(paths[:files.MOST_FILES])]
    for _, _, _, event in heapq.merge(*timed):
        yield event


def _timed(events: Iterator[Event], place: int) -> Iterator[tuple[int, int, int, Event]]:
    latest = 0
    for number, event in enumerate(events):
        # A clock that goes back must not reorder what one process did.
        latest = max(latest, event.at)
        yield latest, place, number, event


def _records(path: Path, kind: Any, damage: _Damage, budget: _Budget) -> Iterator[Any]:
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind)
    try:
        for number, line in files.read_lines(path):
            if not budget.take(len(line or b"")):
                if not budget.told:
                    budget.told = True
                    damage.add(f"{path.name}:{number}: the trace is too large; the rest was "
                               "not read")
                return
            if line is None:
                damage.add(f"{path.name}:{number}: longer than "
                           f"{files.MOST_BYTES_OF_A_LINE >> 20} MiB, left out")
                continue
            try:
                yield decoder.decode(line)
            except _UNREADABLE as error:
                torn = "" if line.endswith(b"\n") else "torn: "
                damage.add(f"{path.name}:{number}: {torn}{error}")
    except FileNotFoundError:
        damage.add(f"{path.name} is missing")
    except OSError as error:
        damage.add(f"{path.name}: {error.strerror or error}")


def _footer(folder: Path, damage: _Damage) -> Footer | None:
    try:
        return msgspec.json.decode(files.read_small(folder / FOOTER), type=Footer)
    except FileNotFoundError:
        damage.add(f"no {FOOTER}: the recording did not end by itself")
    except (OSError, *_UNREADABLE) as error:
        damage.add(f"{FOOTER}: {error}")
    return None
