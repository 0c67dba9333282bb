"""What the hooks see of the scheduler, the caches and the model, as it is stored."""

from typing import Literal

import msgspec

from vcachediag.trace.base import LaneName, Record

HookName = Literal["schedule", "lookup", "blocks", "hash", "encoder", "processor", "forward",
                   "logits"]


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
    hook: HookName
    seen: int
    #: Times it raised; the first reason is a `NotObservedRecord`.
    failed: int = 0
