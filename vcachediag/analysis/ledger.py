"""The life of KV blocks: who wrote each one, who hit it, and when it was registered and dropped.

One pass over the events. What a torn trace does not tell stays None and is never guessed.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from vcachediag.trace.records import (
    BlocksRecord,
    BlockTableRecord,
    EngineRecord,
    LookupRecord,
    RunRecord,
    StepRecord,
    Trace,
)

Phase = Literal["prefill", "decode", "both"]


class BlockUse(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the block table of a run, and the physical block there."""

    run: str
    #: KV group.
    group: int
    #: Place in the run's block table.
    place: int
    #: Physical block.
    block: int
    #: Tokens of the run in it, first and after the last; None: the group's block size is unknown.
    tokens: tuple[int, int] | None = None
    origin: Literal["hit", "computed"]
    #: Hex, without the group; None: never registered.
    hash: str | None = None
    #: Run that wrote what was hit; None: computed, or not seen. More than one: the last.
    donor: str | None = None
    #: Step in which the donor last wrote to it.
    donor_step: int | None = None
    #: Part of the donor's run in which it was written.
    written_in: Phase | None = None
    #: Steps in which it was registered for this run, given up by it, and lost its hash.
    registered: int | None = None
    freed: int | None = None
    dropped: int | None = None
    #: Why the hash was lost; empty: it was not.
    dropped_by: Literal["", "eviction", "reset"] = ""


