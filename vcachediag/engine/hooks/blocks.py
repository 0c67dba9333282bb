"""Sees prefix-cache lookups, and everything that happens to physical KV blocks."""

import inspect
from typing import Any, Final

from vcachediag.engine import capabilities
from vcachediag.engine.hooks.hashes import block_key_hex, hash_hex
from vcachediag.engine.hooks.log import Log
from vcachediag.engine.hooks.patch import wrap
from vcachediag.trace.records import BlockAction, BlocksRecord, LookupRecord

LOOKUP: Final = "lookup"
HOOK: Final = "blocks"


class BlocksHook:
    """Patches `KVCacheManager` and `BlockPool`."""

    def __init__(self, log: Log) -> None:
        self._log = log
        #: The run for which the KV cache manager is at work.
        self._run: str | None = None
        self._looked_up: set[str] = set()
        #: Hashes of blocks that may be about to be evicted, by the id of the block object.
        self._hashes: dict[int, Any] = {}

    def install_lookup(self) -> None:
        """Patch the lookup; before the engine starts."""
        wrap(*capabilities.locate("KVCacheManager.get_computed_blocks"),
             after=self._log.watched(LOOKUP, self._see_lookup))

    def install(self) -> None:
        """Patch all the rest; before the engine starts."""
        watched = self._log.watched
        for name in ("KVCacheManager.allocate_slots", "KVCacheManager.free"):
            wrap(*capabilities.locate(name), before=watched(HOOK, self._enter),
                 always=watched(HOOK, self._leave))
        wrap(*capabilities.locate("BlockPool.get_new_blocks"),
             after=watched(HOOK, self._see_new))
        wrap(*capabilities.locate("BlockPool.touch"), after=watched(HOOK, self._see_touch))
        wrap(*capabilities.locate("BlockPool._maybe_evict_cached_block"),
             before=watched(HOOK, self._keep_hash), after=watched(HOOK, self._see_evict))
        wrap(*capabilities.locate("BlockPool.reset_prefix_cache"),
             after=watched(HOOK, self._see_reset))
        self._install_register()
        self._install_free()

    def _install_register(self) -> None:
        owner, name = capabilities.locate("BlockPool.cache_full_blocks")
        # Its parameters changed place more than once: they are read by name.
        signature = inspect.signature(getattr(owner, name))
        see = self._log.watched(HOOK, self._see_register)

        def after(_result: Any, *args: Any, **kwargs: Any) -> None:
            see(signature.bind(*args, **kwargs).arguments)

        wrap(owner, name, after=after)

    def _install_free(self) -> None:
        owner, name = capabilities.locate("BlockPool.free_blocks")
        original = getattr(owner, name)
        see = self._log.watched(HOOK, self._see_free)

        def free_blocks(pool: Any, ordered_blocks: Any, *args: Any, **kwargs: Any) -> Any:
            # May be a generator: it can be read only once.
            blocks = list(ordered_blocks)
            result = original(pool, blocks, *args, **kwargs)
            see(pool, blocks)
            return result

        setattr(owner, name, free_blocks)

    def _enter(self, _manager: Any, request: Any, *_args: Any, **_kwargs: Any) -> None:
        self._run = self._log.run_of(request)

    def _leave(self, *_args: Any, **_kwargs: Any) -> None:
        self._run = None

    def _see_lookup(self, result: Any, manager: Any, request: Any, *_args: Any,
                    **_kwargs: Any) -> None:
        run = self._log.run_of(request)
        if run is None:
            return
        groups = tuple(tuple(block.block_id for block in group) for group in result[0].blocks)
        first = run not in self._looked_up
        self._looked_up.add(run)
        self._log.write(LOOKUP, LookupRecord(
            run=run, step=self._log.step, asked=request.num_tokens,
            limit=max(request.num_tokens - 1, 0), found=int(result[1]), block_ids=groups,
            hashes=request_hashes(manager, request) if first else (),
            not_read=_why_not_read(manager, request)))

    def _write(self, action: BlockAction, blocks: list[Any], *, hashes: tuple[str, ...] = (),
               group: int = 0, first: int = 0, run: str | None = None) -> None:
        if blocks:
            self._log.write(HOOK, BlocksRecord(
                action=action, step=self._log.step, run=run or self._run,
                block_ids=tuple(block.block_id for block in blocks), hashes=hashes, group=group,
                first=first))

    def _see_new(self, result: Any, *_args: Any, **_kwargs: Any) -> None:
        self._write("allocate", list(result))

    def _see_touch(self, _result: Any, _pool: Any, blocks: Any, *_args: Any,
                   **_kwargs: Any) -> None:
        # One list for each KV group, or all in one.
        groups = [blocks] if all(hasattr(block, "block_id") for block in blocks) else blocks
        self._write("reuse", [block for group in groups for block in group if not block.is_null])

    def _keep_hash(self, _pool: Any, block: Any, *_args: Any, **_kwargs: Any) -> None:
        self._hashes = {block.block_id: block.block_hash}

    def _see_evict(self, evicted: Any, _pool: Any, block: Any, *_args: Any,
                   **_kwargs: Any) -> None:
        key = self._hashes.get(block.block_id)
        if evicted and key is not None:
            self._write("evict", [block], hashes=(block_key_hex(key),))

    def _see_register(self, given: dict[str, Any]) -> None:
        run = self._log.run_of(given["request"])
        piece: list[Any] = []
        first = int(given["num_cached_blocks"])
        group = int(given["kv_cache_group_id"])
        for place in range(first, int(given["num_full_blocks"]) + 1):
            block = given["blocks"][place] if place < given["num_full_blocks"] else None
            # Null and masked-out blocks stay without a hash.
            if block is not None and not block.is_null and block.block_hash is not None:
                piece.append(block)
                continue
            self._write("register", piece, run=run, group=group, first=place - len(piece),
                        hashes=tuple(block_key_hex(each.block_hash) for each in piece))
            piece = []

    def _see_free(self, pool: Any, blocks: list[Any]) -> None:
        # A block that somebody else still holds is not free; those of another pool are seen there.
        self._write("free", [block for block in blocks if block.ref_cnt == 0 and not block.is_null
                             and getattr(block, "pool", None) in (None, pool)])

    def _see_reset(self, done: Any, *_args: Any, **_kwargs: Any) -> None:
        if done:
            self._log.write(HOOK, BlocksRecord(action="reset", step=self._log.step))


def request_hashes(manager: Any, request: Any) -> tuple[str, ...]:
    """The block hashes of a request in chain order, hex."""
    hashes = getattr(request, "block_hashes", None)
    if hashes is None:
        hashes = manager.req_to_block_hashes.get(request.request_id, ())
    return tuple(hash_hex(each) for each in hashes)


def _why_not_read(manager: Any, request: Any) -> str:
    if not manager.enable_caching:
        return "prefix caching is off"
    if getattr(request, "skip_reading_prefix_cache", False):
        return "the request asked not to read it"
    if getattr(request.sampling_params, "prompt_logprobs", None) is not None:
        return "prompt_logprobs needs every row"
    return ""


