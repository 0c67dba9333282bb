"""Our own `vllm.general_plugins` entry point: nothing at all unless a run of ours asks for it."""

import os


def register() -> None:
    """Called by vLLM in each of its processes: load the user's plugin there as well.

    Never raises: the process that we watch has loaded the plugin before and reported why not.
    """
    if "VCACHEDIAG_PLUGINS" not in os.environ:
        return
    from vcachediag.engine import plugin
    from vcachediag.errors import VcachediagError

    for spec in plugin.exported():
        try:
            plugin.load(spec)
        except VcachediagError as error:
            print(f"vcachediag: {error.message}: {error.cause}", flush=True)