class _Ledger:
    """The state of all blocks while the events go by."""

    def __init__(self, trace: Trace) -> None:
        engine = next((event for event in trace.events if isinstance(event, EngineRecord)), None)
        self._block_size = engine.block_size if engine is not None else 0
        self._prompts = {record.id: len(record.prompt_token_ids) for record in trace.requests}
        self._prompt_of: dict[str, int] = {}
        self._end_of: dict[str, int] = {}
        #: (run, group) -> place -> which of `uses`.
        self._tables: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
        #: Block -> (run, step, phase) of each write since it was last allocated.
        self._writes: dict[int, list[tuple[str, int, Phase]]] = {}
        self._hash_of: dict[int, str] = {}
        self._registered: dict[tuple[str, int, int], tuple[str, int]] = {}
        self._reused: dict[str, set[int]] = defaultdict(set)
        #: Block -> which of `uses` still hold it, and which lose their hash with it.
        self._open: dict[int, list[int]] = defaultdict(list)
        self._hashed: dict[int, list[int]] = defaultdict(list)
        #: Without records of blocks, what the last lookup found stands for what was hit.
        self._found: dict[str, set[int]] = {}
        self._blind = not any(isinstance(event, BlocksRecord) for event in trace.events)
        self.uses: list[BlockUse] = []

    def run(self, record: RunRecord) -> None:
        self._prompt_of[record.run] = self._prompts.get(record.request, 0) + record.appended

    def lookup(self, record: LookupRecord) -> None:
        self._found[record.run] = {block for group in record.block_ids for block in group}

    def blocks(self, record: BlocksRecord) -> None:
        ids = record.block_ids
        if record.action == "allocate":
            self._writes.update((block, []) for block in ids)
            if record.run is not None:
                # A preempted run may get a block anew that it had hit before.
                self._reused[record.run].difference_update(ids)
        elif record.action == "reuse" and record.run is not None:
            self._reused[record.run].update(ids)
        elif record.action == "register":
            self._register(record)
        elif record.action == "free":
            for block in ids:
                for number in self._open.pop(block, ()):
                    self._change(number, freed=record.step)
        elif record.action == "evict":
            self._drop(ids, record.step, "eviction")
        elif record.action == "reset":
            self._drop(tuple(self._hash_of), record.step, "reset")

    def _register(self, record: BlocksRecord) -> None:
        places = zip(record.block_ids, record.hashes, strict=False)
        for place, (block, digest) in enumerate(places, start=record.first):
            self._hash_of[block] = digest
            if record.run is None:
                continue
            # The table of a new run follows; that of an older one is there.
            number = self._tables[record.run, record.group].get(place)
            if number is not None and self.uses[number].block == block:
                self._mark(number, digest, record.step)
            self._registered[record.run, record.group, place] = (digest, record.step)

    def _change(self, number: int, **fields: Any) -> None:
        self.uses[number] = msgspec.structs.replace(self.uses[number], **fields)

    def _mark(self, number: int, digest: str, step: int) -> None:
        self._change(number, hash=digest, registered=step)
        self._hashed[self.uses[number].block].append(number)

    def _drop(self, blocks: Iterable[int], step: int,
              why: Literal["eviction", "reset"]) -> None:
        for block in blocks:
            self._hash_of.pop(block, None)
            for number in self._hashed.pop(block, ()):
                self._change(number, dropped=step, dropped_by=why)

    def table(self, record: BlockTableRecord) -> None:
        for place, block in enumerate(record.block_ids, start=record.first):
            if block == 0:
                continue  # the null block: the place is no longer needed
            hit = block in (self._found.get(record.run, ()) if self._blind
                            else self._reused[record.run])
            number = len(self.uses)
            self.uses.append(BlockUse(
                run=record.run, group=record.group, place=place, block=block,
                origin="hit" if hit else "computed",
                hash=self._hash_of.get(block) if hit else None))
            if hit:
                self._name_donor(number)
                self._hashed[block].append(number)
            known = self._registered.pop((record.run, record.group, place), None)
            if known is not None and not hit:
                self._mark(number, *known)
            self._tables[record.run, record.group][place] = number
            self._open[block].append(number)

    def _name_donor(self, number: int) -> None:
        use = self.uses[number]
        writes = self._writes.get(use.block)
        if use.group or not writes:
            return
        donor, step, _ = writes[-1]
        phases = {phase for run, _, phase in writes if run == donor}
        self._change(number, donor=donor, donor_step=step,
                     written_in=phases.pop() if len(phases) == 1 else "both")

    def step(self, record: StepRecord) -> None:
        """Tokens of a step are written to the blocks that they fall into (group 0)."""
        end = record.num_computed_tokens + record.num_scheduled_tokens
        self._end_of[record.run] = max(self._end_of.get(record.run, 0), end)
        if not self._block_size or not record.num_scheduled_tokens:
            return
        prompt = self._prompt_of.get(record.run, 0)
        phase: Phase = "decode" if record.num_computed_tokens >= prompt else "prefill"
        table = self._tables.get((record.run, 0), {})
        first = record.num_computed_tokens // self._block_size
        last = (end - 1) // self._block_size
        # A torn or foreign trace may claim more tokens than its table has blocks.
        places = range(first, last + 1) if last - first < len(table) else [
            place for place in table if first <= place <= last]
        for place in places:
            number = table.get(place)
            if number is not None:
                self._write(self.uses[number].block, record.run, record.step, phase)

    def _write(self, block: int, run: str, step: int, phase: Phase) -> None:
        writes = self._writes.setdefault(block, [])
        if writes and writes[-1][0] == run and writes[-1][2] == phase:
            writes[-1] = (run, step, phase)
        else:
            writes.append((run, step, phase))

    def result(self, use: BlockUse) -> BlockUse:
        """`use` with its tokens, which are known when the run has ended."""
        if not self._block_size or use.group:
            return use
        start = use.place * self._block_size
        end = min(start + self._block_size, self._end_of.get(use.run, start))
        return msgspec.structs.replace(use, tokens=(start, max(start, end)))


def block_uses(trace: Trace) -> tuple[BlockUse, ...]:
    """Every place of every block table in `trace`, in the order in which they were filled."""
    ledger = _Ledger(trace)
    for event in trace.events:
        if isinstance(event, RunRecord):
            ledger.run(event)
        elif isinstance(event, LookupRecord):
            ledger.lookup(event)
        elif isinstance(event, BlocksRecord):
            ledger.blocks(event)
        elif isinstance(event, BlockTableRecord):
            ledger.table(event)
        elif isinstance(event, StepRecord):
            ledger.step(event)
    return tuple(ledger.result(use) for use in ledger.uses)
