"""Two traces side by side: which settings, block hashes and outcomes differ."""

from typing import Literal

import msgspec

from vcachediag.analysis.align import Joined, Run, first_difference, join
from vcachediag.analysis.noise import row_difference
from vcachediag.analysis.verdict import judge
from vcachediag.trace.records import HashRecord, RequestRecord, Trace

#: Fields of the header and of the engine record that say what ran; the others are about one run.
_HEADER = ("tool", "plugins", "engine_arguments", "repeat", "max_tokens", "redacted")
_ENGINE = ("vllm", "torch", "python", "platform", "runner", "model", "model_class", "dtype",
           "num_layers", "block_size", "num_blocks", "max_model_len", "user_token_budget",
           "whole_token_budget", "prefix_caching", "stop_tokens", "overrides", "unused_flags")

#: What makes the first different hash differ. `seed`: nothing that is recorded, so the seed or the
#: algorithm. `not seen`: a trace does not hold how one of the two was made.
HashCause = Literal["tokens", "extra keys", "tokens and extra keys", "block size", "seed",
                    "not seen"]


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that differs, as text."""

    name: str
    a: str
    b: str


class HashComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The block hashes of one request in both traces."""

    request: str
    #: Hashes in each chain.
    blocks_a: int
    blocks_b: int
    #: First block with another hash; None: equal as far as both go.
    first: int | None = None
    #: None: none differs.
    cause: HashCause | None = None
    #: First differing hash on each side, hex.
    hash_a: str = ""
    hash_b: str = ""


class RequestComparison(msgspec.Struct, frozen=True, kw_only=True):
    """What one request was in both traces."""

    request: str
    #: "both", or the side that has it alone.
    on: Literal["both", "a", "b"]
    #: None: cannot be told, because a trace is redacted.
    same_prompt: bool | None = None
    same_media: bool | None = None


class OutcomeComparison(msgspec.Struct, frozen=True, kw_only=True):
    """One run in both traces."""

    run: str
    on: Literal["both", "a", "b"]
    cached_a: int | None = None
    cached_b: int | None = None
    finish_a: str = ""
    finish_b: str = ""
    tokens_a: int = 0
    tokens_b: int = 0
    #: First output token that differs; None: none does, or it cannot be told.
    split: int | None = None
    #: Difference of the first rows of logits over max|row|; None: not both seen.
    first_row: float | None = None
    #: Whether the runs differ in tokens, hits or end; rows of logits do not count.
    differs: bool = False


