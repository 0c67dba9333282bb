"""Traces from strangers: whatever a folder holds, reading it is bounded and says what is wrong."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.trace.sample import EVENTS, event_file, untimed, write_sample
from vcachediag.analysis.verdict import judge
from vcachediag.errors import FileError
from vcachediag.report import render_json, render_text
from vcachediag.trace import files
from vcachediag.trace.reader import MOST_DAMAGES, read_trace
from vcachediag.trace.records import Trace

#: The same examples in each run; no time limit on a busy machine.
FUZZ = settings(max_examples=150, deadline=None, derandomize=True,
                suppress_health_check=[HealthCheck.function_scoped_fixture])
ROOT = Path(__file__).resolve().parents[3]
FILES = ("header.json", "requests.jsonl", "footer.json", "events")
WILD: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats()
    | st.text(max_size=20) | st.sampled_from(
        [10**18, 2**63 - 1, -1, "", "\x1b[31m", "a" * 5000, "cached", "reference", "cached/r1#1"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner,
                                                                max_size=3),
    max_leaves=6)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace with every type of record."""
    return write_sample(tmp_path_factory.mktemp("whole") / "trace")


@pytest.fixture(scope="module", params=["same", "diverged"])
def recorded(request: pytest.FixtureRequest) -> Path:
    """A real recording, with all that is judged and shown."""
    return ROOT / "tests" / "data" / f"{request.param}.trace"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A place for copies of it."""
    return tmp_path / "copy"


def fresh(whole: Path, copy: Path) -> Path:
    """A new copy."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(whole, copy)
    return copy


def survive(folder: Path) -> Trace | None:
    """Read, judge and report; only a `FileError` of the reader is allowed."""
    try:
        trace = read_trace(folder)
    except FileError:
        return None
    verdict = judge(trace)
    assert render_text(verdict, trace, width=80).plain
    json.loads(render_json(verdict, trace))
    return trace


def file_of(folder: Path, name: str) -> Path:
    """The file that goes by `name`."""
    return event_file(folder) if name == "events" else folder / name


@FUZZ
@given(name=st.sampled_from(FILES), where=st.floats(0, 1))
def test_truncated(whole: Path, copy: Path, name: str, where: float) -> None:
    """Cut anywhere, what was whole before the cut is read."""
    folder = fresh(whole, copy)
    path = file_of(folder, name)
    data = path.read_bytes()
    kept = data[:int(len(data) * where)]
    path.write_bytes(kept)
    trace = survive(folder)

    if name == "events":
        assert trace is not None
        assert untimed(trace.events)[:kept.count(b"\n")] == EVENTS[:kept.count(b"\n")]


@FUZZ
@given(name=st.sampled_from(FILES), flips=st.lists(
    st.tuples(st.floats(0, 0.9999), st.integers(0, 7)), min_size=1, max_size=20))
def test_flipped_bits(whole: Path, copy: Path, name: str, flips: list[tuple[float, int]]) -> None:
    """Flipped bits never do more than lose lines."""
    folder = fresh(whole, copy)
    path = file_of(folder, name)
    data = bytearray(path.read_bytes())
    for where, bit in flips:
        data[int(len(data) * where)] ^= 1 << bit
    path.write_bytes(data)
    survive(folder)


@FUZZ
@given(order=st.lists(st.integers(0, len(EVENTS) - 1), max_size=40))
def test_lines_in_another_order(whole: Path, copy: Path, order: list[int]) -> None:
    """Lines left out, doubled and shuffled are read as they stand."""
    folder = fresh(whole, copy)
    path = event_file(folder)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[number] for number in order))
    trace = survive(folder)

    assert trace is not None
    assert len(order) == len(trace.events)


def disturb(folder: Path, name: str, data: st.DataObject) -> None:
    """Put wild values into some records of a file."""
    path = file_of(folder, name)
    data_of_lines = path.read_bytes().rstrip(b"\n")
    lines = [data_of_lines] if name.endswith(".json") else data_of_lines.split(b"\n")
    for _ in range(data.draw(st.integers(1, 3))):
        number = data.draw(st.integers(0, len(lines) - 1))
        record = json.loads(lines[number])
        key = data.draw(st.sampled_from(sorted(record)))
        if isinstance(record[key], list) and record[key] and data.draw(st.booleans()):
            record[key][0] = data.draw(WILD)
        elif isinstance(record[key], list) and data.draw(st.booleans()):
            record[key] = record[key][:data.draw(st.integers(0, 3))]
        else:
            record[key] = data.draw(WILD)
        lines[number] = json.dumps(record).encode()
    path.write_bytes(b"\n".join(lines) + b"\n")


