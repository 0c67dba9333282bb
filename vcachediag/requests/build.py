"""One JSON object, of any of the shapes, into a `Request` or a `Control`."""

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

from vcachediag.errors import RequestFileError
from vcachediag.requests import fields as names
from vcachediag.requests import kinds
from vcachediag.requests.images import load_image
from vcachediag.requests.messages import Picture, take_pictures
from vcachediag.requests.records import Control, ControlName, Image, ImageForm, Request
from vcachediag.requests.where import Where, describe, quote

PROMPTS: Final = ("prompt", "prompt_token_ids", "messages")
PATHS: Final = {"/v1/chat/completions": True, "/v1/completions": False}
CONTROLS: Final = get_args(ControlName)
IMAGE_FORMS: Final = get_args(ImageForm)
NUMBER_HINT: Final = "a request without an id is numbered: r1, r2, ..."


class Builder:
    """Builds the items of one file in order, and remembers what concerns the file as a whole."""

    def __init__(self, base: Path) -> None:
        """Start a file whose relative paths begin at `base`."""
        #: Names of the fields without effect that were met.
        self.ignored: set[str] = set()
        self._base = base
        self._images: dict[Path, Image] = {}
        self._ids: dict[str, Where] = {}

    def build(self, line: dict[str, Any], where: Where) -> Request | Control:
        """Return what `line` asks for.

        Raises:
            RequestFileError: a field is unknown, of the wrong kind, or at odds with another.

        """
        if "control" in line:
            return _control(line, where)
        given = _flatten(line, where)
        _refuse(given, where)
        prompt = _prompt(given, where)
        images = tuple(
            load_image(
                picture.reference,
                base=self._base, where=where.at(picture.field), cache=self._images,
            )
            for picture in prompt.pictures
        )
        options = names.CHAT_OPTIONS if prompt.messages is not None else names.PROMPT_OPTIONS
        unused = names.WITHOUT_EFFECT | (names.CHAT_OPTIONS.keys() - options.keys())
        self.ignored |= given.keys() & unused
        return Request(
            id=self._id(given, where),
            source=where.source,
            prompt=prompt.text,
            prompt_token_ids=prompt.token_ids,
            messages=prompt.messages,
            images=images,
            image_as=_one_of(IMAGE_FORMS, "image_as", given.get("image_as", "encoded"), where),
            max_tokens=_max_tokens(given, where),
            sampling=_checked(given, names.SAMPLING, where),
            chat_options=_checked(given, options, where),
            cache_salt=_optional(given, "cache_salt", kinds.FILLED, where),
            mm_uuids=_mm_uuids(given, prompt.pictures, where),
            mm_processor_kwargs=_optional(given, "mm_processor_kwargs", kinds.OBJECT, where),
            lora=_optional(given, "lora", kinds.ADAPTER, where),
            expect=_optional(given, "expect", kinds.TEXT, where),
        )

    def _id(self, given: dict[str, Any], where: Where) -> str:
        if "id" in given and "custom_id" in given:
            raise where.error("`id` and `custom_id` are both given; one is enough")
        name = "custom_id" if "custom_id" in given else "id"
        found: str = kinds.FILLED.check(where, name, given.get(name, f"r{len(self._ids) + 1}"))
        # It becomes part of a run's name, `cached/r1#2`.
        if any(not char.isprintable() or char in " #/" for char in found):
            raise where.error(
                f"`{name}` must be of printable characters without blanks, `#` and `/`, "
                f"not {describe(found)}"
            )
        if found in self._ids:
            raise where.error(
                f"id {quote(found)} is taken: {self._ids[found].short} has it", hint=NUMBER_HINT
            )
        self._ids[found] = where
        return found


class _Prompt(NamedTuple):
    """What is sent, in one of three forms, and the pictures in it."""

    pictures: list[Picture]
    text: str | None = None
    token_ids: tuple[int, ...] | None = None
    messages: tuple[dict[str, Any], ...] | None = None


def _flatten(line: dict[str, Any], where: Where) -> dict[str, Any]:
    """Return the fields that are given and not null, those of a batch line's body included."""
    _refuse_unknown(line, names.KNOWN | names.BATCH, where)
    given = {name: value for name, value in line.items() if value is not None}
    wrapper = {name: given.pop(name) for name in names.BATCH & given.keys()}
    if not wrapper:
        return given
    if "body" not in wrapper:
        raise where.error(f"{quote(min(wrapper))} belongs to a batch line, and there is no `body`")
    body = kinds.OBJECT.check(where, "body", wrapper["body"])
    _refuse_unknown(body, names.KNOWN, where.at("body"))
    for name, value in body.items():
        if name in given:
            raise where.error(f"{quote(name)} is both in `body` and next to it")
        if value is not None:
            given[name] = value
    _one_of(("POST",), "method", wrapper.get("method", "POST"), where)
    if "url" in wrapper:
        url = _one_of(tuple(PATHS), "url", wrapper["url"], where)
        if PATHS[url] != ("messages" in given):
            raise where.error(f"`url` is {quote(url)}, and `body` is not for it")
    return given


