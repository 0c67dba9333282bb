"""Takes content out of records before they are written, and leaves what can be judged.

Verdict, splits and hits come from comparisons: the same place of one request in two lanes, the
same identifier in two records. So content is replaced by keyed hashes that keep these equalities
and no others. The key is made for one trace and kept nowhere, so nobody can try guesses out.
A token's text becomes four digits of its stand-in; the texts of stop tokens stay, as their ranks
and logits tell where they are anyway.

`KEPT` and `CHANGED` name every field of every record: what is in neither was forgotten, and a
test says so.
"""

import re
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec

from vcachediag.trace import records as r

#: Stands for every longer text that was left out.
REDACTED = "redacted"

R = TypeVar("R", bound=msgspec.Struct)
_Rule = Callable[["Redactor", Any, Any], Any]

#: An exception's class where its message follows: such messages quote whatever went wrong.
_CLASS_AND_MESSAGE = re.compile(
    r"(?:\braised [A-Za-z_][\w.]*|^[A-Za-z_][\w.]*|(?<![\w.])(?:\w+\.)*[A-Z]\w*)(?=:(?:\s|$))")
#: Outcomes that are our own words, or vLLM's yes and no. Others may hold anything, such as what
#: a worker method of the user's returned.
_OWN_OUTCOMES = re.compile(
    r"done|not done: this vLLM has no \w+|True|False|None|"
    r"no token was scheduled for \d+ steps|[A-Z]\w*(?:Error|Exception)")
_LABEL_END = re.compile(r"(?:.* )?(\d+x\d+ \S+)", re.DOTALL)
_HEX = re.compile(r"(?:[0-9a-f]{2})+")
#: Bytes of a salted value: at least so many, or different values could become equal.
_LEAST, _USUAL, _MOST = 8, 32, 64


def own_words(text: str) -> str:
    """`text` up to the class of the first exception whose message it quotes."""
    found = _CLASS_AND_MESSAGE.search(text)
    return text[:found.end()] if found else text


class Redactor:
    """Maps each record of one trace to what may be kept of it, in the order of writing.

    It remembers which request a run belongs to: a run's `RunRecord` comes before its others.
    """

    def __init__(self, salt: bytes) -> None:
        self._salt = salt
        #: Run -> its request, and the output tokens that its prompt already holds.
        self._runs: dict[str, tuple[str, int]] = {}

    def __call__(self, record: R) -> R:
        """The record without its content."""
        if isinstance(record, r.RunRecord):
            self._runs[record.run] = (record.request, record.appended)
        changes = {name: rule(self, record, getattr(record, name))
                   for name, rule in CHANGED[type(record)].items()}
        return msgspec.structs.replace(record, **changes) if changes else record

    def value(self, value: str) -> str:
        """Hex that is equal for equal values; as long as the value where that is hex too."""
        if not value:
            return value
        size = len(value) // 2 if _HEX.fullmatch(value) else _USUAL
        return self._hash(value.encode("utf-8", "surrogatepass"), b"value",
                          min(max(size, _LEAST), _MOST)).hex()

    def token(self, request: str, place: tuple[Any, ...], token: int) -> int:
        """A stand-in of 31 bits for a token at one place of one request.

        It differs from place to place: one that did not could be read by the frequency of
        letters.
        """
        digest = self._hash(repr((request, *place, token)).encode(), b"token", 4)
        return int.from_bytes(digest, "big") >> 1

    def at(self, request: str, place: tuple[Any, ...], digest: str) -> str:
        """A digest, made to depend on its place as a token is: some are of a single token."""
        if not digest:
            return digest
        return self._hash(repr((request, *place, digest)).encode(), b"digest", _LEAST).hex()

    def run(self, run: str) -> tuple[str, int]:
        """Request of a run, and the output tokens that its prompt already holds."""
        return self._runs.get(run, (run, 0))

    def _hash(self, data: bytes, kind: bytes, size: int) -> bytes:
        return blake2b(data, key=self._salt, person=kind, digest_size=size).digest()


# The rules: redactor, record and the field's value in, its new value out.


def _salted(redactor: Redactor, _record: Any, value: str | None) -> str | None:
    return None if value is None else redactor.value(value)


def _each_salted(redactor: Redactor, _record: Any, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(redactor.value, values))


def _each_redacted(redactor: Redactor, _record: Any, parts: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(redactor, parts))


def _text(_redactor: Redactor, _record: Any, value: str) -> str:
    """Empty says that there was nothing, which is no secret."""
    return REDACTED if value else value


def _nothing(_redactor: Redactor, _record: Any, _value: Any) -> None:
    return None


def _no_tokens(_redactor: Redactor, _record: Any, _value: Any) -> tuple[int, ...]:
    return ()


def _own_words(_redactor: Redactor, _record: Any, text: str) -> str:
    return own_words(text)


def _outcome(_redactor: Redactor, _record: Any, text: str | None) -> str | None:
    """Free text that need not be ours: what is not known to be is taken out whole."""
    if not text:
        return text
    words = own_words(text)
    return words if words != text or _OWN_OUTCOMES.fullmatch(text) else REDACTED


def _size_and_mode(_redactor: Redactor, _record: Any, labels: tuple[str, ...]) -> tuple[str, ...]:
    """`my page.png 512x32 L` -> `512x32 L`: a file's name may hold spaces."""
    found = [_LABEL_END.fullmatch(label) for label in labels]
    return tuple(match[1] if match else REDACTED for match in found)


