"""From a trace to a verdict: a pure function of the recorded facts."""

import math

import msgspec

from vcachediag.analysis.align import Joined, Run, compare, first_difference, join
from vcachediag.analysis.blind import blind_hooks, blind_need
from vcachediag.analysis.cache_evidence import Caches, cache_evidence
from vcachediag.analysis.consistency import disagreements
from vcachediag.analysis.coverage import cover, summarise
from vcachediag.analysis.encoder import encoder_uses
from vcachediag.analysis.findings import describe_finding, next_steps
from vcachediag.analysis.ledger import block_uses
from vcachediag.analysis.noise import is_noise, make_floor, row_difference
from vcachediag.analysis.records import (
    Coverage,
    Floor,
    NotObserved,
    RunComparison,
    RunSummary,
    Status,
    Verdict,
)
from vcachediag.errors import ExitCode
from vcachediag.trace.records import Trace

EXIT_CODES: dict[Status, ExitCode] = {
    "SAME": ExitCode.OK, "BENIGN": ExitCode.OK, "DIVERGED": ExitCode.FINDING,
    "INCONCLUSIVE": ExitCode.INCONCLUSIVE}


def judge(trace: Trace) -> Verdict:
    """Decide from rows of logits and tokens whether the cache changed an answer.

    Trust comes first: without a reference that repeats itself, or without a cache hit, there is
    no SAME and no DIVERGED.
    """
    joined = join(trace)
    caches = Caches(blocks=block_uses(trace), encoder=encoder_uses(trace))
    verdict = _decide(trace, joined, caches)
    focus, beside = _focus(joined, verdict.shown)
    return msgspec.structs.replace(
        verdict, focus=focus, beside=beside, encoder=caches.encoder,
        blocks=tuple(use for use in caches.blocks if use.run in (focus, beside)),
        not_observed=(*verdict.not_observed, *blind_hooks(trace)),
        notes=(*verdict.notes, *disagreements(trace, joined)))


def _focus(joined: Joined, shown: str | None) -> tuple[str | None, str | None]:
    """The run whose blocks are shown, and the same request without a hit beside it."""
    cached = joined.of_lane("cached")
    run = joined.runs.get(shown or "") or next((run for run in cached if run.cached_tokens), None)
    if run is None:
        return None, None
    twins = [other for other in (*cached, *joined.of_lane("reference"))
             if other.start.request == run.start.request and other is not run
             and not other.cached_tokens]
    return run.name, twins[0].name if twins else None


def _decide(trace: Trace, joined: Joined, caches: Caches) -> Verdict:
    floor = _floor(joined)
    comparisons = _comparisons(joined, floor)
    runs = tuple(summarise(run, comparisons.get(run.name)) for run in joined.runs.values())
    coverage = cover(joined)
    blind = _not_observed(joined, comparisons)
    need = blind_need(trace)
    if need:
        return _inconclusive(trace, floor, coverage, runs, blind, "not everything was seen", None,
                             f"Nothing can be judged: {need}.",
                             ("See \"Not observed\" above.",))
    unstable = _unstable(joined, comparisons, floor)
    if unstable:
        return _inconclusive(
            trace, floor, coverage, runs, blind, "VCD902 baseline-unstable", unstable,
            "The same request gives different logits with no cache at all, so the cache "
            "cannot be judged.",
            ("Find what makes the uncached run change: random numbers in the forward pass, "
             "non-deterministic kernels, or state that one request leaves for the next.",))
    unchecked = _unchecked(joined, comparisons)
    if unchecked:
        return _inconclusive(
            trace, floor, coverage, runs, blind, "the reference was not checked", None,
            f"Nothing shows that the uncached runs repeat themselves: {unchecked}.",
            ("Run again to the end; see \"Not observed\" above.",))
    diverged = [run for run in joined.of_lane("cached")
                if comparisons[run.name].outcome in ("differs", "splits")]
    if diverged:
        return _diverged(trace, joined, diverged[0], len(diverged), floor, coverage, runs, blind,
                         comparisons, caches)
    unknown = [c for run in joined.of_lane("cached")
               if (c := comparisons[run.name]).outcome == "unknown"]
    if unknown or not joined.of_lane("cached"):
        why = unknown[0].why if unknown else "the cached lane did not run"
        return _inconclusive(trace, floor, coverage, runs, blind, "not everything was seen", None,
                             f"A cached run could not be compared: {why}.",
                             (_where_to_look(trace),))
    if not coverage.hits:
        return _inconclusive(
            trace, floor, coverage, runs, blind, "nothing was exercised", None,
            "No request had a prefix-cache hit, so nothing was put to the test.",
            (_why_no_hit(joined),))
    return _passed(trace, joined, floor, coverage, runs, blind, comparisons)


