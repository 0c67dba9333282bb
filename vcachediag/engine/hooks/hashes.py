"""Sees how block hashes are made: from which parent, tokens and extra keys."""

import contextlib
from typing import Any, Final

from vcachediag.engine import capabilities
from vcachediag.engine.hooks.log import Log
from vcachediag.engine.hooks.media import media_of
from vcachediag.engine.hooks.patch import wrap
from vcachediag.errors import VllmMissingError
from vcachediag.trace.records import ExtraKey, HashRecord

HOOK: Final = "hash"
#: A key of the prefix cache is a hash and the number of its KV group, four bytes.
_GROUP_BYTES = 4
_TAGS = {"mm": "media", "lora": "lora", "cache_salt": "cache-salt",
         "prompt_embeds": "prompt-embeds", "E": "lookahead"}


class HashHook:
    """Patches the function that hashes a block, wherever vLLM keeps its name."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._known: set[int] = set()
        #: Media identifiers and salt of the request whose hashes are being made.
        self._media: frozenset[str] = frozenset()
        self._salt: str | None = None

    def install(self) -> None:
        """Patch; before the engine starts."""
        owner, name = capabilities.locate("hash_block_tokens")
        wrap(owner, name, after=self._log.watched(HOOK, self._see))
        # Where another module imported the names, it has to be told as well.
        for kept in ("block_pool.hash_block_tokens", "block_pool.generate_block_hash_extra_keys"):
            with contextlib.suppress(VllmMissingError):
                wrap(*capabilities.locate(kept), **self._views(kept))
        wrap(*capabilities.locate("generate_block_hash_extra_keys"),
             **self._views("generate_block_hash_extra_keys"))

    def _views(self, name: str) -> dict[str, Any]:
        if name.endswith("extra_keys"):
            return {"before": self._log.watched(HOOK, self._see_request)}
        return {"after": self._log.watched(HOOK, self._see)}

    def _see_request(self, request: Any, *_args: Any, **_kwargs: Any) -> None:
        self._media = frozenset(item.identifier for item in media_of(request))
        self._salt = getattr(request, "cache_salt", None)

    def _see(self, result: Any, _function: Any, parent: Any, tokens: Any,
             extra_keys: Any = None) -> None:
        # The first block of a chain has none, whatever vLLM then takes in its place.
        above = hash_hex(parent) if parent else None
        mark = hash((hash_hex(result), above, tuple(tokens), str(extra_keys)))
        if mark in self._known:
            return
        self._known.add(mark)
        self._log.write(HOOK, HashRecord(
            hash=hash_hex(result), parent=above, token_ids=tuple(tokens),
            extra_keys=tuple(self._extra_key(key) for key in extra_keys or ())))

    def _extra_key(self, key: Any) -> ExtraKey:
        """Four shapes through the years: a text, a pair, a tagged tuple, a number."""
        if isinstance(key, tuple) and key and str(key[0]) in _TAGS:
            kind = _TAGS[str(key[0])]
            offset = key[2] if kind == "media" and len(key) > 2 else None
            rest = key[1:2] if kind == "media" else key[1:]
            return ExtraKey(kind=kind, value=" ".join(map(_text, rest)),  # type: ignore[arg-type]  # the values of _TAGS
                            offset=offset)
        if isinstance(key, tuple) and len(key) == 2 and isinstance(key[1], int):
            return ExtraKey(kind="media", value=_text(key[0]), offset=key[1])
        text = _text(key)
        if text in self._media:
            return ExtraKey(kind="media", value=text)
        if self._salt is not None and text == self._salt:
            return ExtraKey(kind="cache-salt", value=text)
        # What is left untagged in the releases that do not tag is the adapter.
        return ExtraKey(kind="lora" if isinstance(key, str | int) else "other", value=text)


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def hash_hex(value: Any) -> str:
    """A block hash, as vLLM hands it about: bytes, a number, or a tuple around either."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, int):
        return f"{value & 0xFFFFFFFFFFFFFFFF:016x}"
    return hash_hex(value.hash_value)


def block_key_hex(key: Any) -> str:
    """The hash in a key of the prefix cache, without the KV group."""
    if isinstance(key, bytes):
        return key[:-_GROUP_BYTES].hex()
    return hash_hex(getattr(key, "block_hash", key))
