"""The facts of a run, as they are stored. Nothing here is judged.

A trace is a directory:

    header.json            `Header`
    requests.jsonl         `RequestRecord`, one a line
    events/<role>-<pid>.jsonl   the other records, one a line, each with its `type`
    engine.log             what vLLM printed; a redacted trace has none
    footer.json            `Footer`; absent when the recording was killed
"""

from typing import Literal

import msgspec

from vcachediag.trace.base import LaneName, Record
from vcachediag.trace.seen import (
    BlockAction,
    BlocksRecord,
    BlockTableRecord,
    EncoderEvictionRecord,
    EncoderRecord,
    ExtraKey,
    ForwardRecord,
    HashRecord,
    HookName,
    HookRecord,
    LookupRecord,
    ProcessorRecord,
    StepRecord,
)

# Everything that is stored goes by this module's name.
__all__ = [
    "SCHEMA_VERSION",
    "BlockAction",
    "BlockTableRecord",
    "BlocksRecord",
    "ControlRecord",
    "EncoderEvictionRecord",
    "EncoderRecord",
    "EngineRecord",
    "Event",
    "ExtraKey",
    "FinishReason",
    "FinishedRecord",
    "Footer",
    "ForwardRecord",
    "HashRecord",
    "Header",
    "HookName",
    "HookRecord",
    "ImageSpan",
    "LaneName",
    "LaneRecord",
    "LogitsRecord",
    "LookupRecord",
    "NotObservedRecord",
    "Override",
    "ProcessorRecord",
    "Record",
    "RequestRecord",
    "RunRecord",
    "StepRecord",
    "StopLogit",
    "Trace",
]

#: Raised when a stored field changes its meaning or goes away; new fields do not raise it.
SCHEMA_VERSION = 1

FinishReason = Literal["stop", "length", "abort", "error"]


class Override(msgspec.Struct, frozen=True, kw_only=True):
    """An engine setting that we set for the diagnosis, whatever the user gave."""

    name: str
    #: What the user's flags give, as text; "default" where they say nothing.
    given: str
    used: str
    why: str


class Header(Record, frozen=True, kw_only=True, tag="header"):
    """Everything that is known before the engine starts."""

    schema: int
    #: Version of vcachediag.
    tool: str
    #: UTC, ISO 8601.
    started: str
    #: The command line.
    argv: tuple[str, ...]
    request_file: str
    #: `--plugin` specs as given.
    plugins: tuple[str, ...] = ()
    #: The user's `vllm serve` flags, model first.
    engine_arguments: tuple[str, ...] = ()
    repeat: int = 2
    max_tokens: int = 256
    notes: tuple[str, ...] = ()
    #: Token ids, texts and media are left out, and identifiers are salted: see `trace.redact`.
    redacted: bool = False


class ImageSpan(msgspec.Struct, frozen=True, kw_only=True):
    """Where one image lies in a prompt."""

    modality: str
    #: The key that vLLM gives the content; block hashes and encoder cache use it.
    identifier: str
    #: First prompt token of the span, and its number of tokens.
    offset: int
    length: int


class RequestRecord(Record, frozen=True, kw_only=True, tag="request"):
    """A request as the engine would get it."""

    id: str
    #: `file:line`.
    source: str
    prompt_token_ids: tuple[int, ...]
    #: The prompt's text with one placeholder per image, shortened for people.
    prompt_text: str = ""
    images: tuple[ImageSpan, ...] = ()
    #: `page1.png 512x32 L`, one per image.
    image_labels: tuple[str, ...] = ()
    max_tokens: int
    expect: str | None = None


class EngineRecord(Record, frozen=True, kw_only=True, tag="engine"):
    """The engine that ran the lanes, as it resolved its settings."""

    vllm: str
    torch: str
    python: str
    #: `cpu`, `cuda`, ...
    platform: str
    #: Module and class of the model runner: V1 or V2.
    runner: str
    #: `module.Class` of the loaded model, and its file.
    model_class: str
    model_file: str = ""
    model: str
    #: `float32`, `bfloat16`, ...
    dtype: str
    num_layers: int
    block_size: int
    num_blocks: int = 0
    max_model_len: int
    #: Most tokens a step may compute in the `cached` lane: the user's own budget.
    user_token_budget: int
    #: The same in the lanes that prefill whole.
    whole_token_budget: int
    prefix_caching: bool = True
    #: Token ids that end an answer, with their text.
    stop_tokens: tuple[tuple[int, str], ...] = ()
    overrides: tuple[Override, ...] = ()
    #: Serve-only flags that change nothing here.
    unused_flags: tuple[str, ...] = ()
    seconds_to_start: float = 0.0