@FUZZ
@given(data=st.data(), name=st.sampled_from(FILES))
def test_wild_values(whole: Path, copy: Path, data: st.DataObject, name: str) -> None:
    """Values that are huge, negative or of another type are refused or harmless."""
    folder = fresh(whole, copy)
    disturb(folder, name, data)
    survive(folder)


@FUZZ
@given(data=st.data(), name=st.sampled_from(FILES))
def test_wild_values_in_a_recording(recorded: Path, copy: Path, data: st.DataObject,
                                    name: str) -> None:
    """The same in a recording that is judged and shown in full."""
    folder = fresh(recorded, copy)
    disturb(folder, name, data)
    survive(folder)


@FUZZ
@given(data=st.data())
def test_lost_lines_of_a_recording(recorded: Path, copy: Path, data: st.DataObject) -> None:
    """Whatever lines of a recording are lost, what is left is judged."""
    folder = fresh(recorded, copy)
    path = event_file(folder)
    lines = path.read_bytes().splitlines(keepends=True)
    start = data.draw(st.integers(0, len(lines)))
    end = data.draw(st.integers(start, len(lines)))
    path.write_bytes(b"".join(lines[:start] + lines[end:]))
    survive(folder)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "device"])
def test_not_a_plain_file(whole: Path, copy: Path, tmp_path: Path, name: str, kind: str) -> None:
    """Links, pipes, folders and devices in the place of files are not read, and named."""
    folder = fresh(whole, copy)
    path = file_of(folder, name)
    secret = tmp_path / "secret"
    shutil.copy(path, secret)
    path.unlink()
    if kind == "link":
        path.symlink_to(secret)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    trace = survive(folder)

    if name == "header.json":
        assert trace is None
    else:
        assert trace is not None
        assert any(path.name in words for words in trace.damage)


def test_events_behind_a_link(whole: Path, copy: Path) -> None:
    """A folder of events that is a link elsewhere is not followed."""
    folder = fresh(whole, copy)
    shutil.rmtree(folder / "events")
    (folder / "events").symlink_to(whole / "events")
    trace = survive(folder)

    assert trace is not None
    assert () == trace.events
    assert any("events" in words for words in trace.damage)


def test_a_line_without_end(whole: Path, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line longer than the limit is left out and named; the next one is read."""
    monkeypatch.setattr(files, "MOST_BYTES_OF_A_LINE", 100_000)
    folder = fresh(whole, copy)
    path = event_file(folder)
    kept = path.read_bytes()
    path.write_bytes(b'{"type":"control","name":"' + b"a" * 1_000_000 + b'"}\n' + kept)
    trace = survive(folder)

    assert trace is not None
    assert EVENTS == untimed(trace.events)
    assert [f"{path.name}:1: longer than 0 MiB, left out"] == list(trace.damage)


def test_too_much(whole: Path, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit on records, reading stops and says where."""
    monkeypatch.setattr(files, "MOST_RECORDS", 5)
    trace = survive(fresh(whole, copy))

    assert trace is not None
    assert 4 == len(trace.events)  # and one request
    assert 1 == len([words for words in trace.damage if "too large" in words])


def test_huge_header(whole: Path, copy: Path) -> None:
    """A header beyond any sense is not read."""
    folder = fresh(whole, copy)
    path = folder / "header.json"
    path.write_bytes(path.read_bytes() + b" " * files.MOST_BYTES_OF_A_RECORD)

    with pytest.raises(FileError, match="is not a trace"):
        read_trace(folder)


@pytest.mark.parametrize("name", FILES)
def test_nested_without_end(whole: Path, copy: Path, name: str) -> None:
    """Brackets by the hundred thousand are refused like any other nonsense."""
    folder = fresh(whole, copy)
    path = file_of(folder, name)
    deep = b'{"type":"footer","deep":' + b"[" * 200_000 + b"]" * 200_000 + b"}\n"
    path.write_bytes(deep)
    trace = survive(folder)

    assert (trace is None) == (name == "header.json")
    assert trace is None or any(path.name in words for words in trace.damage)


def test_marks_without_a_width(recorded: Path, copy: Path) -> None:
    """Tokens of ten thousand combining marks each are shown, cut, in no time."""
    folder = fresh(recorded, copy)
    path = event_file(folder)
    marked = '"chosen_text":"a' + "\u0301" * 10_000
    path.write_text(path.read_text().replace('"chosen_text":"', marked))
    survive(folder)


def test_many_damages_are_counted(whole: Path, copy: Path) -> None:
    """A file of nothing but damage does not fill the memory with words about it."""
    folder = fresh(whole, copy)
    event_file(folder).write_bytes(b"{\n" * (MOST_DAMAGES + 1234))
    trace = survive(folder)

    assert trace is not None
    assert MOST_DAMAGES + 1 == len(trace.damage)
    assert "and 1,234 more" == trace.damage[-1]
