"""The trace's records as JSON Schema, for programs that read a trace without us."""

import json
from typing import Any, get_args

import msgspec

from vcachediag.trace.records import SCHEMA_VERSION, Event, Footer, Header, RequestRecord

#: What each file of a trace holds.
FILES = {
    "header.json": "one Header",
    "requests.jsonl": "a RequestRecord on each line",
    "events/<role>-<pid>.jsonl": "any of the other records on each line; `type` says which, and "
                                 "`at` orders the lines of several files",
    "engine.log": "what vLLM printed",
    "footer.json": "one Footer; absent when the recording was killed",
}


def schema() -> dict[str, Any]:
    """JSON Schema, draft 2020-12: a line of a trace is any one of the records."""
    kinds = (Header, RequestRecord, *get_args(Event), Footer)
    references, components = msgspec.json.schema_components(
        kinds, ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "vcachediag trace",
        "description": f"Records of a trace folder, schema {SCHEMA_VERSION}.",
        "version": SCHEMA_VERSION,
        "files": FILES,
        "anyOf": list(references),
        "$defs": components,
    }


def schema_text() -> str:
    """The same as text with stable bytes."""
    return json.dumps(schema(), indent=2) + "\n"
