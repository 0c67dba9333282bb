"""Our own `vllm.general_plugins` entry point: nothing at all unless a run of ours asks for it."""

import os
from collections.abc import Callable

_install: Callable[[], None] | None = None


def arm(install: Callable[[], None]) -> None:
    """Have `install` called by vLLM, once, in this process, before it makes a scheduler."""
    global _install
    _install = install


def register() -> None:
    """Called by vLLM in each of its processes: load the user's plugin there, put our hooks in.

    Never raises on account of a plugin: the process that we watch has loaded it before and
    reported why not.
    """
    _load_plugins()
    _install_hooks()


def _load_plugins() -> None:
    if "VCACHEDIAG_PLUGINS" not in os.environ:
        return
    from vcachediag.engine import plugin
    from vcachediag.errors import VcachediagError

    for spec in plugin.exported():
        try:
            plugin.load(spec)
        except VcachediagError as error:
            print(f"vcachediag: {error.message}: {error.cause}", flush=True)


def _install_hooks() -> None:
    global _install
    install, _install = _install, None
    if install is not None:
        install()


def ensure() -> None:
    """Put the hooks in now if vLLM has not asked us by now, as with a `VLLM_PLUGINS` without us."""
    _install_hooks()
