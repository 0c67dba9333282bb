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

#: Raised when a stored field changes its meaning or goes away; new fields do not raise it.
SCHEMA_VERSION = 1

LaneName = Literal["cached", "reference", "reference-2", "decode"]
FinishReason = Literal["stop", "length", "abort", "error"]


class Record(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """Base of everything in a trace."""

    #: When it was written: nanoseconds of the system's monotonic clock, the same for all
    #: processes of a machine. The writer sets it; it orders the records of several processes.
    at: int = 0


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


class StepRecord(Record, frozen=True, kw_only=True, tag="step"):
    """What the scheduler gave one run in one engine step."""

    run: str
    #: Counts engine steps of this process, from 1.
    step: int
    #: Tokens of the run whose KV exists before this step.
    num_computed_tokens: int
    num_scheduled_tokens: int
    preempted: bool = False
    #: Media items of the run whose encoder is to run in this step, by their place in the request.
    encoder_inputs: tuple[int, ...] = ()


class ExtraKey(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What a block hash covers besides its tokens and its parent."""

    kind: Literal["media", "lora", "cache-salt", "prompt-embeds", "lookahead", "other"]
    #: Media identifier, adapter name, salt, digest: as text.
    value: str
    #: First token of the media item relative to the block's start; may be negative. None: this
    #: vLLM leaves it out of the key.
    offset: int | None = None


class HashRecord(Record, frozen=True, kw_only=True, tag="hash"):
    """How a block hash was made; once for each distinct hash and input."""

    #: Hex. Equal to the key in the prefix cache without its group.
    hash: str
    #: Hash of the block before it; None: the first block.
    parent: str | None
    token_ids: tuple[int, ...]
    extra_keys: tuple[ExtraKey, ...] = ()


class LookupRecord(Record, frozen=True, kw_only=True, tag="lookup"):
    """The scheduler asks the prefix cache for one run; a lookup may be repeated."""

    run: str
    #: The step that is being scheduled.
    step: int
    #: Tokens of the run at this moment.
    asked: int
    #: Most tokens that could hit: the last token is always computed, and only whole blocks hit.
    limit: int
    found: int
    #: Hit blocks, one list for each KV group, in prompt order; null blocks included.
    block_ids: tuple[tuple[int, ...], ...] = ()
    #: The run's block hashes in chain order, hex; only in the first lookup of a run.
    hashes: tuple[str, ...] = ()
    #: Why the cache was not read; empty: it was.
    not_read: str = ""


BlockAction = Literal["allocate", "reuse", "register", "evict", "free", "reset"]


class BlocksRecord(Record, frozen=True, kw_only=True, tag="blocks"):
    """Something happened to physical KV blocks."""

    action: BlockAction
    #: The step that is being scheduled, or the last one.
    step: int
    #: The run for whose sake it happened; None: nobody's (a reset), or not known.
    run: str | None = None
    #: Physical block ids.
    block_ids: tuple[int, ...] = ()
    #: `register` and `evict`: the hash of each block, hex, without its group.
    hashes: tuple[str, ...] = ()
    #: `register`: KV group, and the place of the first block in the run's block table.
    group: int = 0
    first: int = 0


class BlockTableRecord(Record, frozen=True, kw_only=True, tag="block-table"):
    """A piece of a run's block table: what is new since the last record of the same group."""

    run: str
    step: int
    group: int = 0
    #: Place of the first of `block_ids` in the table.
    first: int = 0
    #: Physical block ids; 0 is the null block.
    block_ids: tuple[int, ...] = ()


class EncoderRecord(Record, frozen=True, kw_only=True, tag="encoder"):
    """Whether one media item of a run was looked up in the encoder cache, and found."""

    run: str
    step: int
    #: Place of the item in the request.
    index: int
    identifier: str
    #: Its first prompt token and its number of tokens.
    offset: int
    length: int
    outcome: Literal["hit", "miss", "not asked"]
    why: str = ""


class EncoderEvictionRecord(Record, frozen=True, kw_only=True, tag="encoder-eviction"):
    """Items left the encoder cache."""

    step: int
    identifiers: tuple[str, ...]
    why: Literal["space", "reset"] = "space"


class ProcessorRecord(Record, frozen=True, kw_only=True, tag="processor"):
    """Whether a media item of a run was found in the processor cache."""

    run: str
    #: Counts the items of the run, in the order in which they are looked up.
    index: int
    #: vLLM's `mm_hash`: the key of the processor cache.
    identifier: str
    outcome: Literal["hit", "miss"]


class ForwardRecord(Record, frozen=True, kw_only=True, tag="forward"):
    """What the model was given for one run in one step. Digests: `trace` schema's checksum, hex."""

    run: str
    step: int
    num_tokens: int
    #: Position of the first and last token, one for each axis (three for M-RoPE).
    first_position: tuple[int, ...]
    last_position: tuple[int, ...]
    positions_digest: str
    #: None: the model was given embeddings only.
    first_id: int | None = None
    last_id: int | None = None
    #: Of the token ids; of the embeddings where there are no ids.
    input_digest: str = ""
    has_embeds: bool = False
    #: Class of the attention metadata of the first attention layer, `module.Class`.
    attention: str = ""
    #: Class that computes attention in that layer.
    op: str = ""
    #: Tokens that attention may read for this run, from its metadata; None: not told there.
    seq_len: int | None = None
    #: Place in the block table of the first of `block_ids`: those before are as in the step before.
    first_block: int = 0
    #: The run's row of the block table that attention used.
    block_ids: tuple[int, ...] = ()
    #: Slots that K and V are written to.
    first_slot: int | None = None
    last_slot: int | None = None
    slots_digest: str = ""


class HookRecord(Record, frozen=True, kw_only=True, tag="hook"):
    """How often a hook saw something in a lane; written when the lane ends."""

    lane: LaneName
    #: `lookup`, `blocks`, `hash`, `encoder`, `processor`, `forward`, `logits`, `schedule`.
    hook: str
    seen: int
    #: Times it raised; the first reason is a `NotObservedRecord`.
    failed: int = 0


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
