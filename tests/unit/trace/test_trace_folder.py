"""Trace folders: written, read back, torn."""

import json
from pathlib import Path

import pytest

from tests.unit.trace.sample import (
    EVENTS,
    FOOTER,
    HEADER,
    REQUEST,
    event_file,
    untimed,
    write_sample,
)
from vcachediag.errors import FileError
from vcachediag.trace.reader import read_trace
from vcachediag.trace.records import SCHEMA_VERSION, Event
from vcachediag.trace.writer import EventWriter, create_trace


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A whole trace."""
    return write_sample(tmp_path / "deep" / "trace")


def test_round_trip(folder: Path) -> None:
    """Every type of record is read back as it was written."""
    trace = read_trace(folder)
    assert set(Event.__args__) == {type(event) for event in EVENTS}
    assert (str(folder), HEADER, (REQUEST,), EVENTS, FOOTER, ()) == (
        trace.path, trace.header, untimed(trace.requests), untimed(trace.events), trace.footer,
        trace.damage)


def test_writers_append(folder: Path) -> None:
    """A second writer adds to what is there."""
    with EventWriter(folder, "engine") as writer:
        writer.event(EVENTS[-1])
    assert (*EVENTS, EVENTS[-1]) == untimed(read_trace(folder).events)


def test_torn_last_line(folder: Path) -> None:
    """A line cut by a kill is named as torn, and the rest is kept."""
    path = event_file(folder)
    path.write_bytes(path.read_bytes()[:-9])
    trace = read_trace(folder)
    assert EVENTS[:-1] == untimed(trace.events)
    assert [f"{path.name}:{len(EVENTS)}: torn"] == [d.rpartition(": ")[0] for d in trace.damage]


@pytest.mark.parametrize("line", [b"{", b'{"type": "new"}', b"", b'{"type": "run"}', b"\xff",
                                  b'{"type": "control", "name": "\xff", "source": ""}'])
def test_damaged_line(folder: Path, line: bytes) -> None:
    """A damaged line in the middle is named, and the lines after it are kept."""
    path = event_file(folder)
    lines = path.read_bytes().splitlines()
    lines[1] = line
    path.write_bytes(b"\n".join(lines) + b"\n")
    trace = read_trace(folder)
    assert (EVENTS[0], *EVENTS[2:]) == untimed(trace.events)
    assert [f"{path.name}:2"] == [":".join(d.split(":")[:2]) for d in trace.damage]
    assert "torn" not in trace.damage[0]


def test_processes_are_merged_by_their_clocks(folder: Path) -> None:
    """Records of several processes stand in the order of their clocks, and those of one process in
    its own, even where its clock went back.
    """
    event_file(folder).unlink()
    for name, times in (("engine-1", (10, 30, 20, 50)), ("worker-2", (5, 25, 40))):
        lines = [json.dumps({"at": at, "type": "control", "name": f"{name}/{at}", "source": ""})
                 for at in times]
        (folder / "events" / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    order = [event.name for event in read_trace(folder).events]

    assert ["worker-2/5", "engine-1/10", "worker-2/25", "engine-1/30", "engine-1/20",
            "worker-2/40", "engine-1/50"] == order


def test_records_are_timed(folder: Path) -> None:
    """Every record says when it was written, and later ones say no less."""
    times = [event.at for event in read_trace(folder).events]

    assert times[0] > 0
    assert sorted(times) == times


def test_missing_footer(folder: Path) -> None:
    """A killed recording has no footer, which is named."""
    (folder / "footer.json").unlink()
    trace = read_trace(folder)
    assert (None, ("no footer.json: the recording did not end by itself",)) == (
        trace.footer, trace.damage)


def test_missing_requests(folder: Path) -> None:
    """A missing file of requests is named."""
    (folder / "requests.jsonl").unlink()
    trace = read_trace(folder)
    assert ((), ("requests.jsonl is missing",)) == (trace.requests, trace.damage)


def test_newer_schema(folder: Path) -> None:
    """A trace of a newer schema is refused with what to do."""
    header = json.loads((folder / "header.json").read_text())
    header["schema"] = SCHEMA_VERSION + 1
    (folder / "header.json").write_text(json.dumps(header))
    with pytest.raises(FileError, match="written by a newer vcachediag") as caught:
        read_trace(folder)
    assert "pip install --upgrade vcachediag" == caught.value.hint


@pytest.mark.parametrize("content", [None, b"", b"[]", b'{"type": "footer"}', b"\xff",
                                     b'{"type": "header", "schema": 1, "tool": "\xff"}'])
def test_not_a_trace(tmp_path: Path, content: bytes | None) -> None:
    """A folder without a readable header is not a trace."""
    if content is not None:
        (tmp_path / "header.json").write_bytes(content)
    with pytest.raises(FileError, match="is not a trace"):
        read_trace(tmp_path)


def test_existing_folder_is_kept(tmp_path: Path) -> None:
    """A folder with something in it is refused and left alone."""
    (tmp_path / "mine").write_text("x")
    with pytest.raises(FileError, match="exists already"):
        create_trace(tmp_path, HEADER)
    assert ["mine"] == [path.name for path in tmp_path.iterdir()]


def test_existing_file_is_refused(tmp_path: Path) -> None:
    """A file in the place of the folder is a FileError too."""
    (tmp_path / "mine").write_text("x")
    with pytest.raises(FileError, match="cannot write the trace"):
        create_trace(tmp_path / "mine", HEADER)


def test_private(folder: Path) -> None:
    """Prompts are private: folders are 0700 and what holds prompts 0600."""
    paths = [folder, folder / "events", folder / "requests.jsonl", event_file(folder)]
    assert [0o700, 0o700, 0o600, 0o600] == [path.stat().st_mode & 0o777 for path in paths]
