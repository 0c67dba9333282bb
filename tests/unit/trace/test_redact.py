"""Redacted traces: nothing of a prompt is left, and they are judged as before."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.unit.trace.sample import EVENTS, REQUEST
from vcachediag.analysis.verdict import judge
from vcachediag.report import render_text
from vcachediag.trace import records
from vcachediag.trace.reader import read_trace
from vcachediag.trace.records import (
    ControlRecord,
    ExtraKey,
    FinishedRecord,
    ForwardRecord,
    HashRecord,
    LogitsRecord,
    NotObservedRecord,
    RequestRecord,
    RunRecord,
    StopLogit,
    Trace,
)
from vcachediag.trace.redact import CHANGED, KEPT, REDACTED, Redactor, own_words
from vcachediag.trace.writer import EventWriter, create_trace, write_footer

DATA = Path(__file__).resolve().parents[2] / "data"
#: Everything that a trace consists of.
KINDS = [kind for kind in vars(records).values() if isinstance(kind, type)
         and issubclass(kind, msgspec.Struct) and kind not in (records.Record, Trace)]
SALT = b"salt"


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


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_accounted_for(kind: type[msgspec.Struct]) -> None:
    """A new field of any record is either changed or declared harmless, and not both."""
    known = sorted([*CHANGED[kind], *KEPT[kind].split()])

    assert sorted(field.name for field in msgspec.structs.fields(kind)
                  if field.name != "at") == known


@pytest.mark.parametrize("name", ["same", "diverged"])
def test_the_verdict_is_the_same(tmp_path: Path, name: str) -> None:
    """Status, splits, hits and outcomes are those of the trace as it was."""
    original = read_trace(DATA / f"{name}.trace")
    again = redacted(original, tmp_path / "r", SALT)
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
    again = redacted(original, tmp_path / "r", SALT)
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
    rows = [event for event in again.events if isinstance(event, LogitsRecord)]
    texts = {text for row in rows for text in (row.chosen_text, *row.top_texts)}
    assert {"</s>"} == {text for text in texts if not re.fullmatch(r"~[0-9a-f]{4}", text)}


def test_a_recorded_answer_is_no_cipher(tmp_path: Path) -> None:
    """In a real recording no two steps of a run give equal digests, as equal letters would."""
    again = redacted(read_trace(DATA / "diverged.trace"), tmp_path / "r", SALT)
    digests = [(event.run, event.input_digest) for event in again.events
               if isinstance(event, ForwardRecord) and event.num_tokens == 1]

    assert len(digests) > 40
    assert len(digests) == len(set(digests))


def test_tokens_compare_at_their_place_only() -> None:
    """One token gives one value at one place of one request, whatever the lane, and others
    elsewhere.
    """
    redact = Redactor(SALT)
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
    """The notes of a redacted trace name what is left out, pseudonyms stand for tokens, and the
    stop token is still named.
    """
    trace = redacted(read_trace(DATA / "diverged.trace"), tmp_path / "r", SALT)
    text = render_text(judge(trace), trace, width=80).plain
    tokens = text.partition("Tokens")[2]

    assert "redacted: `~` and four digits stand for a token" in text.replace("\n  ", " ")
    assert "~" in tokens
    assert "</s>" in tokens.partition("Top logits")[0]
    assert "stops: reference r1" in tokens
    assert "#" not in tokens.partition("Blocks")[0].replace("r1#", "")


@pytest.mark.parametrize("name", ["same", "diverged"])
def test_the_report_differs_in_texts_only(tmp_path: Path, name: str) -> None:
    """Line for line the report is the one of the original, but for tokens and the note."""
    original = read_trace(DATA / f"{name}.trace")
    again = redacted(original, tmp_path / "r", SALT)
    before, after = (render_text(judge(trace), trace, width=100, all_steps=True).plain
                     for trace in (original, again))
    figures = [[line.split()[0] for line in text.partition("Coverage")[0].splitlines()
                if line[:1] in "E>|!" and line.strip()] for text in (before, after)]

    assert figures[0] == figures[1]
    assert before.partition("Coverage")[2] == after.partition("Coverage")[2]


def test_decode_steps_spell_nothing() -> None:
    """The digest of a step's only token depends on its place: equal ones would be a cipher that
    the frequency of letters breaks.
    """
    redact, digests = Redactor(SALT), []
    for run, request, end in (("cached/a#1", "a", 9), ("reference/a", "a", 9),
                              ("reference/a", "a", 10), ("reference/b", "b", 9)):
        redact(_run(run, request))
        digests.append(redact(ForwardRecord(
            run=run, step=1, num_tokens=1, first_position=(end,), last_position=(end,),
            positions_digest="", input_digest="00aa00aa00aa00aa", seq_len=end)).input_digest)

    assert digests[0] == digests[1]
    assert 3 == len(set(digests))


def test_rows_of_appended_answers_keep_their_place() -> None:
    """The `decode` lane starts behind the answer that its prompt holds, and is compared there."""
    redact = Redactor(SALT)
    redact(_run("reference/a", "a"))
    whole = redact(FinishedRecord(run="reference/a", token_ids=(7, 7, 8), text="", reason="stop"))
    redact(RunRecord(run="decode/a", lane="decode", request="a", appended=2))
    last = redact(FinishedRecord(run="decode/a", token_ids=(8,), text="", reason="length"))
    row = next(event for event in EVENTS if isinstance(event, LogitsRecord))
    chosen = redact(msgspec.structs.replace(row, run="decode/a", index=2, chosen=8)).chosen

    assert whole.token_ids[2:] == last.token_ids == (chosen,)
    assert whole.token_ids[0] != whole.token_ids[1]


def test_identifiers_agree_between_records() -> None:
    """A media identifier stays the same in all records, and a hash has the length it had."""
    redact, key = Redactor(SALT), "ab" * 32
    span = redact(msgspec.structs.replace(REQUEST, images=(msgspec.structs.replace(
        REQUEST.images[0], identifier=key),))).images[0]
    made = redact(HashRecord(hash="00" * 8, parent=None, token_ids=(1, 2), extra_keys=(
        ExtraKey(kind="media", value=key), ExtraKey(kind="lora", value="my adapter"))))

    assert span.identifier == made.extra_keys[0].value
    assert (64, 64, 16) == (len(span.identifier), len(made.extra_keys[1].value), len(made.hash))
    assert (None, ()) == (made.parent, made.token_ids)


@pytest.mark.parametrize(("label", "kept"), [
    ("x.png 512x32 L", "512x32 L"), ("my 3x4 L page.png 512x32 I;16", "512x32 I;16"),
    ("a\nb 1x1 RGB", "1x1 RGB"), ("", REDACTED), ("secret.png", REDACTED)])
def test_file_names_are_left_out(label: str, kept: str) -> None:
    """Of an image's label only size and mode stay, whatever its name looks like."""
    request = RequestRecord(id="a", source="f:1", prompt_token_ids=(), max_tokens=1,
                            image_labels=(label,))

    assert (kept,) == Redactor(SALT)(request).image_labels


