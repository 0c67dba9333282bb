"""What the analysis concludes. Computed from a trace, never stored in one."""

from typing import Literal

import msgspec

from vcachediag.analysis.encoder import EncoderUse
from vcachediag.analysis.ledger import BlockUse
from vcachediag.trace.records import LogitsRecord

Status = Literal["SAME", "BENIGN", "DIVERGED", "INCONCLUSIVE"]
Confidence = Literal["confirmed", "likely", "possible"]
#: same: no token differs, all rows within the floor; benign: a token differs, all rows within
#: the floor; differs: rows beyond the floor, tokens equal; splits: beyond the floor, and a token
#: differs; unknown: could not be compared.
Outcome = Literal["same", "benign", "differs", "splits", "unknown"]


class Floor(msgspec.Struct, frozen=True, kw_only=True):
    """How large a difference between two rows of logits may be and still be rounding.

    All figures are |difference| / max|row|.
    """

    #: eps(dtype) x sqrt(layers + 1).
    unit: float
    #: Largest difference of `reference-2` from `reference`; None: not observed.
    repeat: float | None
    #: Largest difference of the `decode` probe from `reference`; None: not observed.
    decode: float | None
    #: max(4 unit, 4 x min(larger of the two, 16 unit)): up to here a row counts as equal.
    bound: float


class StepPair(msgspec.Struct, frozen=True, kw_only=True):
    """One output step on both sides."""

    index: int
    left: LogitsRecord | None
    right: LogitsRecord | None
    #: Largest difference of a logit that both sides hold; None: not comparable. `inf`: one side
    #: has minus infinity where the other has a finite logit.
    max_difference: float | None = None
    #: The same over max|row|, never below what the sketch says of the whole row.
    relative: float | None = None
    beyond_floor: bool = False


class RunComparison(msgspec.Struct, frozen=True, kw_only=True):
    """One run against the run that is the truth for it."""

    run: str
    against: str
    outcome: Outcome
    #: First output step at which the tokens differ (a run that ended counts as differing).
    split: int | None = None
    #: First output step whose rows differ beyond the floor.
    first_beyond: int | None = None
    #: Largest relative difference up to the split.
    worst: float | None = None
    #: Largest absolute difference up to the split.
    worst_absolute: float | None = None
    steps: tuple[StepPair, ...] = ()
    #: Why it could not be compared.
    why: str = ""


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the lanes table."""

    run: str
    lane: str
    request: str
    attempt: int
    prompt_tokens: int
    #: Prompt tokens taken from the prefix cache.
    cached_tokens: int
    #: Tokens computed per prefill step: (98,) whole, (96, 2) cut.
    prefill: tuple[int, ...]
    output_tokens: int
    finish: str
    text: str
    error: str | None = None
    #: None for the reference itself.
    comparison: RunComparison | None = None


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """What was put to the test."""

    runs: int
    #: Runs of `cached` with a prefix-cache hit.
    hits: int
    #: Number of prompt tokens computed after each hit, distinct, ascending.
    tails: tuple[int, ...] = ()
    #: Hits that end inside an image span.
    cuts_in_images: int = 0
    #: Hits that end in text.
    cuts_in_text: int = 0
    #: Prefills cut by the user's token budget.
    chunked_prefills: int = 0


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One numbered statement; `E1`, `E2`, ..."""

    number: int
    text: str


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something wrong. `code` is None while the cause is not determined."""

    code: str | None
    name: str
    cache: str
    confidence: Confidence
    #: The run that shows it.
    run: str
    request: str
    says: str
    evidence: tuple[Evidence, ...] = ()


class NotObserved(msgspec.Struct, frozen=True, kw_only=True):
    """Something that could not be seen, and why."""

    what: str
    why: str


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The answer."""

    status: Status
    exit_code: int
    #: One line under 80 characters, without the status word.
    headline: str
    #: What happened, in words; one or two sentences.
    says: str
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    #: `(what, by which evidence)`.
    ruled_out: tuple[tuple[str, str], ...] = ()
    not_observed: tuple[NotObserved, ...] = ()
    floor: Floor
    coverage: Coverage
    runs: tuple[RunSummary, ...]
    #: What to do, in order.
    next_steps: tuple[str, ...] = ()
    #: Ids of the requests that show it, in order; empty when nothing is wrong.
    minimal_pair: tuple[str, ...] = ()
    #: The run that the token and stop tables show, if any.
    shown: str | None = None
    #: The run that the block table shows: `shown`, or the first with a hit.
    focus: str | None = None
    #: The run beside it: the same request without a hit.
    beside: str | None = None
    #: Block tables of both.
    blocks: tuple[BlockUse, ...] = ()
    #: What every run asked of the encoder cache.
    encoder: tuple[EncoderUse, ...] = ()
