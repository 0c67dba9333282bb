"""Whether and how an answer ends."""

from vcachediag.analysis.align import Run


def never_stops(run: Run, truth: Run | None) -> bool:
    """Whether `run` goes on to its limit where its uncached run stops by itself."""
    return (run.finished is not None and run.finished.reason == "length"
            and truth is not None and truth.finished is not None
            and truth.finished.reason == "stop")


def stop_words(run: Run, truth: Run | None) -> str:
    """How near the stop token came to being chosen, in words."""
    ranks = [(stop.rank, index) for index, row in run.rows.items() for stop in row.stops]
    words = (f"The uncached run stops by itself after {len(truth.tokens) if truth else 0} tokens; "
             f"this one runs to its limit of {len(run.tokens)}.")
    if ranks:
        rank, index = min(ranks)
        size = next(iter(run.rows.values())).vocabulary
        words += f" Its stop token never ranks above {rank} of {size} (step {index})."
    return words
