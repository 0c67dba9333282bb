"""Pass-through patches of vLLM's classes: whatever goes in and comes out stays as it is."""

import functools
from collections.abc import Callable
from typing import Any


def wrap(owner: Any, name: str, *, before: Callable[..., None] | None = None,
         after: Callable[..., None] | None = None,
         always: Callable[..., None] | None = None) -> None:
    """Replace `owner.name` by a function that calls the same and shows what passes.

    Signatures are vLLM's business: arguments are handed on as they come.

    Args:
        before: Called with the arguments.
        after: Called with the result and then the arguments, if nothing was raised.
        always: Called with the arguments at the end, also when something was raised.
    """
    original = getattr(owner, name)

    @functools.wraps(original)
    def passing(*args: Any, **kwargs: Any) -> Any:
        if before is not None:
            before(*args, **kwargs)
        try:
            result = original(*args, **kwargs)
        finally:
            if always is not None:
                always(*args, **kwargs)
        if after is not None:
            after(result, *args, **kwargs)
        return result

    setattr(owner, name, passing)
