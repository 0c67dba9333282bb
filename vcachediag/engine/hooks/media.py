"""A request's media items, in the shapes that vLLM has kept them in."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Item:
    """One media item of a request."""

    #: Key of the encoder cache and of block hashes.
    identifier: str
    #: First prompt token, and number of tokens.
    offset: int
    length: int


def media_of(request: Any) -> list[Item]:
    """The media items of a vLLM `Request`, in its own order."""
    features = getattr(request, "mm_features", None)
    if features is not None:
        return [Item(identifier=str(each.identifier), offset=int(each.mm_position.offset),
                     length=int(each.mm_position.length)) for each in features]
    hashes = request.mm_hashes or ()
    return [Item(identifier=str(hashes[i]) if i < len(hashes) else "", offset=int(place.offset),
                 length=int(place.length))
            for i, place in enumerate(request.mm_positions or ())]
