"""Takes what a prompt says out of records before they are written, and keeps what is judged.

Token ids, texts and media are left out; identifiers and digests are salted. The salt is random
for each trace and is never stored.

A token at one place of one request becomes a keyed hash of (request, place, token): equal at the
same place in two lanes, so that runs can still be compared, and equal nowhere else, so that no
count of letters helps to read them. A block hash, a media identifier or a digest becomes a keyed
hash of itself: what was equal stays equal within the trace.

What stays: the command line with its file names, the names of requests and of the model, its
stop tokens, settings, sizes, counts, logits without their tokens, and our own messages.
"""

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec

from vcachediag.trace.records import (
    BlocksRecord,
    ControlRecord,
    EncoderEvictionRecord,
    EncoderRecord,
    ExtraKey,
    FinishedRecord,
    ForwardRecord,
    HashRecord,
    ImageSpan,
    LogitsRecord,
    LookupRecord,
    NotObservedRecord,
    ProcessorRecord,
    Record,
    RequestRecord,
    RunRecord,
)

#: Stands for every text that was left out.
REDACTED = "redacted"

Rules = dict[str, Callable[[Any], Any]]


class Redactor:
    """Redacts the records of one trace; it has to see them in the order in which they happen."""

    def __init__(self, salt: bytes) -> None:
        """Redact with `salt`, 16 to 64 random bytes."""
        self._salt = salt
        #: Run -> (request, place of its first output token in the reference's answer).
        self._runs: dict[str, tuple[str, int]] = {}
        # As in the table of a report, a rule for each field that is changed. The others are kept.
        self.rules: dict[type, Rules] = {
            RequestRecord: {"prompt_text": _text, "image_labels": _labels, "expect": _nothing,
                            "images": self._each},
            ImageSpan: {"identifier": self._salted},
            HashRecord: {"hash": self._salted, "parent": self._salted, "token_ids": _none_of,
                         "extra_keys": self._each},
            ExtraKey: {"value": self._salted},
            LookupRecord: {"hashes": self._salted_each},
            BlocksRecord: {"hashes": self._salted_each},
            EncoderRecord: {"identifier": self._salted},
            EncoderEvictionRecord: {"identifiers": self._salted_each},
            ProcessorRecord: {"identifier": self._salted},
            ForwardRecord: {"first_id": _nothing, "last_id": _nothing,
                            "input_digest": self._salted},
            LogitsRecord: {"digest": self._salted},
            FinishedRecord: {"text": _text, "error": _kind_of_error},
            ControlRecord: {"outcome": _kind_of_error},
            NotObservedRecord: {"why": _kind_of_error},
        }

    def __call__(self, record: Record) -> Record:
        """The record without what its prompt says."""
        if isinstance(record, RunRecord):
            self._runs[record.run] = (record.request, record.appended)
        changed: Any = self._fields(record)
        if isinstance(changed, RequestRecord):
            places = self._tokens(changed.id, "prompt", 0, changed.prompt_token_ids)
            return msgspec.structs.replace(changed, prompt_token_ids=places)
        if isinstance(changed, FinishedRecord):
            request, start = self._runs.get(changed.run, (changed.run, 0))
            return msgspec.structs.replace(
                changed, token_ids=self._tokens(request, "output", start, changed.token_ids))
        if isinstance(changed, LogitsRecord):
            return self._logits(changed)
        return changed  # type: ignore[no-any-return]  # of the type that came in

    def _logits(self, record: LogitsRecord) -> LogitsRecord:
        request, _ = self._runs.get(record.run, (record.run, 0))

        def token(value: int) -> int:
            return self._token(request, "output", record.index, value)

        tops = tuple(map(token, record.top_ids))
        return msgspec.structs.replace(
            record, chosen=token(record.chosen), chosen_text=_pseudonym(token(record.chosen)),
            top_ids=tops, top_texts=tuple(map(_pseudonym, tops)))

    def _fields(self, record: Any) -> Any:
        rules = self.rules.get(type(record), {})
        return msgspec.structs.replace(
            record, **{name: rule(getattr(record, name)) for name, rule in rules.items()})

    def _each(self, parts: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(self._fields(part) for part in parts)

    def _tokens(self, request: str, what: str, start: int,
                tokens: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self._token(request, what, start + place, token)
                     for place, token in enumerate(tokens))

    def _token(self, request: str, what: str, place: int, token: int) -> int:
        """31 bits: token ids of real vocabularies look no different."""
        digest = self._digest(f"{what}\0{place}\0{token}\0{request}", 4)
        return int.from_bytes(digest, "big") >> 1

    def _salted(self, value: str | None) -> str | None:
        """None and empty say that there was nothing, which is no secret."""
        return self._digest(value, 16).hex() if value else value

    def _salted_each(self, values: tuple[str, ...]) -> tuple[str | None, ...]:
        return tuple(map(self._salted, values))

    def _digest(self, value: str, size: int) -> bytes:
        return hashlib.blake2b(value.encode("utf-8", "surrogatepass"), key=self._salt,
                               digest_size=size).digest()


def _pseudonym(token: int) -> str:
    """Stands for a token's text: equal where the tokens are."""
    return f"~{token & 0xFFFF:04x}"


def _text(value: str) -> str:
    return REDACTED if value else value


def _nothing(_: object) -> None:
    return None


def _none_of(_: object) -> tuple[()]:
    return ()


def _labels(labels: tuple[str, ...]) -> tuple[str, ...]:
    """`page1.png 512x32 L` without the name."""
    return tuple(" ".join(label.split()[-2:]) for label in labels)


def _kind_of_error(words: str | None) -> str | None:
    """Only the class of an exception: what it says may quote the prompt."""
    return words if words is None else words.partition(":")[0][:200]