class LaneRecord(Record, frozen=True, kw_only=True, tag="lane"):
    """A lane begins."""

    lane: LaneName
    #: Runs in the order in which they will be sent.
    runs: tuple[str, ...]
    reads_prefix_cache: bool
    #: Caches emptied before each request: `prefix`, `encoder`, `processor`.
    emptied: tuple[str, ...] = ()
    token_budget: int = 0


class RunRecord(Record, frozen=True, kw_only=True, tag="run"):
    """One request is sent once: `cached/r1#2`, `reference/r1`."""

    run: str
    lane: LaneName
    request: str
    #: 1 for the first time in this lane.
    attempt: int = 1
    #: Output tokens of the reference appended to the prompt (`decode` lane).
    appended: int = 0


class ControlRecord(Record, frozen=True, kw_only=True, tag="control"):
    """A control line ran in the `cached` lane."""

    name: str
    source: str
    outcome: str = ""


class StopLogit(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One stop token in one row of logits."""

    token_id: int
    #: None: minus infinity.
    logit: float | None
    #: 1 is the highest.
    rank: int


class LogitsRecord(Record, frozen=True, kw_only=True, tag="logits"):
    """One row of logits, before sampling, and the token chosen from it.

    Row: `[vocabulary]` float32. Non-finite values count as 0 in `sketch`, `max_abs`, `norm`.
    """

    run: str
    #: 0 for the first generated token.
    index: int
    chosen: int
    chosen_text: str
    #: The 20 highest finite logits, descending.
    top_ids: tuple[int, ...]
    top_logits: tuple[float, ...]
    top_texts: tuple[str, ...]
    #: top 1 - top 2.
    margin: float
    stops: tuple[StopLogit, ...] = ()
    #: Exact checksum of the row's bits, hex.
    digest: str
    #: Products with 16 fixed sign vectors: the size of a difference without storing rows.
    sketch: tuple[float, ...]
    max_abs: float
    norm: float
    vocabulary: int
    num_neg_inf: int = 0
    num_nan: int = 0


class FinishedRecord(Record, frozen=True, kw_only=True, tag="finished"):
    """A run ended."""

    run: str
    token_ids: tuple[int, ...]
    text: str
    reason: FinishReason
    #: Prompt tokens that vLLM says it took from the prefix cache.
    num_cached_tokens: int = 0
    #: Set when the run did not end by itself: an exception, or no token for 50 steps.
    error: str | None = None
    seconds: float = 0.0


class NotObservedRecord(Record, frozen=True, kw_only=True, tag="not-observed"):
    """Something that could not be seen, and why. Never silently empty."""

    what: str
    why: str
    lane: LaneName | None = None
    run: str | None = None


class Footer(Record, frozen=True, kw_only=True, tag="footer"):
    """How the recording ended."""

    outcome: Literal["complete", "failed", "interrupted"]
    #: UTC, ISO 8601.
    ended: str
    detail: str = ""


Event = (EngineRecord | LaneRecord | RunRecord | ControlRecord | StepRecord | HashRecord
         | LookupRecord | BlocksRecord | BlockTableRecord | EncoderRecord | EncoderEvictionRecord
         | ProcessorRecord | ForwardRecord | LogitsRecord | FinishedRecord | HookRecord
         | NotObservedRecord)


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """A trace read back. Missing parts are named in `damage`, not hidden."""

    path: str
    header: Header
    requests: tuple[RequestRecord, ...]
    events: tuple[Event, ...]
    footer: Footer | None = None
    #: Torn or unreadable parts, in words.
    damage: tuple[str, ...] = ()