def _prompt_tokens(redactor: Redactor, record: r.RequestRecord,
                   tokens: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(redactor.token(record.id, ("prompt", place), token)
                 for place, token in enumerate(tokens))


def _answer(redactor: Redactor, record: r.FinishedRecord,
            tokens: tuple[int, ...]) -> tuple[int, ...]:
    request, first = redactor.run(record.run)
    return tuple(redactor.token(request, ("output", place), token)
                 for place, token in enumerate(tokens, start=first))


def _row_token(redactor: Redactor, record: r.LogitsRecord, token: int) -> int:
    return redactor.token(redactor.run(record.run)[0], ("output", record.index), token)


def _row_tokens(redactor: Redactor, record: r.LogitsRecord,
                tokens: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(_row_token(redactor, record, token) for token in tokens)


def _row_text(redactor: Redactor, record: r.LogitsRecord, text: str) -> str:
    return _token_text(redactor, record, record.chosen, text)


def _row_texts(redactor: Redactor, record: r.LogitsRecord,
               texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_token_text(redactor, record, token, text)
                 for token, text in zip(record.top_ids, texts, strict=True))


def _token_text(redactor: Redactor, record: r.LogitsRecord, token: int, text: str) -> str:
    if any(stop.token_id == token for stop in record.stops):
        return text
    return f"~{_row_token(redactor, record, token) & 0xFFFF:04x}"


def _row_digest(redactor: Redactor, record: r.LogitsRecord, digest: str) -> str:
    return redactor.at(redactor.run(record.run)[0], ("row", record.index), digest)


def _input_digest(redactor: Redactor, record: r.ForwardRecord, digest: str) -> str:
    # Positions are the second choice: a plugin may give several tokens the same one.
    end = record.first_position if record.seq_len is None else record.seq_len
    return redactor.at(redactor.run(record.run)[0], ("input", end, record.num_tokens), digest)


#: Fields that are changed, with the rule of each; a record type without any has an empty entry.
CHANGED: dict[type[msgspec.Struct], dict[str, _Rule]] = {
    r.Header: {},
    r.Override: {},
    r.ImageSpan: {"identifier": _salted},
    r.RequestRecord: {"prompt_token_ids": _prompt_tokens, "prompt_text": _text,
                      "images": _each_redacted, "image_labels": _size_and_mode,
                      "expect": _nothing},
    r.EngineRecord: {},
    r.LaneRecord: {},
    r.RunRecord: {},
    r.ControlRecord: {"outcome": _outcome},
    r.StepRecord: {},
    r.ExtraKey: {"value": _salted},
    r.HashRecord: {"hash": _salted, "parent": _salted, "token_ids": _no_tokens,
                   "extra_keys": _each_redacted},
    r.LookupRecord: {"hashes": _each_salted, "not_read": _own_words},
    r.BlocksRecord: {"hashes": _each_salted},
    r.BlockTableRecord: {},
    r.EncoderRecord: {"identifier": _salted, "why": _own_words},
    r.EncoderEvictionRecord: {"identifiers": _each_salted},
    r.ProcessorRecord: {"identifier": _salted},
    r.ForwardRecord: {"first_id": _nothing, "last_id": _nothing, "input_digest": _input_digest},
    r.HookRecord: {},
    r.StopLogit: {},
    r.LogitsRecord: {"chosen": _row_token, "chosen_text": _row_text, "top_ids": _row_tokens,
                     "top_texts": _row_texts, "digest": _row_digest},
    r.FinishedRecord: {"token_ids": _answer, "text": _text, "error": _outcome},
    r.NotObservedRecord: {"why": _own_words},
    r.Footer: {"detail": _own_words},
}

#: Fields that stay: figures, the user's own settings, names of requests, runs and code, and the
#: model's stop tokens. `at` is every record's.
KEPT: dict[type[msgspec.Struct], str] = {
    r.Header: "schema tool started argv request_file plugins engine_arguments repeat max_tokens "
              "notes redacted",
    r.Override: "name given used why",
    r.ImageSpan: "modality offset length",
    r.RequestRecord: "id source max_tokens",
    r.EngineRecord: "vllm torch python platform runner model_class model_file model dtype "
                    "num_layers block_size num_blocks max_model_len user_token_budget "
                    "whole_token_budget prefix_caching stop_tokens overrides unused_flags "
                    "seconds_to_start",
    r.LaneRecord: "lane runs reads_prefix_cache emptied token_budget",
    r.RunRecord: "run lane request attempt appended",
    r.ControlRecord: "name source",
    r.StepRecord: "run step num_computed_tokens num_scheduled_tokens preempted encoder_inputs",
    r.ExtraKey: "kind offset",
    r.HashRecord: "",
    r.LookupRecord: "run step asked limit found block_ids",
    r.BlocksRecord: "action step run block_ids group first",
    r.BlockTableRecord: "run step group first block_ids",
    r.EncoderRecord: "run step index offset length outcome",
    r.EncoderEvictionRecord: "step why",
    r.ProcessorRecord: "run index outcome",
    r.ForwardRecord: "run step num_tokens first_position last_position positions_digest "
                     "has_embeds attention op seq_len first_block block_ids first_slot last_slot "
                     "slots_digest",
    r.HookRecord: "lane hook seen failed",
    r.StopLogit: "token_id logit rank",
    r.LogitsRecord: "run index top_logits margin stops sketch max_abs norm vocabulary "
                    "num_neg_inf num_nan",
    r.FinishedRecord: "run reason num_cached_tokens seconds",
    r.NotObservedRecord: "what lane run",
    r.Footer: "outcome ended",
}
