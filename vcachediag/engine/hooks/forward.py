"""Sees what the model is given: token ids or embeddings, positions, and attention metadata."""

import inspect
from dataclasses import dataclass
from typing import Any, Final

import torch

from vcachediag.engine import capabilities
from vcachediag.engine.hooks.digest import checksum, checksum_of_rows
from vcachediag.engine.hooks.log import Log
from vcachediag.engine.hooks.patch import wrap
from vcachediag.engine.hooks.rows import BatchRows
from vcachediag.trace.records import ForwardRecord

HOOK: Final = "forward"
_TABLES = ("block_table", "block_tables", "prefill_block_tables")


@dataclass(frozen=True, kw_only=True)
class Attention:
    """What one attention layer was told for the whole batch; what it was not told is None."""

    metadata: str
    op: str
    seq_lens: torch.Tensor | None
    block_table: torch.Tensor | None
    slot_mapping: torch.Tensor | None


class ForwardHook:
    """Watches one loaded model."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._rows: BatchRows | None = None
        self._block_size = 1
        #: Scheduled tokens by request, until the model has run on them.
        self._scheduled: dict[str, int] = {}
        #: Block table of each run as attention last used it.
        self._tables: dict[str, list[int]] = {}

    def attach(self, model: Any, rows: BatchRows, block_size: int) -> None:
        """Wrap `forward` of this instance; after the engine has warmed up.

        A module hook would not do: some models call `forward` past it.
        """
        self._rows, self._block_size = rows, block_size
        signature = inspect.signature(model.forward)
        see = self._log.watched(HOOK, self._see)

        def before(*args: Any, **kwargs: Any) -> None:
            see(signature, args, kwargs)

        wrap(model, "forward", before=before)

    def see_step(self, output: Any) -> None:
        """The next forward pass belongs to this step; one without a step is a dummy."""
        self._scheduled = {request_id: count
                           for request_id, count in output.num_scheduled_tokens.items() if count}

    def _see(self, signature: inspect.Signature, args: Any, kwargs: Any) -> None:
        scheduled, self._scheduled = self._scheduled, {}
        if not scheduled or self._rows is None:
            return
        # Bound for what came by place; by name it may have come through any `**` of the model's.
        given = {**signature.bind(*args, **kwargs).arguments, **kwargs}
        spans = self._rows.spans(scheduled)
        attention = _attention(len(spans))
        for row, (request_id, start, end) in enumerate(spans):
            run = self._log.run_of_id(request_id)
            if run is not None:
                self._log.write(HOOK, self._record(run, given, attention, row, start, end))

    def _record(self, run: str, given: dict[str, Any], attention: Attention | None, row: int,
                start: int, end: int) -> ForwardRecord:
        # One row of positions, or one for each axis.
        positions = given["positions"][..., start:end].reshape(-1, end - start)
        ids, embeds = given.get("input_ids"), given.get("inputs_embeds")
        ids = None if ids is None else ids[start:end]
        edges = [] if ids is None else ids[[0, -1]].tolist()
        digest = (checksum(ids) if ids is not None
                  else checksum_of_rows(embeds[start:end]) if embeds is not None else "")
        return ForwardRecord(
            run=run, step=self._log.step, num_tokens=end - start,
            first_position=tuple(map(int, positions[:, 0].tolist())),
            last_position=tuple(map(int, positions[:, -1].tolist())),
            positions_digest=checksum(positions), first_id=edges[0] if edges else None,
            last_id=edges[1] if edges else None, input_digest=digest,
            has_embeds=embeds is not None,
            **({} if attention is None else self._attention_of(run, attention, row, start, end)))

    def _attention_of(self, run: str, attention: Attention, row: int, start: int,
                      end: int) -> dict[str, Any]:
        told: dict[str, Any] = {"attention": attention.metadata, "op": attention.op}
        if attention.seq_lens is not None:
            told["seq_len"] = int(attention.seq_lens[row])
        if attention.block_table is not None and "seq_len" in told:
            used = -(-told["seq_len"] // self._block_size)
            table = attention.block_table[row, :used].tolist()
            known = self._tables.get(run, [])
            first = len(known) if table[:len(known)] == known else 0
            told |= {"first_block": first, "block_ids": tuple(table[first:])}
            self._tables[run] = table
        if attention.slot_mapping is not None:
            slots = attention.slot_mapping[start:end]
            edges = slots[[0, -1]].tolist()
            told |= {"first_slot": edges[0], "last_slot": edges[1],
                     "slots_digest": checksum(slots)}
        return told

    def end_run(self, run: str) -> None:
        """Forget a run that has ended."""
        self._tables.pop(run, None)


def _attention(requests: int) -> Attention | None:
    """The first attention layer's metadata in the forward pass under way."""
    context = capabilities.find("get_forward_context")()
    metadata = context.attn_metadata
    if isinstance(metadata, list):
        metadata = metadata[0] if metadata else None
    layer = ""
    if isinstance(metadata, dict):
        # Layers with recurrent state have no block table of tokens.
        layer = next((name for name, each in metadata.items()
                      if _rows(requests, each, *_TABLES) is not None), next(iter(metadata), ""))
        metadata = metadata.get(layer)
    if metadata is None:
        return None
    implementation = getattr(context.no_compile_layers.get(layer), "impl", None)
    return Attention(
        metadata=_class_name(metadata), op=_class_name(implementation),
        seq_lens=_rows(requests, metadata, "seq_lens", "seq_lens_tensor"),
        block_table=_rows(requests, metadata, *_TABLES),
        slot_mapping=_rows(0, metadata, "slot_mapping"))


def _rows(at_least: int, owner: Any, *names: str) -> torch.Tensor | None:
    """The first of the named tensors that has a row for every request.

    Some backends keep requests that prefill apart from those that decode: then neither is told.
    """
    found = (getattr(owner, name, None) for name in names)
    return next((each for each in found
                 if isinstance(each, torch.Tensor) and each.dim() and len(each) >= at_least), None)


def _class_name(value: Any) -> str:
    return "" if value is None else f"{type(value).__module__}.{type(value).__qualname__}"
