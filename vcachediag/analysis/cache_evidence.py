"""What the hooks on the caches say about one run, in words for the evidence."""

from dataclasses import dataclass

from vcachediag.analysis.align import Run
from vcachediag.analysis.consistency import positions_after_hit
from vcachediag.analysis.encoder import EncoderUse
from vcachediag.analysis.ledger import BlockUse


@dataclass(frozen=True, kw_only=True)
class Caches:
    """What all runs had from the caches."""

    blocks: tuple[BlockUse, ...]
    encoder: tuple[EncoderUse, ...]


def cache_evidence(caches: Caches, run: Run) -> tuple[tuple[str, str], ...]:
    """(text, what it rules out or empty) for each thing seen; nothing where nothing was seen."""
    return tuple(each for each in (_positions(run), _donors(caches, run), _encoder(caches, run))
                 if each is not None)


def _positions(run: Run) -> tuple[str, str] | None:
    given = positions_after_hit(run)
    if given is None:
        return None
    first, last, right = given
    places = f"positions {first}-{last}" if last > first else f"position {first}"
    if right:
        return (f"The engine gave the model {places} after the hit, as it should.",
                "wrong positions from vLLM")
    start = run.steps[0].num_computed_tokens
    return (f"The engine gave the model {places} after the hit, where "
            f"{start}-{start + run.steps[0].num_scheduled_tokens - 1} were due.", "")


def _donors(caches: Caches, run: Run) -> tuple[str, str] | None:
    hits = [use for use in caches.blocks if use.run == run.name and use.origin == "hit"]
    known = [use for use in hits if use.donor is not None]
    if not known:
        return None
    donors = list(dict.fromkeys(use.donor for use in known))
    who = str(donors[0]) if len(donors) == 1 else f"{len(donors)} earlier runs"
    return (f"{len(known)} of {len(hits)} hit {'block was' if len(hits) == 1 else 'blocks were'} "
            f"written by {who}{_when(known)}.", "")


def _when(uses: list[BlockUse]) -> str:
    decoded = sum(use.written_in != "prefill" for use in uses)
    if not decoded:
        return " in its prefill" if len({use.donor for use in uses}) == 1 else " while prefilling"
    return f"; {decoded} of them at least in part by decode steps"


def _encoder(caches: Caches, run: Run) -> tuple[str, str] | None:
    uses = [use for use in caches.encoder if use.run == run.name]
    if not uses or any(use.lookup != "not asked" for use in uses):
        return None
    spans = "the span of its image lies" if len(uses) == 1 else "the spans of its images lie"
    return (f"The encoder cache was not asked: {spans} inside the hit.",
            "the encoder cache in this run")
