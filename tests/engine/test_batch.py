"""Hooks while several requests share a batch, and blocks are short."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.conftest import ENVIRONMENT, IMAGES, ROOT, RUNNERS
from vcachediag.trace.reader import read_trace
from vcachediag.trace.records import (
    BlocksRecord,
    BlockTableRecord,
    ForwardRecord,
    NotObservedRecord,
    StepRecord,
)

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(600)]
NAMES = ("a", "b", "c")


@pytest.fixture(scope="module", params=["V1", "V2"])
def batched(request, tmp_path_factory):
    """Three requests at once in an engine whose blocks do not suffice for them, and the trace."""
    folder = tmp_path_factory.mktemp(request.param)
    file = folder / "requests.jsonl"
    file.write_text("\n".join(json.dumps(
        {"id": name, "images": [str(IMAGES[number])], "ignore_eos": True, "max_tokens": 30,
         "prompt": "<s><user><image>Read this" + ", please" * number + ".<assistant>"})
        for number, name in enumerate(NAMES)))
    # Each prompt takes three blocks and its answer a fourth; block 0 is the null block.
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "batch.py"), str(folder / "trace"), str(file),
         "11"], capture_output=True, text=True, env=ENVIRONMENT | RUNNERS[request.param], cwd=ROOT,
        timeout=400, check=False)
    assert done.stdout, done.stderr[-3000:]
    return json.loads(done.stdout), read_trace(folder / "trace")


def test_rows_belong_to_their_requests(batched):
    """In a batch each run gets its own row of logits: its highest is the token that it got, and
    the rows are those of the same request alone.
    """
    results, _ = batched
    for name in NAMES:
        together, alone = results[f"cached/{name}"], results[f"reference/{name}"]

        assert together["tokens"] == together["top_ids"] == alone["tokens"]
        assert pytest.approx(alone["top"], abs=1e-3) == together["top"]
    assert 3 == len({tuple(results[f"cached/{name}"]["tokens"]) for name in NAMES})


def test_positions_belong_to_their_requests(batched):
    """In a batch each run's part of the positions starts where its computed tokens end."""
    _, trace = batched
    steps = {(event.run, event.step): event for event in trace.events
             if isinstance(event, StepRecord) and event.num_scheduled_tokens}
    forwards = [event for event in trace.events if isinstance(event, ForwardRecord)]
    shared = {step for run, step in steps
              if sum(other == step for _, other in steps) > 1}

    assert len(steps) == len(forwards)
    assert len(shared) > 10
    for event in forwards:
        step = steps[event.run, event.step]
        end = step.num_computed_tokens + step.num_scheduled_tokens
        assert ((step.num_computed_tokens,), (end - 1,), end) == (
            event.first_position, event.last_position, event.seq_len)


def test_preemption_and_eviction_are_seen(batched):
    """Too few blocks: a run is preempted and computes again, blocks with a hash are evicted."""
    _, trace = batched
    preempted = [event for event in trace.events
                 if isinstance(event, StepRecord) and event.preempted]
    evicted = [event for event in trace.events
               if isinstance(event, BlocksRecord) and event.action == "evict"]

    assert preempted
    again = [event for event in trace.events if isinstance(event, StepRecord)
             and event.run == preempted[0].run and event.step > preempted[0].step]
    assert again
    assert again[0].num_scheduled_tokens > 1
    assert evicted
    tables = [event for event in trace.events if isinstance(event, BlockTableRecord)
              and event.run == preempted[0].run and event.step == again[0].step]
    assert [0] == [event.first for event in tables]
    assert all(len(event.hashes) == len(event.block_ids) == 1 for event in evicted)


def test_no_hook_raised(batched):
    """Nothing is named as not observed."""
    _, trace = batched

    assert [] == [event for event in trace.events if isinstance(event, NotObservedRecord)]
