"""Reads a trace folder back, whole or torn."""

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from vcachediag.errors import FileError
from vcachediag.trace.records import (
    SCHEMA_VERSION,
    Event,
    Footer,
    Header,
    RequestRecord,
    Trace,
)
from vcachediag.trace.writer import EVENTS, FOOTER, HEADER, REQUESTS

T = TypeVar("T")


class _Version(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a header that every schema has."""

    schema: int
    tool: str = "unknown"


def read_trace(folder: Path) -> Trace:
    """The records of `folder`, in the order in which each process wrote them.

    Raises:
        FileError: no header, or one of a newer schema.
    """
    header = _header(folder)
    damage: list[str] = []
    requests: tuple[RequestRecord, ...] = tuple(
        _lines(folder / REQUESTS, RequestRecord, damage))
    events: list[Event] = []
    for path in sorted((folder / EVENTS).glob("*.jsonl")):
        events += _lines(path, Event, damage)
    return Trace(path=str(folder), header=header, requests=requests, events=tuple(events),
                 footer=_footer(folder, damage), damage=tuple(damage))


def _header(folder: Path) -> Header:
    path = folder / HEADER
    try:
        data = path.read_bytes()
        # First of all the version: a newer header may not even decode.
        version = msgspec.json.decode(data, type=_Version)
        if version.schema > SCHEMA_VERSION:
            raise FileError(
                f"{folder} was written by a newer vcachediag ({version.tool})",
                cause=f"schema {version.schema}, this version reads up to {SCHEMA_VERSION}",
                hint="pip install --upgrade vcachediag",
            )
        return msgspec.json.decode(data, type=Header)
    except (OSError, msgspec.MsgspecError) as error:
        raise FileError(f"{folder} is not a trace", cause=f"{HEADER}: {error}") from error


def _lines(path: Path, kind: type[T] | object, damage: list[str]) -> Iterator[T]:
    decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(kind)
    try:
        stream = path.open("rb")
    except OSError:
        damage.append(f"{path.name} is missing")
        return
    with stream:
        for number, line in enumerate(stream, start=1):
            try:
                yield decoder.decode(line)
            except msgspec.MsgspecError as error:
                torn = "" if line.endswith(b"\n") else "torn: "
                damage.append(f"{path.name}:{number}: {torn}{error}")


def _footer(folder: Path, damage: list[str]) -> Footer | None:
    try:
        return msgspec.json.decode((folder / FOOTER).read_bytes(), type=Footer)
    except (OSError, msgspec.MsgspecError):
        damage.append(f"no {FOOTER}: the recording did not end by itself")
        return None
