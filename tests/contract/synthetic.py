"""A made-up vLLM, a few lines per module, for the tests of the reader and the checker."""

from pathlib import Path
from textwrap import dedent

from tests.contract.store import Tree
from vcachediag.engine.capabilities import Capability


def write(root: Path, files: dict[str, str]) -> Tree:
    """The files below `vllm/`; those not given are empty packages."""
    for name, text in ({"__init__.py": ""} | files).items():
        path = root / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
    return Tree(root)


def needs(*places: str, takes: tuple[str, ...] = (), holds: tuple[str, ...] = (),
          optional: bool = False) -> Capability:
    """An entry of the table, named like the end of its first place."""
    return Capability(name=places[0].partition(":")[2], places=places, used_for="a test",
                      takes=takes, holds=holds, optional=optional)
