"""The hooks change nothing: the same lanes without them give the same tokens."""

import json

import pytest

from tests.engine.conftest import ENVIRONMENT, MODEL, ROOT, RUNNERS
from vcachediag.engine.jobs import CACHED, DECODE, REFERENCE, REFERENCE_2, Job
from vcachediag.engine.supervisor import EngineProcess
from vcachediag.requests import read_requests
from vcachediag.trace.reader import read_trace
from vcachediag.trace.records import SCHEMA_VERSION, FinishedRecord, Header
from vcachediag.trace.writer import create_trace

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(600)]


def outcomes(folder, plugin, *, watch):
    """(run, tokens, cached tokens, text) of every run of the base lanes, and all event kinds."""
    example = ROOT / "examples" / "01_same_request_twice"
    request = json.loads((example / "requests.jsonl").read_text()) | {"max_tokens": 24}
    file = folder.with_suffix(".jsonl")
    file.write_text(json.dumps(request).replace("images/", f"{example}/images/"))
    create_trace(folder, Header(schema=SCHEMA_VERSION, tool="test", started="", argv=(),
                                request_file=str(file)))
    # A budget below the prompt's length: the cached lane is cut.
    engine = EngineProcess(Job(
        trace=str(folder), requests=read_requests(file), plugins=(plugin,), max_tokens=60,
        engine_arguments=(str(MODEL), "--block-size", "32", "--dtype", "bfloat16",
                          "--max-num-batched-tokens", "64", "--gpu-memory-utilization", "0.2"),
        watch=watch), lambda *_: None)
    try:
        engine.start()
        for lane in (CACHED, REFERENCE, REFERENCE_2, DECODE):
            engine.run_lane(lane)
        engine.stop()
    finally:
        engine.kill()
    events = read_trace(folder).events
    return ([(event.run, event.token_ids, event.num_cached_tokens, event.text)
             for event in events if isinstance(event, FinishedRecord)],
            {type(event).__name__ for event in events})


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("plugin", ["glyphocr", "plugins/faults/positions.py"])
def test_tokens_of_every_lane_are_those_without_hooks(tmp_path, monkeypatch, plugin, runner):
    """Whatever a run gives with our hooks it gives without them, healthy or not."""
    monkeypatch.chdir(ROOT)
    for name, value in (ENVIRONMENT | RUNNERS[runner]).items():
        monkeypatch.setenv(name, value)
    bare, bare_kinds = outcomes(tmp_path / "bare", plugin, watch=False)
    watched, kinds = outcomes(tmp_path / "watched", plugin, watch=True)

    assert bare == watched
    assert 5 == len(bare)
    assert {"ForwardRecord", "LogitsRecord", "StepRecord"} <= kinds - bare_kinds
