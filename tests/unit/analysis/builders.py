"""Small traces: only what a test names differs from a plain healthy recording."""

import math
import random
from collections.abc import Mapping, Sequence

from vcachediag.trace.records import (
    EngineRecord,
    Event,
    FinishedRecord,
    FinishReason,
    Header,
    ImageSpan,
    LaneName,
    LogitsRecord,
    RequestRecord,
    RunRecord,
    StepRecord,
    StopLogit,
    Trace,
)

VOCABULARY = 40
STOP = 39
#: Of the chosen token, and so the largest logit of every plain row.
HIGHEST = 8.0
PROMPT = 20
#: eps(float32) x sqrt(3 layers + 1), a power of two.
UNIT = 2.0**-22
TOKENS = (5, 6, STOP)
ENGINE = EngineRecord(
    vllm="0.10", torch="2.7", python="3.12", platform="cpu", runner="gpu_model_runner",
    model_class="glyph.Model", model="glyph", dtype="float32", num_layers=3, block_size=4,
    max_model_len=128, user_token_budget=64, whole_token_budget=128)

_SIGNS = [[random.Random(plane * 1000 + i).choice((-1.0, 1.0)) for i in range(VOCABULARY)]
          for plane in range(16)]


def row(run: str = "reference/r1", index: int = 0, chosen: int = 5,
        changes: Mapping[int, float] | None = None) -> LogitsRecord:
    """A row with `chosen` on top; `changes` sets single logits."""
    values = [6.0 - 0.1 * token for token in range(VOCABULARY)]
    values[chosen] = HIGHEST
    for token, value in (changes or {}).items():
        values[token] = value
    finite = [value if math.isfinite(value) else 0.0 for value in values]
    order = sorted((token for token in range(VOCABULARY) if math.isfinite(values[token])),
                   key=lambda token: -values[token])
    stop = values[STOP]
    return LogitsRecord(
        run=run, index=index, chosen=chosen, chosen_text=f"t{chosen}",
        top_ids=tuple(order[:20]), top_logits=tuple(values[token] for token in order[:20]),
        top_texts=tuple(f"t{token}" for token in order[:20]),
        margin=values[order[0]] - values[order[1]],
        stops=(StopLogit(token_id=STOP, logit=stop if math.isfinite(stop) else None,
                         rank=1 + sum(value > stop for value in values)),),
        digest=repr(values),
        sketch=tuple(sum(s * v for s, v in zip(plane, finite, strict=True)) for plane in _SIGNS),
        max_abs=max(map(abs, finite)), norm=math.hypot(*finite), vocabulary=VOCABULARY,
        num_neg_inf=values.count(-math.inf), num_nan=sum(map(math.isnan, values)))


def run(lane: LaneName, *, request: str = "r1", attempt: int = 1, cached: int = 0,
        tokens: Sequence[int] = TOKENS, changes: Mapping[int, Mapping[int, float]] | None = None,
        missing: Sequence[int] = (), prefill: Sequence[int] | None = None,
        reason: FinishReason = "stop", text: str = "ab", error: str | None = None,
        prompt: int = PROMPT) -> list[Event]:
    """The records of one run; `changes` maps an output step to the logits set in its row."""
    name = f"{lane}/{request}#{attempt}" if lane == "cached" else f"{lane}/{request}"
    events: list[Event] = [RunRecord(run=name, lane=lane, request=request, attempt=attempt)]
    done = cached
    for size in prefill or (prompt - cached,):
        events.append(StepRecord(run=name, step=len(events), num_computed_tokens=done,
                                 num_scheduled_tokens=size))
        done += size
    for index, token in enumerate(tokens):
        if index:
            events.append(StepRecord(run=name, step=len(events), num_scheduled_tokens=1,
                                     num_computed_tokens=prompt + index - 1))
        if index not in missing:
            events.append(row(name, index, token, (changes or {}).get(index)))
    events.append(FinishedRecord(run=name, token_ids=tuple(tokens), text=text, reason=reason,
                                 num_cached_tokens=cached, error=error))
    return events


def decode(changes: Mapping[int, float] | None = None, *, tokens: Sequence[int] = TOKENS,
           request: str = "r1") -> list[Event]:
    """The run that computes the last row of the reference's answer in a whole prefill."""
    name, appended = f"decode/{request}", len(tokens) - 1
    return [RunRecord(run=name, lane="decode", request=request, appended=appended),
            StepRecord(run=name, step=1, num_computed_tokens=0,
                       num_scheduled_tokens=PROMPT + appended),
            row(name, appended, tokens[-1], changes),
            FinishedRecord(run=name, token_ids=(tokens[-1],), text="", reason="length")]


def trace(*runs: Sequence[Event], engine: EngineRecord | None = ENGINE, expect: str | None = None,
          images: Sequence[ImageSpan] = (), prompt: int = PROMPT) -> Trace:
    """A trace of one request, `r1`, with these runs."""
    request = RequestRecord(id="r1", source="requests.jsonl:1", max_tokens=16, expect=expect,
                            prompt_token_ids=tuple(range(prompt)), images=tuple(images))
    return Trace(
        path="trace", requests=(request,),
        header=Header(schema=1, tool="0.1", started="2026-01-01T00:00:00Z", argv=(),
                      request_file="requests.jsonl"),
        events=tuple(([engine] if engine else []) + [event for each in runs for event in each]))


def references() -> list[Event]:
    """A reference that repeats itself, and the decode probe."""
    return run("reference") + run("reference-2") + decode()


def cold() -> list[Event]:
    """The first cached run: no hit yet."""
    return run("cached")
