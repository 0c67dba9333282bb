"""Redacted traces: nothing of a prompt is left, and they are judged as before."""

import typing
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from tests.unit.trace.sample import EVENTS, REQUEST
from vcachediag.analysis.verdict import judge
from vcachediag.report import render_text
from vcachediag.trace.reader import read_trace
from vcachediag.trace.records import Event, ExtraKey, ImageSpan, Record, RequestRecord, Trace
from vcachediag.trace.redact import Redactor
from vcachediag.trace.writer import EventWriter, create_trace, write_footer

DATA = Path(__file__).resolve().parents[2] / "data"
#: Fields that hold text or token ids and stay as they are: names, kinds, settings, our own words.
KEPT = {
    "id", "source", "run", "lane", "request", "hook", "name", "what", "action", "kind", "modality",
    "outcome", "why", "reason", "not_read", "type", "attention", "op", "runs", "emptied",
    "positions_digest", "slots_digest", "block_ids", "first_position", "last_position",
    "encoder_inputs",
    # Of the engine and the model.
    "vllm", "torch", "python", "platform", "runner", "model_class", "model_file", "model", "dtype",
    "stop_tokens", "overrides", "unused_flags", "stops",
    # Of a row of logits: without its tokens.
    "sketch", "top_logits",
}
#: Fields that are changed by place, not by a rule of their own.
BY_PLACE = {"prompt_token_ids", "token_ids", "chosen", "chosen_text", "top_ids", "top_texts"}


def redacted(trace: Trace, folder: Path, salt: bytes) -> Trace:
    """`trace` written again through a redactor."""
    create_trace(folder, msgspec.structs.replace(trace.header, redacted=True))
    with EventWriter(folder, "engine", Redactor(salt)) as writer:
        for request in trace.requests:
            writer.request(request)
        for event in trace.events:
            writer.event(event)
    assert trace.footer is not None
    write_footer(folder, trace.footer)
    return read_trace(folder)


def holds_text_or_ids(kind: Any) -> bool:
    """Whether a field of this type can hold what a prompt says."""
    if typing.get_origin(kind) is typing.Literal:
        return False
    return kind is str or any(holds_text_or_ids(inner) for inner in get_args(kind)) or (
        typing.get_origin(kind) is tuple)


@pytest.mark.parametrize("kind", [RequestRecord, *get_args(Event), ImageSpan, ExtraKey])
def test_every_field_is_accounted_for(kind: type[Record]) -> None:
    """A new field with text or ids is either changed or declared harmless."""
    hints = typing.get_type_hints(kind)
    rules = Redactor(b"salt").rules.get(kind, {})
    unknown = {name for name in kind.__struct_fields__ if holds_text_or_ids(hints[name])
               } - KEPT - BY_PLACE - rules.keys()

    assert set() == unknown


@pytest.mark.parametrize("name", ["same", "diverged"])
def test_the_verdict_is_the_same(tmp_path: Path, name: str) -> None:
    """Status, splits, hits and outcomes are those of the trace as it was."""
    original = read_trace(DATA / f"{name}.trace")
    again = redacted(original, tmp_path / "r", b"salt")
    before, after = judge(original), judge(again)

    def outcome(verdict: Any) -> list[Any]:
        return [(run.run, run.cached_tokens, run.finish, run.output_tokens,
                 run.comparison and (run.comparison.split, run.comparison.outcome,
                                     run.comparison.worst)) for run in verdict.runs]

    assert (before.status, before.headline, before.says) == (
        after.status, after.headline, after.says)
    assert outcome(before) == outcome(after)


@pytest.mark.parametrize("name", ["same", "diverged"])
def test_nothing_of_the_prompt_is_left(tmp_path: Path, name: str) -> None:
    """No text, hash, identifier, digest or file name of the original is in any file."""
    original = read_trace(DATA / f"{name}.trace")
    redacted(original, tmp_path / "r", b"salt")
    events = "".join(path.read_text() for path in (tmp_path / "r").rglob("*.jsonl"))
    secrets = {original.requests[0].prompt_text, "invoice.png", "Invoice 2041",
               original.requests[0].images[0].identifier}
    for event in original.events:
        for field in ("hash", "parent", "input_digest", "digest"):
            secrets.add(getattr(event, field, None) or "invoice.png")
        secrets.update(getattr(event, "hashes", ()))

    secrets.discard("")

    assert len(secrets) > 40
    assert [] == [secret for secret in secrets if secret in events]


def test_tokens_compare_at_their_place_only() -> None:
    """One token gives one value at one place of one request, whatever the lane, and others
    elsewhere.
    """
    redact = Redactor(b"salt")
    row = next(event for event in EVENTS if type(event).__name__ == "LogitsRecord")
    values = []
    for run, request, index in (("cached/a#1", "a", 0), ("reference/a", "a", 0),
                                ("reference/a", "a", 1), ("reference/b", "b", 0)):
        redact(_run(run, request))
        values.append(redact(msgspec.structs.replace(row, run=run, index=index)).chosen)

    assert values[0] == values[1]
    assert 3 == len(set(values))


def test_salts_differ() -> None:
    """Two traces of one prompt have nothing in common to tell so."""
    one, two = (Redactor(salt)(REQUEST) for salt in (b"1", b"2"))

    assert one.images[0].identifier != two.images[0].identifier
    assert set(one.prompt_token_ids).isdisjoint(two.prompt_token_ids)
    assert ("1x1 L",) == one.image_labels


def test_the_report_says_so(tmp_path: Path) -> None:
    """The notes of a redacted trace name what is left out; pseudonyms stand for tokens."""
    trace = redacted(read_trace(DATA / "diverged.trace"), tmp_path / "r", b"salt")
    text = render_text(judge(trace), trace, width=80).plain

    assert "redacted: `~` and four digits stand for a token" in text.replace("\n  ", " ")
    assert "~" in text.partition("Tokens")[2]


def _run(run: str, request: str) -> Any:
    from vcachediag.trace.records import RunRecord

    return RunRecord(run=run, lane="cached", request=request)
