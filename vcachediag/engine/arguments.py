"""The user's own `vllm serve` line, parsed by vLLM's own parser."""

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from vcachediag.engine import capabilities
from vcachediag.errors import LoadError, UsageError

#: Server flags that change what the model is asked, so they are honoured.
_HONOURED = frozenset({"chat_template", "chat_template_content_format",
                       "trust_request_chat_template", "default_chat_template_kwargs"})


@dataclass(frozen=True, kw_only=True)
class ServeArguments:
    """A parsed `vllm serve` line."""

    #: vLLM's `AsyncEngineArgs`; mutable, ours to override.
    engine_args: Any
    model: str
    chat_template: str | None
    chat_template_content_format: str
    default_chat_template_kwargs: dict[str, Any]
    #: Flags that only concern the server, as the user wrote them.
    unused_flags: tuple[str, ...]


def parse(arguments: tuple[str, ...]) -> ServeArguments:
    """Parse what follows `--`: a model and flags, or a pasted `vllm serve MODEL ...` line.

    Raises:
        UsageError: vLLM does not know a flag, or no model is named.
        LoadError: the model is a local folder without a `config.json`.
    """
    words = list(arguments)
    for word in ("vllm", "serve"):
        if words and (words[0] == word or (word == "vllm" and words[0].endswith("/vllm"))):
            words.pop(0)
    namespace = _parse(words)
    model = getattr(namespace, "model_tag", None) or namespace.model
    if getattr(namespace, "model_tag", None) is None and "--model" not in words:
        raise UsageError("no model is named", hint="vcachediag replay REQUESTS -- MODEL [flags]")
    _check_folder(model)
    namespace.model = model
    engine_args = capabilities.find("AsyncEngineArgs").from_cli_args(namespace)
    return ServeArguments(
        engine_args=engine_args,
        model=model,
        chat_template=_chat_template(namespace.chat_template),
        chat_template_content_format=namespace.chat_template_content_format,
        default_chat_template_kwargs=getattr(namespace, "default_chat_template_kwargs", None) or {},
        unused_flags=_unused(words),
    )


def _parse(words: list[str]) -> Any:
    class Parser(capabilities.find("FlexibleArgumentParser")):  # type: ignore[misc]  # vLLM's own
        def error(self, message: str) -> NoReturn:
            raise UsageError("vLLM does not understand these flags", cause=_one_line(message),
                             hint="everything after `--` goes to `vllm serve`")

        def exit(self, status: int = 0, message: str | None = None) -> NoReturn:  # noqa: ARG002  # argparse's signature
            raise UsageError("vLLM does not start with these flags", cause=message,
                             hint="run `vllm serve --help` for its flags")

    parser = capabilities.find("make_arg_parser")(Parser(prog="vllm serve", add_help=False))
    try:
        return parser.parse_args(words)
    except (ValueError, TypeError, OSError) as error:
        raise UsageError("vLLM does not understand these flags",
                         cause=_one_line(str(error))) from error


def _one_line(message: str) -> str:
    """Pydantic, which checks the flags that hold JSON, explains itself over many lines."""
    return " ".join(message.split())[:600]


def _check_folder(model: str) -> None:
    path = Path(model).expanduser()
    if path.is_dir():
        if not any((path / name).exists() for name in ("config.json", "params.json")):
            raise LoadError(f"model folder {model} has no config.json",
                            hint="give the folder that holds config.json and the weights")
    elif model.endswith(".gguf") and path.is_file():
        return
    elif path.is_absolute() or model.startswith(("./", "../", "~")) or model.count("/") > 1:
        raise LoadError(f"model folder {model} does not exist")


def _chat_template(given: str | None) -> str | None:
    if given is None:
        return None
    try:
        return capabilities.find("load_chat_template")(given)  # type: ignore[no-any-return]
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read --chat-template {given}", cause=str(error)) from error


def _unused(words: list[str]) -> tuple[str, ...]:
    server = {field.name for field in dataclasses.fields(capabilities.find("FrontendArgs"))}
    server |= {"headless", "api_server_count", "grpc"}
    given = []
    for word in words:
        name = re.sub(r"^no_", "", word.partition("=")[0].lstrip("-").replace("-", "_"))
        name = name.partition(".")[0]
        if word.startswith("--") and name in server - _HONOURED:
            given.append(word.partition("=")[0])
    return tuple(given)