class TwoTraces(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison."""

    path_a: str
    path_b: str
    status_a: str
    status_b: str
    settings: tuple[Difference, ...] = ()
    requests: tuple[RequestComparison, ...] = ()
    hashes: tuple[HashComparison, ...] = ()
    outcomes: tuple[OutcomeComparison, ...] = ()
    #: Tokens and identifiers cannot be compared: a trace is redacted.
    redacted: bool = False


def compare_traces(a: Trace, b: Trace) -> TwoTraces:
    """Compare what two recordings say of the same requests."""
    left, right = join(a), join(b)
    redacted = a.header.redacted or b.header.redacted
    names = list(dict.fromkeys([*left.runs, *right.runs]))
    return TwoTraces(
        path_a=a.path, path_b=b.path, status_a=judge(a).status, status_b=judge(b).status,
        settings=_settings(a, b, left, right), requests=_requests(a, b, redacted),
        hashes=() if redacted else _hashes(a, b, left, right),
        outcomes=tuple(_outcome(name, left.runs.get(name), right.runs.get(name), redacted)
                       for name in names), redacted=redacted)


def _settings(a: Trace, b: Trace, left: Joined, right: Joined) -> tuple[Difference, ...]:
    pairs = [(name, getattr(a.header, name), getattr(b.header, name)) for name in _HEADER]
    pairs += [(name, getattr(left.engine, name, None), getattr(right.engine, name, None))
              for name in _ENGINE]
    return tuple(Difference(name=name, a=_words(x), b=_words(y)) for name, x, y in pairs if x != y)


def _words(value: object) -> str:
    if value is None:
        return "n/o"
    if isinstance(value, tuple):
        return " ".join(_words(each) for each in value) or "none"
    if isinstance(value, msgspec.Struct):
        return f"{getattr(value, 'name', '')}={getattr(value, 'used', '')}"
    return str(value)


def _requests(a: Trace, b: Trace, redacted: bool) -> tuple[RequestComparison, ...]:
    left = {record.id: record for record in a.requests}
    right = {record.id: record for record in b.requests}
    found = []
    for name in dict.fromkeys([*left, *right]):
        one, other = left.get(name), right.get(name)
        if one is None or other is None:
            found.append(RequestComparison(request=name, on="b" if one is None else "a"))
            continue
        found.append(RequestComparison(
            request=name, on="both",
            same_prompt=None if redacted else one.prompt_token_ids == other.prompt_token_ids,
            same_media=None if redacted else _media(one) == _media(other)))
    return tuple(found)


def _media(record: RequestRecord) -> list[tuple[str, int, int]]:
    return [(image.identifier, image.offset, image.length) for image in record.images]


def _hashes(a: Trace, b: Trace, left: Joined, right: Joined) -> tuple[HashComparison, ...]:
    made_a, made_b = _made(a), _made(b)
    same_size = (getattr(left.engine, "block_size", None)
                 == getattr(right.engine, "block_size", None))
    chains_a, chains_b = _chains(left), _chains(right)
    found = []
    for request in chains_a.keys() & chains_b.keys():
        one, other = chains_a[request], chains_b[request]
        first = next((place for place, (x, y) in enumerate(zip(one, other, strict=False))
                      if x != y), None)
        if first is None:
            found.append(HashComparison(request=request, blocks_a=len(one), blocks_b=len(other)))
            continue
        cause = _cause(made_a.get(one[first]), made_b.get(other[first])) if same_size else (
            "block size")
        found.append(HashComparison(
            request=request, blocks_a=len(one), blocks_b=len(other), first=first, cause=cause,
            hash_a=one[first], hash_b=other[first]))
    order = [record.id for record in a.requests]
    return tuple(sorted(found, key=lambda each: order.index(each.request)))


def _made(trace: Trace) -> dict[str, HashRecord]:
    return {event.hash: event for event in trace.events if isinstance(event, HashRecord)}


def _chains(joined: Joined) -> dict[str, tuple[str, ...]]:
    """The hashes of each request's first run of the cached lane, which has no salt of ours."""
    chains: dict[str, tuple[str, ...]] = {}
    for run in joined.of_lane("cached"):
        if run.lookups and run.lookups[0].hashes:
            chains.setdefault(run.start.request, run.lookups[0].hashes)
    return chains


def _cause(a: HashRecord | None, b: HashRecord | None) -> HashCause:
    if a is None or b is None:
        return "not seen"
    tokens, keys = a.token_ids != b.token_ids, a.extra_keys != b.extra_keys
    if tokens and keys:
        return "tokens and extra keys"
    if tokens:
        return "tokens"
    return "extra keys" if keys else "seed"


def _outcome(name: str, a: Run | None, b: Run | None, redacted: bool) -> OutcomeComparison:
    if a is None or b is None:
        return OutcomeComparison(run=name, on="b" if a is None else "a", differs=True)
    finishes = [run.finished.reason if run.finished else "unfinished" for run in (a, b)]
    split = None if redacted else first_difference(a.tokens, b.tokens)
    rows = [run.rows.get(min(run.rows, default=-1)) for run in (a, b)]
    difference = row_difference(rows[0], rows[1])[1] if rows[0] and rows[1] and (
        rows[0].vocabulary == rows[1].vocabulary) else None
    return OutcomeComparison(
        run=name, on="both", cached_a=a.cached_tokens, cached_b=b.cached_tokens,
        finish_a=finishes[0], finish_b=finishes[1], tokens_a=len(a.tokens), tokens_b=len(b.tokens),
        split=split, first_row=None if redacted else difference,
        differs=(split is not None or a.cached_tokens != b.cached_tokens
                 or finishes[0] != finishes[1] or len(a.tokens) != len(b.tokens)))