def _floor(joined: Joined) -> Floor:
    engine = joined.engine
    dtype, layers = (engine.dtype, engine.num_layers) if engine else ("bfloat16", 1)
    reference = joined.by_request("reference")
    repeat = _largest(reference, joined.by_request("reference-2"))
    decode = _largest(reference, joined.by_request("decode"))
    return make_floor(dtype, layers, repeat, decode)


def _largest(reference: dict[str, Run], other: dict[str, Run]) -> float | None:
    """Largest relative difference of rows that follow the same tokens; None: nothing to compare."""
    found: list[float] = []
    for request, run in other.items():
        truth = reference.get(request)
        if truth is None:
            continue
        # A run of the decode lane was given the reference's own tokens.
        split = None if run.start.appended else first_difference(run.tokens, truth.tokens)
        found += [row_difference(truth.rows[index], row)[1] for index, row in run.rows.items()
                  if index in truth.rows and (split is None or index <= split)]
    return max(found, default=None)


def _comparisons(joined: Joined, floor: Floor) -> dict[str, RunComparison]:
    reference = joined.by_request("reference")
    comparisons = {}
    for run in joined.runs.values():
        if run.start.lane not in ("cached", "reference-2"):
            continue
        truth = reference.get(run.start.request)
        if truth is None:
            comparisons[run.name] = RunComparison(
                run=run.name, against="reference", outcome="unknown", why="there is no reference")
        elif truth.steps and not truth.is_whole:
            comparisons[run.name] = RunComparison(
                run=run.name, against=truth.name, outcome="unknown",
                why=f"{truth.name} was not computed whole and uncached")
        else:
            comparisons[run.name] = compare(run, truth, floor.bound)
    return comparisons


def _not_observed(joined: Joined, comparisons: dict[str, RunComparison]) -> tuple[NotObserved, ...]:
    blind = [NotObserved(what=c.run, why=c.why) for c in comparisons.values()
             if c.outcome == "unknown"]
    for lane in ("reference", "reference-2"):
        blind += [NotObserved(what=f"{run.name} computed whole and uncached",
                              why=f"it was scheduled as {run.prefill} after {run.cached_tokens} "
                                  "cached tokens")
                  for run in joined.of_lane(lane) if run.steps and not run.is_whole]
    if joined.engine is None:
        blind.append(NotObserved(what="the engine's settings", why="the engine did not start"))
    return tuple(blind)


def _unstable(joined: Joined, comparisons: dict[str, RunComparison],
              floor: Floor) -> str | None:
    """The run of `reference-2` that shows an unstable baseline, if one does."""
    if floor.repeat is not None and not is_noise(floor.repeat, floor):
        worst = max(joined.of_lane("reference-2"),
                    key=lambda run: comparisons[run.name].worst or 0.0)
        return worst.name
    for run in joined.of_lane("reference-2"):
        if comparisons[run.name].outcome in ("splits", "differs"):
            return run.name
    return None


def _unchecked(joined: Joined, comparisons: dict[str, RunComparison]) -> str:
    """Why `reference-2` does not vouch for `reference`; empty when it does."""
    again = joined.by_request("reference-2")
    for request, truth in joined.by_request("reference").items():
        if truth.finished is None or truth.finished.error:
            continue  # then nothing is compared with it
        run = again.get(request)
        if run is None:
            return f"reference-2 has no run of {request}"
        if comparisons[run.name].outcome == "unknown":
            return comparisons[run.name].why
        if run.steps and not run.is_whole:
            return f"{run.name} was not computed whole and uncached"
    return ""


