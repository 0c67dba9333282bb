"""What the runs looked like, and what they put to the test."""

from vcachediag.analysis.align import Joined, Run
from vcachediag.analysis.records import Coverage, RunComparison, RunSummary


def summarise(run: Run, comparison: RunComparison | None) -> RunSummary:
    """One line of the lanes table."""
    finished = run.finished
    return RunSummary(
        run=run.name, lane=run.start.lane, request=run.start.request, attempt=run.start.attempt,
        prompt_tokens=run.prompt_tokens, cached_tokens=run.cached_tokens, prefill=run.prefill,
        output_tokens=len(run.tokens), finish=finished.reason if finished else "unfinished",
        text=finished.text if finished else "", error=finished.error if finished else None,
        comparison=comparison)


def cover(joined: Joined) -> Coverage:
    """Hits, tails and cuts of the `cached` lane."""
    cached = joined.of_lane("cached")
    hits = [run for run in cached if run.cached_tokens]
    inside = [run for run in hits if _inside_image(run)]
    return Coverage(
        runs=len(cached), hits=len(hits),
        tails=tuple(sorted({run.prompt_tokens - run.cached_tokens for run in hits})),
        cuts_in_images=len(inside), cuts_in_text=len(hits) - len(inside),
        chunked_prefills=sum(len(run.prefill) > 1 for run in cached))


def _inside_image(run: Run) -> bool:
    return any(span.offset < run.cached_tokens < span.offset + span.length
               for span in run.request.images)
