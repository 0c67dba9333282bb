"""What the hooks of a real engine record, on both model runners."""

import hashlib
import json
import pickle
from collections import defaultdict

import pytest

from tests.engine.conftest import IMAGES
from vcachediag.trace.reader import read_trace
from vcachediag.trace.records import (
    BlocksRecord,
    BlockTableRecord,
    EncoderEvictionRecord,
    EncoderRecord,
    FinishedRecord,
    ForwardRecord,
    HashRecord,
    HookRecord,
    LogitsRecord,
    LookupRecord,
    NotObservedRecord,
    ProcessorRecord,
    StepRecord,
)

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(600)]
PROMPT = "<s><user><image>Read the text in this image, it is one line of letters.<assistant>"
BLOCK = 32


@pytest.fixture(scope="module", params=["V1", "V2"])
def recorded(request, replay, tmp_path_factory):
    """Two images behind one text, twice; small enough for the interpreter of runner V2."""
    folder = tmp_path_factory.mktemp(request.param)
    file = folder / "requests.jsonl"
    file.write_text("\n".join(json.dumps(
        {"id": name, "prompt": PROMPT, "images": [str(IMAGES[number])], "max_tokens": 12})
        for number, name in enumerate(("a", "b"))))
    code, report = replay(str(file), "glyphocr", "float32", runner=request.param,
                          out=folder / "trace")
    assert (0, "SAME") == (code, report["status"])
    return read_trace(folder / "trace")


def of(trace, kind, **wanted):
    """The records of one kind that have the wanted values, in order."""
    return [event for event in trace.events if isinstance(event, kind)
            and all(getattr(event, name) == value for name, value in wanted.items())]


def test_no_hook_is_blind(recorded):
    """Every hook saw something in every lane, except that a hash is recorded once, and none
    raised.
    """
    counts = of(recorded, HookRecord)

    assert 4 * 8 == len(counts)
    assert [] == [count for count in counts if count.failed]
    assert {"hash"} == {count.hook for count in counts if not count.seen}
    assert [] == of(recorded, NotObservedRecord)


def test_hashes_can_be_made_again(recorded):
    """A recorded digest is SHA-256 of the pickled parent, tokens and extra keys, as vLLM's
    documentation has it: the inputs are all there. What stands for the parent of a first block
    is vLLM's secret in some releases, and so is not checked.
    """
    def digest(record, keys):
        return hashlib.sha256(pickle.dumps(
            (bytes.fromhex(record.parent), record.token_ids, tuple(keys) or None),
            protocol=pickle.HIGHEST_PROTOCOL)).hexdigest()

    hashes = of(recorded, HashRecord)
    heads = [record for record in hashes if record.parent is None]
    for record in hashes:
        if record.parent is not None:
            assert record.parent in {each.hash for each in hashes}
            # Tagged from 0.31 on.
            assert record.hash in (
                digest(record, (("mm", key.value, key.offset) for key in record.extra_keys)),
                digest(record, ((key.value, key.offset) for key in record.extra_keys)))
    assert 2 == len(heads) < len(hashes)
    assert {"media"} == {key.kind for record in heads for key in record.extra_keys}


