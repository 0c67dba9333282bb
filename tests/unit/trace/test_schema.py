"""The JSON Schema of a trace."""

import json
from pathlib import Path
from typing import get_args

import jsonschema
import pytest

from tests.unit.trace.sample import event_file, write_sample
from vcachediag.trace.records import SCHEMA_VERSION, Event
from vcachediag.trace.schema import schema, schema_text

DATA = Path(__file__).resolve().parents[2] / "data"


def test_every_line_of_a_trace_fits(tmp_path: Path) -> None:
    """Every type of record that we write is described."""
    folder = write_sample(tmp_path / "t")
    validator = jsonschema.Draft202012Validator(schema())
    lines = [*event_file(folder).read_bytes().splitlines(),
             *(folder / "requests.jsonl").read_bytes().splitlines(),
             (folder / "header.json").read_bytes(), (folder / "footer.json").read_bytes()]

    assert len(lines) > len(get_args(Event))
    assert [] == [error.message for line in lines
                  for error in validator.iter_errors(json.loads(line))]


@pytest.mark.parametrize("line", [
    {"type": "step"}, {"type": "no such"},
    {"type": "step", "run": "x", "step": "1", "num_computed_tokens": 0, "num_scheduled_tokens": 1}])
def test_what_is_not_a_record_does_not_fit(line: dict[str, object]) -> None:
    """A missing field, an unknown type and a value of another type are refused."""
    assert not jsonschema.Draft202012Validator(schema()).is_valid(line)


def test_it_is_stable_and_says_its_version() -> None:
    """The same bytes each time, with the schema's version and what is in which file."""
    document = json.loads(schema_text())

    assert schema_text() == schema_text()
    assert SCHEMA_VERSION == document["version"]
    assert "header.json" in document["files"]
