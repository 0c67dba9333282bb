"""What of the table of what we touch in vLLM this vLLM has.

Nothing here compares version numbers: a name is there, or it is not. Where a name moved, its
places are tried in order. The README says which versions were run.
"""

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

from vcachediag.engine.capability_table import CAPABILITIES
from vcachediag.errors import VllmMissingError
from vcachediag.trace.records import HookName

_BY_NAME = {capability.name: capability for capability in CAPABILITIES}


def find(name: str) -> Any:
    """The object of vLLM's behind `name` in the table.

    Raises:
        KeyError: `name` is not in the table.
        VllmMissingError: this vLLM has it in none of the known places, or there is no vLLM.
    """
    capability = _BY_NAME[name]
    failure: Exception | None = None
    for place in capability.places:
        module_name, _, path = place.partition(":")
        try:
            found = import_module(module_name)
            for attribute in path.split("."):
                found = getattr(found, attribute)
        except (ImportError, AttributeError) as error:
            failure = error
        else:
            return found
    raise VllmMissingError(
        f"this vLLM ({version()}) lacks `{name}`, needed for {capability.used_for}",
        cause=str(failure),
        hint="the README lists the supported versions",
    )


def locate(name: str) -> tuple[Any, str]:
    """Where `name` is kept, to patch it: its class or module, and the attribute there.

    Raises:
        KeyError, VllmMissingError: as `find`.
    """
    found = find(name)
    for place in _BY_NAME[name].places:
        module_name, _, path = place.partition(":")
        parent, _, attribute = path.rpartition(".")
        try:
            owner = import_module(module_name)
            for part in filter(None, parent.split(".")):
                owner = getattr(owner, part)
        except (ImportError, AttributeError):
            continue
        if getattr(owner, attribute, None) is found:
            return owner, attribute
    raise KeyError(name)  # `find` has just found it


def has(name: str) -> bool:
    """Whether this vLLM has what stands behind `name` in the table."""
    try:
        find(name)
    except VllmMissingError:
        return False
    return True


def accepted(function: Callable[..., Any], **arguments: Any) -> dict[str, Any]:
    """Those of `arguments` that `function` has a parameter for."""
    parameters = inspect.signature(function).parameters
    return {name: value for name, value in arguments.items() if name in parameters}


def version() -> str:
    """vLLM's version, or `not installed`."""
    try:
        return str(import_module("vllm").__version__)
    except ImportError:
        return "not installed"


def require_hook(hook: HookName) -> None:
    """Check everything that one hook reads or patches, before it patches anything.

    Raises:
        VllmMissingError: names the first gap.
    """
    for capability in CAPABILITIES:
        if capability.hook == hook and not capability.optional:
            find(capability.name)


def require_all() -> None:
    """Check at once everything in the table that we cannot do without.

    Raises:
        VllmMissingError: vLLM is missing, or too old or too new for us; names the first gap.
    """
    try:
        import_module("vllm")
    except ImportError as error:
        raise VllmMissingError(
            "vLLM cannot be imported in this environment", cause=str(error),
            hint="install vcachediag into the environment that serves your model",
        ) from error
    for capability in CAPABILITIES:
        if not capability.optional and not capability.hook:
            find(capability.name)