def test_lookups_say_what_was_asked_and_found(recorded):
    """The second sending hits all whole blocks of its own first one; uncached lanes do not read."""
    for name in ("a", "b"):
        prompt = len(next(r for r in recorded.requests if r.id == name).prompt_token_ids)
        first, = of(recorded, LookupRecord, run=f"cached/{name}#1")
        second, = of(recorded, LookupRecord, run=f"cached/{name}#2")
        reference, = of(recorded, LookupRecord, run=f"reference/{name}")
        table = of(recorded, BlockTableRecord, run=f"cached/{name}#1")[0]
        found = (prompt - 1) // BLOCK * BLOCK

        assert (prompt, prompt - 1, 0, "") == (first.asked, first.limit, first.found,
                                               first.not_read)
        assert (found, table.block_ids[:found // BLOCK]) == (second.found, second.block_ids[0])
        assert first.hashes == second.hashes
        assert (0, True) == (reference.found, bool(reference.not_read))
    a, b = (of(recorded, LookupRecord, run=f"cached/{name}#1")[0].hashes for name in "ab")
    assert set(a).isdisjoint(b)


def test_blocks_add_up(recorded):
    """No block is handed out while it is held, every hit block is registered, and all are free
    at the end.
    """
    held, hashes = set(), {}
    for event in of(recorded, BlocksRecord):
        ids = set(event.block_ids)
        if event.action in ("allocate", "reuse"):
            assert not held & ids
            held |= ids
        if event.action == "reuse":
            assert ids <= hashes.keys()
        elif event.action == "register":
            assert ids <= held
            hashes |= dict(zip(event.block_ids, event.hashes, strict=True))
        elif event.action == "free":
            assert ids <= held
            held -= ids
        elif event.action == "evict":
            assert hashes.pop(event.block_ids[0]) == event.hashes[0]
        elif event.action == "reset":
            hashes.clear()

    assert set() == held
    assert of(recorded, BlocksRecord, action="reuse", run="cached/a#2")


def test_attention_used_the_scheduler_s_blocks(recorded):
    """The block table, lengths, positions and slots of each forward pass are those that the
    scheduler gave.
    """
    tables, used = defaultdict(list), defaultdict(list)
    for event in of(recorded, BlockTableRecord):
        tables[event.run][event.first:] = event.block_ids
    steps = {(step.run, step.step): step for step in of(recorded, StepRecord)}
    forwards = of(recorded, ForwardRecord)
    for event in forwards:
        step = steps[event.run, event.step]
        start, end = step.num_computed_tokens, step.num_computed_tokens + step.num_scheduled_tokens
        table = used[event.run]
        table[event.first_block:] = event.block_ids

        assert step.num_scheduled_tokens == event.num_tokens
        assert ((start,), (end - 1,), end) == (event.first_position, event.last_position,
                                               event.seq_len)
        assert [event.first_slot, event.last_slot] == [
            table[place // BLOCK] * BLOCK + place % BLOCK for place in (start, end - 1)]
        assert event.attention.endswith("CPUAttentionMetadata")
        assert event.op.endswith("CPUAttentionBackendImpl")
        assert event.has_embeds
    assert len(steps) == len(forwards)
    assert dict(tables) == dict(used)


def test_the_same_input_has_the_same_digest(recorded):
    """Embeddings of one prompt are equal in two lanes, and those of another image differ."""
    first = {run: of(recorded, ForwardRecord, run=run)[0].input_digest
             for run in ("cached/a#1", "reference/a", "cached/b#1")}

    assert first["cached/a#1"] == first["reference/a"] != first["cached/b#1"]


def test_encoder_and_processor_lookups(recorded):
    """First sight is a miss of both caches; on a hit the encoder is not asked, since the span lies
    inside it, and the processor cache has the item.
    """
    for name in ("a", "b"):
        span, = next(r for r in recorded.requests if r.id == name).images
        miss, = of(recorded, EncoderRecord, run=f"cached/{name}#1")
        passed, = of(recorded, EncoderRecord, run=f"cached/{name}#2")
        step = of(recorded, StepRecord, run=f"cached/{name}#1")[0]
        seen = [of(recorded, ProcessorRecord, run=f"{lane}/{name}{attempt}")[0].outcome
                for lane, attempt in (("cached", "#1"), ("cached", "#2"), ("reference", ""))]

        assert ("miss", span.identifier, span.offset, span.length) == (
            miss.outcome, miss.identifier, miss.offset, miss.length)
        assert ("not asked", True) == (passed.outcome, "inside the cached prefix" in passed.why)
        assert (0,) == step.encoder_inputs
        assert ["miss", "hit", "miss"] == seen
        assert any(span.identifier in event.identifiers and event.why == "reset"
                   for event in of(recorded, EncoderEvictionRecord))


def test_every_token_has_its_row(recorded):
    """One row of logits for each token, in order; greedy takes its highest; stop ids have ranks."""
    for finished in of(recorded, FinishedRecord):
        rows = of(recorded, LogitsRecord, run=finished.run)

        assert finished.token_ids == tuple(row.chosen for row in rows)
        assert finished.token_ids == tuple(row.top_ids[0] for row in rows)
        assert {20} == {len(row.top_ids) for row in rows}
        assert all(row.stops and row.stops[0].rank >= 1 for row in rows)