def _inconclusive(trace: Trace, floor: Floor, coverage: Coverage, runs: tuple[RunSummary, ...],
                  blind: tuple[NotObserved, ...], headline: str, shown: str | None, says: str,
                  steps: tuple[str, ...]) -> Verdict:
    return Verdict(status="INCONCLUSIVE", exit_code=EXIT_CODES["INCONCLUSIVE"],
                   headline=headline, says=says, floor=floor, coverage=coverage, runs=runs,
                   notes=_notes(trace, floor), not_observed=blind, next_steps=steps, shown=shown)


def _diverged(trace: Trace, joined: Joined, run: Run, count: int, floor: Floor,
              coverage: Coverage, runs: tuple[RunSummary, ...], blind: tuple[NotObserved, ...],
              comparisons: dict[str, RunComparison], caches: Caches) -> Verdict:
    finding, ruled_out = describe_finding(joined, run, comparisons, floor, count,
                                          cache_evidence(caches, run))
    return Verdict(
        status="DIVERGED", exit_code=EXIT_CODES["DIVERGED"],
        headline=f"{finding.name}  ({finding.confidence})", says=finding.says,
        findings=(finding,), ruled_out=ruled_out, floor=floor, coverage=coverage, runs=runs,
        notes=_notes(trace, floor), not_observed=blind,
        next_steps=next_steps(joined, run), shown=run.name)


def _passed(trace: Trace, joined: Joined, floor: Floor, coverage: Coverage,
            runs: tuple[RunSummary, ...], blind: tuple[NotObserved, ...],
            comparisons: dict[str, RunComparison]) -> Verdict:
    cached = [comparisons[run.name] for run in joined.of_lane("cached")]
    benign = [c for c in cached if c.outcome == "benign"]
    hits = f"{coverage.runs} runs, {coverage.hits} with a hit"
    if benign:
        first = benign[0]
        status: Status = "BENIGN"
        headline = "VCD901 numeric-noise"
        says = (f"{first.run} takes another token at step {first.split}, but every logit is "
                "within the floor of rounding: a near tie, not a fault of the cache.")
    else:
        status = "SAME"
        headline = f"{hits}; every logit within the floor"
        says = "Every cached run gives the logits and tokens of the uncached run."
    if coverage.tails == (1,):
        says += (" Only a single-token tail was exercised: faults of a partial prefill of "
                 "several tokens would not show.")
    steps = ("Send prompts of other lengths as well: a hit then leaves other tails.",
             ) if len(coverage.tails) < 2 else ()
    return Verdict(status=status, exit_code=EXIT_CODES[status], headline=headline, says=says,
                   floor=floor, coverage=coverage, runs=runs, notes=_notes(trace, floor),
                   not_observed=blind, next_steps=steps,
                   shown=benign[0].run if benign else None)


def _where_to_look(trace: Trace) -> str:
    if trace.header.redacted:
        return "See \"Not observed\" above; without --redact the trace has vLLM's log as well."
    return "See \"Not observed\" above, and the engine log of the trace."


def _why_no_hit(joined: Joined) -> str:
    engine = joined.engine
    if engine is None:
        return "Run again; the engine's settings were not recorded."
    shortest = max((run.prompt_tokens for run in joined.of_lane("cached")), default=0)
    if shortest <= engine.block_size:
        return (f"The longest prompt has {shortest} tokens and a block has {engine.block_size}: "
                "only whole blocks are reused, and the last token is always computed. Use longer "
                "prompts or a smaller --block-size.")
    return "Send requests that share a start, or send each twice (--repeat 2)."


def _notes(trace: Trace, floor: Floor) -> tuple[str, ...]:
    joined = join(trace)
    notes = []
    for run in joined.of_lane("reference"):
        expected = run.request.expect
        if expected is not None and run.finished and run.finished.text != expected:
            notes.append(f"{run.start.request}: the uncached answer is not the expected text "
                         "either; that part is the model's own, not the cache's.")
    if floor.decode is not None and not math.isinf(floor.unit) and not is_noise(
            floor.decode, floor):
        notes.append("The same token gives other logits in decode than in a whole prefill, beyond "
                     "rounding, with no cache: the model's decode and prefill disagree.")
    return tuple(notes)
