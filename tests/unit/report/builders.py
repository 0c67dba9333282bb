"""Tiny verdicts and traces: only what a test names differs from a plain healthy run."""

from collections.abc import Sequence
from typing import Any

from vcachediag.analysis.records import (
    Coverage,
    Evidence,
    Finding,
    Floor,
    RunComparison,
    RunSummary,
    StepPair,
    Verdict,
)
from vcachediag.trace.records import (
    EngineRecord,
    Footer,
    Header,
    LaneRecord,
    LogitsRecord,
    Override,
    RequestRecord,
    StopLogit,
    Trace,
)

EOS = 2
FLOOR = Floor(unit=2.4e-7, repeat=0.0, decode=2.1e-6, bound=8.4e-6)


def row(
    index: int,
    text: str = "a",
    *,
    token: int | None = None,
    run: str = "reference/r1",
    margin: float = 3.0,
    rank: int = 30,
    stop_logit: float | None = -4.0,
    top: Sequence[tuple[int, str, float]] | None = None,
) -> LogitsRecord:
    """One row of logits that chose `text`."""
    chosen = ord(text[0]) if token is None and text else token or 0
    top = top or ((chosen, text, 9.0), (77, "M", 9.0 - margin))
    return LogitsRecord(
        run=run,
        index=index,
        chosen=chosen,
        chosen_text=text,
        top_ids=tuple(each[0] for each in top),
        top_texts=tuple(each[1] for each in top),
        top_logits=tuple(each[2] for each in top),
        margin=margin,
        stops=(StopLogit(token_id=EOS, logit=stop_logit, rank=rank),),
        digest=f"{index:04x}",
        sketch=(0.0,) * 16,
        max_abs=9.0,
        norm=20.0,
        vocabulary=67,
    )


def stop_row(index: int, run: str = "reference/r1") -> LogitsRecord:
    """The row that chooses the stop token."""
    return row(index, "</s>", token=EOS, run=run, rank=1, stop_logit=9.0)


def pair(
    index: int,
    left: LogitsRecord | None,
    right: LogitsRecord | None,
    difference: float | None = 0.0,
    *,
    beyond: bool = False,
) -> StepPair:
    """One output step on both sides."""
    return StepPair(
        index=index,
        left=left,
        right=right,
        max_difference=difference,
        relative=None if difference is None else difference / 9.0,
        beyond_floor=beyond,
    )


def run(
    lane: str = "reference", request: str = "r1", attempt: int = 1, **fields: Any
) -> RunSummary:
    """A run of 98 prompt tokens that computed them all and stopped after 4 tokens."""
    name = f"cached/{request}#{attempt}" if lane == "cached" else f"{lane}/{request}"
    return RunSummary(
        **{
            "run": name,
            "lane": lane,
            "request": request,
            "attempt": attempt,
            "prompt_tokens": 98,
            "cached_tokens": 0,
            "prefill": (98,),
            "output_tokens": 4,
            "finish": "stop",
            "text": "abc",
            **fields,
        }
    )


def comparison(
    run_name: str = "cached/r1#2", outcome: Any = "same", **fields: Any
) -> RunComparison:
    """`run_name` against the reference of r1."""
    return RunComparison(
        **{"run": run_name, "against": "reference/r1", "outcome": outcome, **fields}
    )


def healthy_runs(**cached: Any) -> tuple[RunSummary, ...]:
    """Reference, its repetition, a cold run, and a run with a hit that takes `cached`."""
    return (
        run("reference"),
        run("reference-2", comparison=comparison("reference-2/r1")),
        run("cached", attempt=1, comparison=comparison("cached/r1#1")),
        run(
            "cached",
            attempt=2,
            **{
                "cached_tokens": 96,
                "prefill": (2,),
                "comparison": comparison(),
                **cached,
            },
        ),
    )


def verdict(**fields: Any) -> Verdict:
    """SAME, one hit with a tail of two tokens."""
    return Verdict(
        **{
            "status": "SAME",
            "exit_code": 0,
            "headline": "2 runs, 1 with a hit; every row of logits within the floor",
            "says": "Reading from the prefix cache changes nothing here.",
            "floor": FLOOR,
            "coverage": Coverage(runs=2, hits=1, tails=(2,), cuts_in_text=1),
            "runs": healthy_runs(),
            **fields,
        }
    )


def finding(**fields: Any) -> Finding:
    """A finding without a settled cause, with two pieces of evidence."""
    return Finding(
        **{
            "code": "101",
            "name": "positions-wrong-on-resume",
            "cache": "prefix",
            "confidence": "confirmed",
            "run": "cached/r1#2",
            "request": "r1",
            "says": "positions count from 0",
            "evidence": (
                Evidence(number=1, text="Logits differ from step 0 (max 2.11, floor 8.4e-6)."),
                Evidence(
                    number=2,
                    text="The engine gave positions 96-97; the rotary modules used 0-1, in 3 of "
                    "3 layers, so the tail is encoded as if it stood at the start.",
                ),
            ),
            **fields,
        }
    )


def trace(**fields: Any) -> Trace:
    """A complete trace of one request: header, engine, lanes, footer; no rows."""
    return Trace(
        **{
            "path": "out.vcd",
            "header": Header(
                schema=1,
                tool="0.1.0",
                started="2025-01-01T00:00:00Z",
                argv=("vcachediag", "replay", "requests.jsonl"),
                request_file="requests.jsonl",
            ),
            "requests": (
                RequestRecord(
                    id="r1",
                    source="requests.jsonl:1",
                    prompt_token_ids=tuple(range(98)),
                    max_tokens=256,
                ),
            ),
            "events": (
                engine(),
                LaneRecord(
                    lane="cached", runs=("cached/r1#1", "cached/r1#2"), reads_prefix_cache=True
                ),
                LaneRecord(lane="reference", runs=("reference/r1",), reads_prefix_cache=False),
            ),
            "footer": Footer(outcome="complete", ended="2025-01-01T00:01:00Z"),
            **fields,
        }
    )


def engine(**fields: Any) -> EngineRecord:
    """vLLM on a CPU, runner V1, blocks of 32 tokens."""
    return EngineRecord(
        **{
            "vllm": "0.32.0",
            "torch": "2.8.0",
            "python": "3.11.7",
            "platform": "cpu",
            "runner": "vllm.v1.worker.cpu_model_runner.CPUModelRunner (V1)",
            "model_class": "glyphocr.modeling.GlyphOCR",
            "model": "glyphocr",
            "dtype": "float32",
            "num_layers": 3,
            "block_size": 32,
            "max_model_len": 512,
            "user_token_budget": 2048,
            "whole_token_budget": 4096,
            "stop_tokens": ((EOS, "</s>"),),
            "overrides": (
                Override(
                    name="enforce_eager",
                    given="default",
                    used="True",
                    why="the hooks see nothing inside a compiled graph",
                ),
            ),
            **fields,
        }
    )
