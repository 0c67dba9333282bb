"""What each run asked of the encoder cache and of the processor cache."""

from typing import Literal

import msgspec

from vcachediag.trace.records import EncoderRecord, ProcessorRecord, Trace


class EncoderUse(msgspec.Struct, frozen=True, kw_only=True):
    """One media item of one run."""

    run: str
    #: Place of the item in the request.
    index: int
    identifier: str
    #: First prompt token of its span, and the one after its last.
    span: tuple[int, int]
    #: Of the first lookup.
    lookup: Literal["hit", "miss", "not asked"]
    #: Further lookups: of a prefill in pieces, each piece asks again.
    more_lookups: int = 0
    why: str = ""
    #: In the processor cache; None: not seen.
    processor: Literal["hit", "miss"] | None = None


def encoder_uses(trace: Trace) -> tuple[EncoderUse, ...]:
    """One entry for each media item of each run that has a record, in order."""
    processor = {(event.run, event.identifier): event.outcome for event in trace.events
                 if isinstance(event, ProcessorRecord)}
    first: dict[tuple[str, int], EncoderRecord] = {}
    more: dict[tuple[str, int], int] = {}
    for event in trace.events:
        if isinstance(event, EncoderRecord):
            key = (event.run, event.index)
            more[key] = more.get(key, -1) + 1
            first.setdefault(key, event)
    return tuple(
        EncoderUse(run=event.run, index=event.index, identifier=event.identifier,
                   span=(event.offset, event.offset + event.length), lookup=event.outcome,
                   more_lookups=more[key], why=event.why,
                   processor=processor.get((event.run, event.identifier)))
        for key, event in first.items())
