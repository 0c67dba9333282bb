"""The lanes table: every run, what it took from the cache, and how it compares."""

import re

from vcachediag.analysis.records import RunSummary
from vcachediag.report.escape import escape, run_label
from vcachediag.report.figures import counted
from vcachediag.report.lines import ALARM, HEADING, MUTED, Lines, paragraph
from vcachediag.report.tables import Column, Row, table
from vcachediag.report.view import UNFOLD, View
from vcachediag.trace.records import EngineRecord

#: More runs than this are folded to those that matter.
MOST_RUNS = 16
_LEAD = "Lanes   "
_DTYPES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
_COLUMNS = (
    Column(title="lane", shrink_to=14),
    Column(title="cache"),
    Column(title="computed", align="right", priority=2),
    Column(title="output", align="right", priority=1),
    Column(title="finish", priority=1),
    Column(title="against reference", shrink_to=26),
)


def lanes_section(view: View) -> Lines:
    """Engine facts, one row a run, and why a run failed or was not compared."""
    facts = f"{_engine_facts(view.engine)}; {_prompts(view)}"
    lines = paragraph(facts, view.width, lead=_LEAD, lead_style=HEADING)
    runs = view.verdict.runs
    if not runs:
        return lines + paragraph("no run was recorded", view.width)
    shown = runs if view.all_steps or len(runs) <= MOST_RUNS else _that_matter(view)
    rows = [_row(run, view) for run in shown]
    lines += table(_COLUMNS, rows, view.width)
    folded = len(runs) - len(shown)
    if folded:
        words = f"{counted(folded, 'more run')} folded, none differs   {UNFOLD}"
        lines += paragraph(words, view.width, style=MUTED)
    for run in runs:
        lines += _trouble(run, view.width)
    return lines


def _engine_facts(engine: EngineRecord | None) -> str:
    if engine is None:
        return "engine n/o (no engine record in the trace)"
    return ", ".join(
        (
            f"vLLM {escape(engine.vllm)}",
            f"runner {_runner(engine.runner)}",
            f"block size {engine.block_size}",
            escape(_DTYPES.get(engine.dtype, engine.dtype)),
            "greedy",
        )
    )


def _runner(runner: str) -> str:
    """`V1` or `V2` where the record says so, else its class."""
    version = re.search(r"\bV[12]\b", runner)
    return version.group() if version else escape(runner.rpartition(".")[2] or "n/o")


def _prompts(view: View) -> str:
    lengths = [len(request.prompt_token_ids) for request in view.trace.requests]
    lengths = lengths or [run.prompt_tokens for run in view.verdict.runs]
    if not lengths:
        return "prompt n/o"
    least, most = min(lengths), max(lengths)
    if least == most:
        return f"prompt {counted(most, 'token')}"
    return f"prompts {least} to {most} tokens"


def _that_matter(view: View) -> tuple[RunSummary, ...]:
    """Runs that differ or failed, and the runs of the request that is shown."""
    shown = view.shown
    names = {shown.run, shown.against} if shown else set()
    found = tuple(run for run in view.verdict.runs if run.run in names or _matters(run))
    return found or view.verdict.runs[:MOST_RUNS]


def _matters(run: RunSummary) -> bool:
    return bool(run.error) or (run.comparison is not None and run.comparison.outcome != "same")


def _row(run: RunSummary, view: View) -> Row:
    words = _against(run)
    alarming = bool(run.error) or words.startswith(("SPLITS", "DIFFERS"))
    return Row(
        cells=(
            run_label(run.run),
            _cache(run, view),
            _computed(run),
            str(run.output_tokens),
            escape(run.finish) or "n/o",
            words,
        ),
        style=ALARM if alarming else "",
    )


def _cache(run: RunSummary, view: View) -> str:
    lane = view.lanes.get(run.lane)
    reads = run.lane == "cached" if lane is None else lane.reads_prefix_cache
    if not reads:
        return "not read"
    if run.cached_tokens:
        return f"hit {run.cached_tokens}"
    return "cold" if run.prefill else "n/o"


def _computed(run: RunSummary) -> str:
    """`98/98` whole, `96+2` cut, `98 in 7` steps when the parts are many."""
    if not run.prefill:
        return "n/o"
    if len(run.prefill) == 1:
        return f"{run.prefill[0]}/{run.prompt_tokens}"
    if len(run.prefill) <= 3:
        return "+".join(str(part) for part in run.prefill)
    return f"{sum(run.prefill)} in {len(run.prefill)}"


def _against(run: RunSummary) -> str:
    if run.error:
        return "FAILED"
    comparison = run.comparison
    if comparison is None:
        return "the truth" if run.lane == "reference" else "n/c"
    match comparison.outcome:
        case "same":
            return "same"
        case "benign":
            return f"benign flip at token {_step(comparison.split)}"
        case "differs":
            return f"DIFFERS at {_step(comparison.first_beyond)}, text equal"
        case "splits":
            return f"SPLITS at token {_step(comparison.split)}"
        case "unknown":
            return "n/c"


def _step(index: int | None) -> str:
    return "n/o" if index is None else str(index)


def _trouble(run: RunSummary, width: int) -> Lines:
    """Why a run failed, or could not be compared, under the table."""
    if run.error:
        words = f"failed: {escape(run.error)}"
    elif run.comparison is not None and run.comparison.why:
        words = f"n/c: {escape(run.comparison.why)}"
    else:
        return []
    style = ALARM if run.error else ""
    return paragraph(f"{run_label(run.run)} {words}", width, lead="  ", indent=4, style=style)