def _refuse_unknown(line: dict[str, Any], known: Iterable[str], where: Where) -> None:
    known = sorted(known)
    for name in line:
        if name not in known:
            raise where.error(f"unknown field {quote(name)}{_meant(name, known)}")


def _meant(wrong: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(wrong[:100], known, n=1)
    return f" (did you mean `{near[0]}`?)" if near else ""


def _one_of(allowed: tuple[str, ...], name: str, value: Any, where: Where) -> Any:
    if value in allowed:
        return value
    choice = " or ".join(f"`{one}`" for one in allowed)
    meant = _meant(value, allowed) if isinstance(value, str) and len(allowed) > 2 else ""
    raise where.error(f"{quote(name)} must be {choice}, not {describe(value)}{meant}")


def _refuse(given: dict[str, Any], where: Where) -> None:
    for name, (harmless, why) in names.REFUSED.items():
        value = given.get(name, harmless)
        # `true` equals 1 and is not what `n` means by it.
        if value != harmless or type(value) is not type(harmless):
            raise where.error(f"`{name}` cannot be replayed: {why}")


def _prompt(given: dict[str, Any], where: Where) -> _Prompt:
    chosen = [name for name in PROMPTS if name in given]
    if len(chosen) != 1:
        raise _not_one_prompt(chosen, where)
    name = chosen[0]
    value = given[name]
    if name == "messages":
        if given.get("images"):
            raise where.error(
                "`images` goes with `prompt`",
                hint="in `messages`, a picture is a part of type `image_url`",
            )
        messages, pictures = take_pictures(value, where)
        return _Prompt(pictures, messages=messages)
    references = kinds.REFERENCES.check(where, "images", given.get("images", []))
    pictures = [
        Picture(reference, f"images[{index}]", None) for index, reference in enumerate(references)
    ]
    if name == "prompt" and isinstance(value, list) and value and not isinstance(value[0], int):
        if len(value) > 1:
            raise where.error(f"`prompt` holds {len(value)} prompts; give one a line")
        value = value[0]
    if value in ("", []):
        raise where.error(f"`{name}` is empty")
    if name == "prompt" and not isinstance(value, list):
        return _Prompt(pictures, text=kinds.TEXT.check(where, name, value))
    return _Prompt(pictures, token_ids=tuple(kinds.TOKEN_IDS.check(where, name, value)))


def _not_one_prompt(chosen: Sequence[str], where: Where) -> RequestFileError:
    if not chosen:
        return where.error("there is no `prompt`, `prompt_token_ids` or `messages`")
    return where.error(f"`{chosen[0]}` and `{chosen[1]}` are both given; a request has one")


def _mm_uuids(
    given: dict[str, Any], pictures: list[Picture], where: Where
) -> tuple[str | None, ...] | None:
    in_parts = tuple(picture.uuid for picture in pictures)
    if "mm_uuids" not in given:
        return in_parts if any(in_parts) else None
    if any(in_parts):
        raise where.error("`mm_uuids` is given, and so is the `uuid` of a part; one is enough")
    uuids = tuple(kinds.IDENTIFIERS.check(where, "mm_uuids", given["mm_uuids"]))
    if len(uuids) != len(pictures):
        raise where.error(
            f"`mm_uuids` needs one entry per image: has {len(uuids)}, images: {len(pictures)}"
        )
    return uuids


def _max_tokens(given: dict[str, Any], where: Where) -> int | None:
    limits: set[int] = {
        kinds.LIMIT.check(where, name, given[name])
        for name in ("max_tokens", "max_completion_tokens")
        if name in given
    }
    if len(limits) > 1:
        raise where.error("`max_tokens` and `max_completion_tokens` differ; one is enough")
    return limits.pop() if limits else None


def _checked(
    given: dict[str, Any], table: dict[str, kinds.Kind], where: Where
) -> dict[str, Any]:
    return {
        name: table[name].check(where, name, value)
        for name, value in given.items()
        if name in table
    }


def _optional(given: dict[str, Any], name: str, kind: kinds.Kind, where: Where) -> Any:
    return kind.check(where, name, given[name]) if name in given else None


def _control(line: dict[str, Any], where: Where) -> Control:
    arguments = dict(line)
    name = _one_of(CONTROLS, "control", arguments.pop("control"), where)
    if name == "collective_rpc":
        kinds.FILLED.check(where, "method", arguments.get("method"))
    return Control(source=where.source, name=name, arguments=arguments)
