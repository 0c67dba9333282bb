"""Chat messages: the pictures are taken out, the rest stays as it is."""

from typing import Any, NamedTuple

from vcachediag.requests.kinds import FILLED, LIST, OBJECT, TEXT
from vcachediag.requests.where import Where, describe, quote

#: Part type -> the key of its text.
TEXT_PARTS = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "refusal": "refusal",
    "thinking": "thinking",
    "tool_reference": "name",
}
IMAGE_PARTS = ("image_url", "input_image")
#: Keys of an image part that say which picture; all others are the chat template's.
IMAGE_KEYS = frozenset({"type", "image_url", "uuid", "detail", "index"})


class Picture(NamedTuple):
    """A picture mentioned in a message."""

    reference: str
    #: As in `messages[0].content[1]`.
    field: str
    uuid: str | None


def take_pictures(value: Any, where: Where) -> tuple[tuple[dict[str, Any], ...], list[Picture]]:
    """Return the messages with numbered image parts, and the pictures in that order.

    Raises:
        RequestFileError: they are not messages of text and images.

    """
    if not LIST.check(where, "messages", value):
        raise where.error("`messages` is empty")
    pictures: list[Picture] = []
    messages = tuple(
        _message(message, f"messages[{index}]", pictures, where)
        for index, message in enumerate(value)
    )
    return messages, pictures


def _message(
    message: Any, name: str, pictures: list[Picture], where: Where
) -> dict[str, Any]:
    OBJECT.check(where, name, message)
    FILLED.check(where, f"{name}.role", message.get("role"))
    content = message.get("content")
    if content is None:
        # An assistant's turn may be tool calls or reasoning alone.
        if "content" not in message and message["role"] != "assistant":
            raise where.error(f"{quote(name)} has no `content`")
        return dict(message)
    if isinstance(content, str):
        return dict(message)
    if not isinstance(content, list):
        raise where.error(
            f"{quote(name + '.content')} must be a string or a list of parts, "
            f"not {describe(content)}"
        )
    parts = [
        _part(part, f"{name}.content[{index}]", pictures, where)
        for index, part in enumerate(content)
    ]
    return {**message, "content": parts}


def _part(part: Any, name: str, pictures: list[Picture], where: Where) -> Any:
    if isinstance(part, str):
        return part
    OBJECT.check(where, name, part)
    kind = part.get("type", "image_url" if "image_url" in part else None)
    FILLED.check(where, f"{name}.type", kind)
    if kind in TEXT_PARTS:
        key = TEXT_PARTS[kind]
        TEXT.check(where, f"{name}.{key}", part.get(key))
        return part
    if kind not in IMAGE_PARTS:
        raise where.error(
            f"{quote(name)} is of type {quote(kind)}, and only text and images are replayed",
            hint=f"types: {', '.join([*TEXT_PARTS, *IMAGE_PARTS])}",
        )
    picture = _picture(part, name, where)
    pictures.append(picture)
    extra = {key: value for key, value in part.items() if key not in IMAGE_KEYS}
    return {"type": "image", "index": len(pictures) - 1, **extra}


def _picture(part: dict[str, Any], name: str, where: Where) -> Picture:
    reference, field = part.get("image_url"), f"{name}.image_url"
    if isinstance(reference, dict):
        reference, field = reference.get("url"), f"{field}.url"
    uuid = part.get("uuid")
    if uuid is not None:
        FILLED.check(where, f"{name}.uuid", uuid)
        if reference is None:
            raise where.error(
                f"{quote(name)} names its picture by `uuid` alone",
                hint="give the picture as well, every request is also run on its own",
            )
    return Picture(FILLED.check(where, field, reference), field, uuid)
