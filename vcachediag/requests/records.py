"""What a request file says, independent of its shape and of vLLM."""

from typing import Any, Literal

import msgspec

ImageForm = Literal["encoded", "pil"]
ControlName = Literal["reset_prefix_cache", "reset_mm_cache", "reset_encoder_cache", "sleep",
                      "wake_up", "collective_rpc"]


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """One image of a request, read and checked, not yet decoded for the model."""

    #: As written in the file, shortened for `data:` URLs; for people only.
    label: str
    #: The encoded file (PNG, JPEG, ...), byte for byte: vLLM hashes these bytes.
    data: bytes
    #: `image/png` and the like.
    media_type: str
    #: Pixels, from the file's own header.
    width: int
    height: int
    #: Pillow's mode (`L`, `RGB`, `P`, ...).
    mode: str


class Request(msgspec.Struct, frozen=True, kw_only=True, tag="request"):
    """One request, ready to be sent.

    Exactly one of `prompt`, `prompt_token_ids`, `messages` is set.
    """

    #: Unique in the file; `r1`, `r2`, ... when the file gives none.
    id: str
    #: `file:line` where it stands.
    source: str
    #: Raw completion prompt; image placeholders are the author's own.
    prompt: str | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    #: OpenAI chat messages. Image parts are replaced by `{"type": "image", "index": i}`,
    #: `i` counting into `images`; other keys of the part, meant for the template, are kept.
    messages: tuple[dict[str, Any], ...] | None = None
    #: In prompt order.
    images: tuple[Image, ...] = ()
    #: `encoded`: through vLLM's media path, as `vllm serve` does; `pil`: as a PIL object.
    image_as: ImageForm = "encoded"
    #: Limit of output tokens; None: the command's own.
    max_tokens: int | None = None
    #: vLLM sampling fields as given (`temperature`, `stop`, ...), names and values unchanged.
    sampling: dict[str, Any] = {}
    #: `add_generation_prompt`, `chat_template_kwargs` and the like, for chat bodies; with a
    #: `prompt`, only what applies to it (`fields.PROMPT_OPTIONS`: `add_special_tokens`, ...).
    chat_options: dict[str, Any] = {}
    cache_salt: str | None = None
    #: Identifiers of the images given by the caller, in order.
    mm_uuids: tuple[str | None, ...] | None = None
    mm_processor_kwargs: dict[str, Any] | None = None
    #: `name=path` of an adapter.
    lora: str | None = None
    #: The text that it should give.
    expect: str | None = None


class Control(msgspec.Struct, frozen=True, kw_only=True, tag="control"):
    """A line that does something between requests in the `cached` lane."""

    source: str
    name: ControlName
    #: Everything else on the line, passed to vLLM's method of that name.
    arguments: dict[str, Any] = {}


class RequestFile(msgspec.Struct, frozen=True, kw_only=True):
    """A request file as a whole, in file order."""

    path: str
    items: tuple[Request | Control, ...]
    #: Things to tell the user once: ignored fields and the like.
    notes: tuple[str, ...] = ()

    @property
    def requests(self) -> tuple[Request, ...]:
        """The requests alone, in file order."""
        return tuple(item for item in self.items if isinstance(item, Request))
