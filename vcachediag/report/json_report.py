"""The report for programs: one JSON object with stable bytes.

Keys stand in declared order, two spaces of indent, ASCII only, a newline at the end; the same
verdict and trace give the same bytes. JSON has no infinity and no NaN: such a figure is the
string `"inf"`, `"-inf"` or `"nan"`. `null` always means not observed or not comparable, except
for a stop token's logit, where the records' null is written as `"-inf"`, which is what it means.
`blocks` has the block tables of the run that the text report shows and of its twin without a hit,
`forwards` what the model was given in both; `lookups`, `encoder`, `evictions` and `hooks` are of
all runs. Texts are not escaped further than JSON does: they are data here.
"""

import json
import math
from typing import Any

import msgspec

from vcachediag import __version__
from vcachediag.analysis.records import RunComparison, RunSummary, StepPair, Verdict
from vcachediag.report.view import View
from vcachediag.trace.records import (
    EncoderEvictionRecord,
    ForwardRecord,
    HookRecord,
    LogitsRecord,
    LookupRecord,
    Record,
    Trace,
)

#: Raised when a key changes its meaning or goes away; new keys do not raise it.
REPORT_SCHEMA = 1

# A JSON object: values are whatever JSON can hold.
JsonObject = dict[str, Any]


def render_json(verdict: Verdict, trace: Trace) -> str:
    """The verdict and what it rests on, as JSON text."""
    view = View(verdict=verdict, trace=trace)
    document = {
        "schema": REPORT_SCHEMA,
        "tool": {"name": "vcachediag", "version": __version__},
        "status": verdict.status,
        "exit_code": verdict.exit_code,
        "headline": verdict.headline,
        "says": verdict.says,
        "findings": plain(verdict.findings),
        "notes": list(view.notes),
        "ruled_out": [{"what": what, "evidence": evidence} for what, evidence in verdict.ruled_out],
        "not_observed": [{"what": what, "why": why} for what, why in view.not_observed],
        "coverage": plain(verdict.coverage),
        "floor": plain(verdict.floor),
        "lanes": [plain(lane) for lane in view.lanes.values()],
        "requests": [_run(run, view) for run in verdict.runs],
        "shown": _shown(view.shown),
        "blocks": plain(verdict.blocks),
        "lookups": [_timeless(record) for record in view.records(LookupRecord)],
        "encoder": plain(verdict.encoder),
        "evictions": [_timeless(record) for record in view.records(EncoderEvictionRecord)],
        "forwards": [_timeless(record) for record in view.records(ForwardRecord)
                     if record.run in (verdict.focus, verdict.beside)],
        "hooks": [_timeless(record) for record in view.records(HookRecord)],
        "next_steps": plain(verdict.next_steps),
        "minimal_pair": plain(verdict.minimal_pair),
        "overrides": plain(view.engine.overrides) if view.engine else [],
        "environment": _environment(trace, view),
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def plain(value: object) -> Any:
    """A record as what JSON can hold, every field written, in declared order."""
    if isinstance(value, msgspec.Struct):
        names = [field.name for field in msgspec.structs.fields(value)]
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _timeless(record: Record) -> JsonObject:
    """A record without the moment at which it was written."""
    fields: JsonObject = plain(record)
    fields.pop("at")
    return fields


def _run(run: RunSummary, view: View) -> JsonObject:
    """One run of a request, with its comparison but without its steps."""
    finished = view.finished.get(run.run)
    compared = run.comparison
    return {
        "id": run.request,
        "lane": run.lane,
        "attempt": run.attempt,
        "run": run.run,
        "prompt_tokens": run.prompt_tokens,
        "cached_tokens": run.cached_tokens,
        "prefill": plain(run.prefill),
        "against": compared.against if compared else None,
        "outcome": compared.outcome if compared else None,
        "split": compared.split if compared else None,
        "first_beyond": compared.first_beyond if compared else None,
        "worst": plain(compared.worst) if compared else None,
        "worst_absolute": plain(compared.worst_absolute) if compared else None,
        "why": compared.why if compared else "",
        "finish": run.finish,
        "output_tokens": run.output_tokens,
        "token_ids": plain(finished.token_ids) if finished else None,
        "text": run.text,
        "error": run.error,
    }


def _shown(comparison: RunComparison | None) -> JsonObject | None:
    """The comparison that the token tables show, step by step."""
    if comparison is None:
        return None
    return {
        "run": comparison.run,
        "against": comparison.against,
        "split": comparison.split,
        "steps": [_pair(pair) for pair in comparison.steps],
    }


def _pair(pair: StepPair) -> JsonObject:
    return {
        "index": pair.index,
        "max_difference": plain(pair.max_difference),
        "relative": plain(pair.relative),
        "beyond_floor": pair.beyond_floor,
        "left": _logits(pair.left),
        "right": _logits(pair.right),
    }


def _logits(record: LogitsRecord | None) -> JsonObject | None:
    if record is None:
        return None
    tops = zip(record.top_ids, record.top_texts, record.top_logits, strict=False)
    return {
        "token_id": record.chosen,
        "text": record.chosen_text,
        "margin": plain(record.margin),
        "top": [{"token_id": token, "text": text, "logit": plain(logit)}
                for token, text, logit in tops],
        "stops": [
            {
                "token_id": stop.token_id,
                "logit": "-inf" if stop.logit is None else plain(stop.logit),
                "rank": stop.rank,
            }
            for stop in record.stops
        ],
        "digest": record.digest,
    }


def _environment(trace: Trace, view: View) -> JsonObject:
    """What ran, and how the recording went."""
    return {
        "header": plain(trace.header),
        "engine": plain(view.engine),
        "footer": plain(trace.footer),
        "damage": plain(trace.damage),
    }
