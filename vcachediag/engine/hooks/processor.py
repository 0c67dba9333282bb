"""Sees which media items the processor cache holds when a prompt is rendered."""

from typing import Any, Final

from vcachediag.engine import capabilities
from vcachediag.engine.hooks.log import Log
from vcachediag.engine.hooks.patch import wrap
from vcachediag.trace.records import ProcessorRecord

HOOK: Final = "processor"


class ProcessorHook:
    """Patches the look-up in the processor cache; it runs where prompts are rendered."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._next = 0

    def install(self) -> None:
        """Patch; before the engine starts."""
        wrap(*capabilities.locate("BaseMultiModalProcessorCache.is_cached"),
             after=self._log.watched(HOOK, self._see))

    def begin(self, run: str | None) -> None:
        """The prompt of `run` is rendered from now on; None: that is over."""
        self._log.rendering = run
        self._next = 0

    def _see(self, found: Any, _cache: Any, hashes: Any, *_args: Any, **_kwargs: Any) -> None:
        run = self._log.rendering
        if run is None:
            return
        for identifier, hit in zip(hashes, found, strict=True):
            self._log.write(HOOK, ProcessorRecord(
                run=run, index=self._next, identifier=str(identifier),
                outcome="hit" if hit else "miss"))
            self._next += 1
