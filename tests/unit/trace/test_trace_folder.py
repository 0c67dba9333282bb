"""Trace folders: written, read back, torn."""

import json
from pathlib import Path

import pytest

from tests.unit.analysis.builders import ENGINE, row
from vcachediag.errors import FileError
from vcachediag.trace.reader import read_trace
from vcachediag.trace.records import (
    SCHEMA_VERSION,
    ControlRecord,
    Event,
    FinishedRecord,
    Footer,
    Header,
    ImageSpan,
    LaneRecord,
    NotObservedRecord,
    Override,
    RequestRecord,
    RunRecord,
    StepRecord,
)
from vcachediag.trace.writer import EventWriter, create_trace, write_footer

HEADER = Header(schema=SCHEMA_VERSION, tool="0.1", started="2026-01-01T00:00:00Z",
                argv=("vcachediag", "é"), request_file="r.jsonl", plugins=("p",), notes=("n",))
FOOTER = Footer(outcome="failed", ended="2026-01-01T00:01:00Z", detail="boom")
REQUEST = RequestRecord(
    id="r1", source="r.jsonl:1", prompt_token_ids=(1, 2), prompt_text="a\nb", max_tokens=4,
    images=(ImageSpan(modality="image", identifier="k", offset=0, length=1),),
    image_labels=("x.png 1x1 L",), expect="")
EVENTS: tuple[Event, ...] = (
    ENGINE, type(ENGINE)(**{**{name: getattr(ENGINE, name) for name in ENGINE.__struct_fields__},
                            "stop_tokens": ((2, "</s>"),),
                            "overrides": (Override(name="a", given="b", used="c", why="d"),)}),
    LaneRecord(lane="cached", runs=("cached/r1#1",), reads_prefix_cache=True,
               emptied=("prefix",), token_budget=9),
    RunRecord(run="cached/r1#1", lane="cached", request="r1", attempt=2, appended=3),
    ControlRecord(name="reset", source="r.jsonl:2", outcome="done"),
    StepRecord(run="cached/r1#1", step=1, num_computed_tokens=0, num_scheduled_tokens=2,
               preempted=True),
    row("cached/r1#1", 0, 5, {39: float("-inf"), 7: 0.1, 8: float("nan")}),
    FinishedRecord(run="cached/r1#1", token_ids=(5,), text="\u2028\x00", reason="error",
                   num_cached_tokens=1, error="x", seconds=0.1),
    NotObservedRecord(what="a", why="b", lane="decode", run="decode/r1"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A whole trace."""
    path = tmp_path / "deep" / "trace"
    create_trace(path, HEADER)
    with EventWriter(path, "engine") as writer:
        writer.request(REQUEST)
        for event in EVENTS:
            writer.event(event)
    write_footer(path, FOOTER)
    return path


def _events(folder: Path) -> Path:
    return next((folder / "events").glob("*.jsonl"))


def test_round_trip(folder: Path) -> None:
    """Every type of record is read back as it was written."""
    trace = read_trace(folder)
    assert set(Event.__args__) == {type(event) for event in EVENTS}
    assert (str(folder), HEADER, (REQUEST,), EVENTS, FOOTER, ()) == (
        trace.path, trace.header, trace.requests, trace.events, trace.footer, trace.damage)


def test_writers_append(folder: Path) -> None:
    """A second writer adds to what is there."""
    with EventWriter(folder, "engine") as writer:
        writer.event(EVENTS[-1])
    assert (*EVENTS, EVENTS[-1]) == read_trace(folder).events


def test_torn_last_line(folder: Path) -> None:
    """A line cut by a kill is named as torn, and the rest is kept."""
    path = _events(folder)
    path.write_bytes(path.read_bytes()[:-9])
    trace = read_trace(folder)
    assert EVENTS[:-1] == trace.events
    assert [f"{path.name}:{len(EVENTS)}: torn"] == [d.rpartition(": ")[0] for d in trace.damage]


@pytest.mark.parametrize("line", [b"{", b'{"type": "new"}', b"", b'{"type": "run"}', b"\xff",
                                  b'{"type": "control", "name": "\xff", "source": ""}'])
def test_damaged_line(folder: Path, line: bytes) -> None:
    """A damaged line in the middle is named, and the lines after it are kept."""
    path = _events(folder)
    lines = path.read_bytes().splitlines()
    lines[1] = line
    path.write_bytes(b"\n".join(lines) + b"\n")
    trace = read_trace(folder)
    assert (EVENTS[0], *EVENTS[2:]) == trace.events
    assert [f"{path.name}:2"] == [":".join(d.split(":")[:2]) for d in trace.damage]
    assert "torn" not in trace.damage[0]


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
    paths = [folder, folder / "events", folder / "requests.jsonl", _events(folder)]
    assert [0o700, 0o700, 0o600, 0o600] == [path.stat().st_mode & 0o777 for path in paths]
