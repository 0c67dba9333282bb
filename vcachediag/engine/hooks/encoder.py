"""Sees lookups in the encoder cache, and media items that it is not asked for."""

import contextlib
from typing import Any, Final

from vcachediag.engine import capabilities
from vcachediag.engine.hooks.log import Log
from vcachediag.engine.hooks.media import Item, media_of
from vcachediag.engine.hooks.patch import wrap
from vcachediag.errors import VllmMissingError
from vcachediag.trace.records import EncoderEvictionRecord, EncoderRecord

HOOK: Final = "encoder"


class EncoderHook:
    """Patches the encoder cache manager of decoder-only models."""

    def __init__(self, log: Log) -> None:
        self._log = log
        #: (run, place of the item) of those that were looked up or passed by.
        self._settled: set[tuple[str, int]] = set()

    def install(self) -> None:
        """Patch; before the engine starts."""
        wrap(*capabilities.locate("encoder-cache lookup"),
             after=self._log.watched(HOOK, self._see_lookup))
        # Without it, the cache is emptied some other way, or not at all.
        with contextlib.suppress(VllmMissingError):
            wrap(*capabilities.locate("EncoderCacheManager.reset"),
                 before=self._log.watched(HOOK, self._see_reset))

    def _see_lookup(self, found: Any, _manager: Any, request: Any, input_id: int,
                    *_args: Any, **_kwargs: Any) -> None:
        run = self._log.run_of(request)
        if run is not None:
            self._settled.add((run, input_id))
            self._write(run, input_id, media_of(request)[input_id], "hit" if found else "miss")

    def _see_reset(self, manager: Any, *_args: Any, **_kwargs: Any) -> None:
        kept = tuple(map(str, manager.cached))
        if kept:
            self._log.write(HOOK, EncoderEvictionRecord(
                step=self._log.step, identifiers=kept, why="reset"))

    def see_step(self, scheduler: Any, output: Any) -> None:
        """Note which items a step has passed by without a lookup."""
        for new in output.scheduled_new_reqs:
            request = scheduler.requests[new.req_id]
            run = self._log.run_of(request)
            for index, item in enumerate(media_of(request)):
                end = item.offset + item.length
                if run is None or (run, index) in self._settled:
                    continue
                if end <= new.num_computed_tokens:
                    self._settled.add((run, index))
                    self._write(run, index, item, "not asked",
                                "its span lies inside the cached prefix")

    def _write(self, run: str, index: int, item: Item, outcome: Any, why: str = "") -> None:
        self._log.write(HOOK, EncoderRecord(
            run=run, step=self._log.step, index=index, identifier=item.identifier,
            offset=item.offset, length=item.length, outcome=outcome, why=why))