@pytest.mark.parametrize(("text", "kept"), [
    ("ValueError: no 'secret'", "ValueError"),
    ("raised my_error: secret", "raised my_error"),
    ("timeout: secret", "timeout"),
    ("the hook raised zmq.error.Again: secret: secret", "the hook raised zmq.error.Again"),
    ("vLLM did not empty the prefix cache: blocks are still in use",) * 2,
    ("requests.jsonl:3: vLLM refuses request `r1`",) * 2,
    ("",) * 2])
def test_messages_of_exceptions_are_left_out(text: str, kept: str) -> None:
    """What follows an exception's class may quote the prompt; our own words stay."""
    why = Redactor(SALT)(NotObservedRecord(what="logits", why=text)).why

    assert kept == own_words(text) == why


@pytest.mark.parametrize(("text", "kept"), [
    ("['what the worker read']", REDACTED), ("secret", REDACTED), ("True", "True"),
    ("done", "done"), ("not done: this vLLM has no sleep", "not done: this vLLM has no sleep"),
    ("raised ValueError: secret", "raised ValueError"),
    ("no token was scheduled for 50 steps", "no token was scheduled for 50 steps")])
def test_outcomes_are_ours_or_nothing(text: str, kept: str) -> None:
    """A worker method of the user's may return anything: only known outcomes are written."""
    redact = Redactor(SALT)
    control = redact(ControlRecord(name="collective_rpc", source="f:1", outcome=text))
    failed = redact(FinishedRecord(run="r", token_ids=(), text="secret", reason="error",
                                   error=text))

    assert (kept, kept, REDACTED) == (control.outcome, failed.error, failed.text)


def test_a_stop_token_keeps_its_text_alone() -> None:
    """Its rank and logit tell where it stands; its id is a stand-in as every other one."""
    row = next(event for event in EVENTS if isinstance(event, LogitsRecord))
    row = msgspec.structs.replace(row, top_ids=(4, 2), top_logits=(2.0, 1.0), chosen=2,
                                  top_texts=("x", "</s>"), chosen_text="</s>",
                                  stops=(StopLogit(token_id=2, logit=1.0, rank=2),))
    made = Redactor(SALT)(row)

    assert ("</s>", "</s>") == (made.chosen_text, made.top_texts[1])
    assert made.top_texts[0].startswith("~")
    assert row.stops == made.stops
    assert {2, 4}.isdisjoint({made.chosen, *made.top_ids})
    assert made.chosen == made.top_ids[1]


def _run(run: str, request: str) -> RunRecord:
    return RunRecord(run=run, lane="cached", request=request)
