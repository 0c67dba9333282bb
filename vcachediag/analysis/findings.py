"""Puts a divergence into words: what is seen, what it rules out, what to do."""

from vcachediag.analysis.align import Joined, Run
from vcachediag.analysis.records import Evidence, Finding, Floor, RunComparison
from vcachediag.analysis.stop import never_stops, stop_words


def describe_finding(joined: Joined, run: Run, comparisons: dict[str, RunComparison],
                     floor: Floor, count: int, seen: tuple[tuple[str, str], ...] = (),
                     ) -> tuple[Finding, tuple[tuple[str, str], ...]]:
    """The finding that `run` shows, and what the evidence rules out.

    `seen` is further evidence: (text, what it rules out or empty).

    The cause is not determined here: `code` stays None.
    """
    comparison = comparisons[run.name]
    endless = never_stops(run, joined.runs.get(comparison.against))
    lines: list[str] = []
    ruled_out: list[tuple[str, str]] = []

    def evidence(text: str) -> str:
        lines.append(text)
        return f"E{len(lines)}"

    if comparison.first_beyond is not None:
        number = evidence(
            f"Logits differ beyond the floor from output step {comparison.first_beyond} on "
            f"({_size(comparison.worst)}; the floor is {floor.bound:.1e}).")
        ruled_out.append(("rounding", number))
    if comparison.split is not None:
        evidence(f"Output token {comparison.split} is the first that differs from "
                 f"{comparison.against}.")
    if run.finished is not None and run.finished.error:
        evidence(f"The run ended with: {run.finished.error}.")
    if endless:
        evidence(stop_words(run, joined.runs.get(comparison.against)))
    repeats = [c for name, c in comparisons.items()
               if joined.runs[name].start.lane == "reference-2"]
    if repeats and all(c.outcome == "same" for c in repeats):
        number = evidence("Without the cache every request repeats itself, also in reverse order "
                          f"({_size(floor.repeat)}).")
        ruled_out.append(("a forward pass that changes by itself", number))
    cold = [c for name, c in comparisons.items() if _is_cold_twin(joined.runs[name], run)]
    if cold and cold[0].outcome in ("same", "benign"):
        number = evidence(f"{cold[0].run} is the same request in the same engine without a hit, "
                          "and gives the uncached answer.")
        ruled_out.append(("the request's settings", number))
    for text, excluded in seen:
        number = evidence(text)
        if excluded:
            ruled_out.append((excluded, number))
    if count > 1:
        evidence(f"{count} cached runs differ from their uncached runs; {run.name} is the first.")
    finding = Finding(
        code=None, name="cached-run-diverges", cache="prefix" if run.cached_tokens else "unknown",
        confidence="confirmed", run=run.name, request=run.start.request,
        says=_says(run, comparison, endless),
        evidence=tuple(Evidence(number=i, text=text) for i, text in enumerate(lines, start=1)))
    return finding, tuple(ruled_out)


def next_steps(joined: Joined, run: Run) -> tuple[str, ...]:
    """What to do about a divergence, in order."""
    steps = []
    where = f" ({joined.engine.model_file})" if joined.engine and joined.engine.model_file else ""
    model = joined.engine.model_class.rpartition(".")[2] if joined.engine else "the model"
    if run.cached_tokens:
        steps.append(f"In {model}{where}, look for what a hit skips: the first "
                     f"{run.cached_tokens} prompt tokens ran no forward pass, so positions do not "
                     "start at 0 and nothing outside the KV cache was set for them.")
        steps.append("Until then serve with --no-enable-prefix-caching.")
    else:
        steps.append(f"{run.name} had no prefix-cache hit: look at what else differs from a run "
                     "alone, such as a prefill cut by the token budget, or state kept between "
                     "requests.")
    steps.append("Check the fix: run this again; exit 0 means fixed.")
    return tuple(steps)


def _says(run: Run, comparison: RunComparison, endless: bool) -> str:
    hit = (f"cache hit of {run.cached_tokens} of {run.prompt_tokens} tokens"
           if run.cached_tokens else "no cache hit")
    who = f"{run.name} ({hit})"
    if run.finished is not None and run.finished.error:
        return f"{who} fails where its uncached run does not: {run.finished.error}."
    if comparison.split is None:
        return f"{who} gives the tokens of its uncached run, but from other logits."
    tail = f" and never stops: {len(run.tokens)} tokens, its limit" if endless else ""
    return f"{who} splits from its uncached run at output token {comparison.split}{tail}."


def _is_cold_twin(other: Run, run: Run) -> bool:
    return (other.start.lane == "cached" and other.start.request == run.start.request
            and other.name != run.name and not other.cached_tokens)


def _size(value: float | None) -> str:
    if value is None:
        return "rows of logits not seen"
    if value == float("inf"):
        return "minus infinity on one side only"
    return f"largest difference {value:.1e} of max|row|" if value else "no difference at all"
