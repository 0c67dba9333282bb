"""A made-up vLLM, a few lines per module, for the tests of the reader and the checker."""

from pathlib import Path
from textwrap import dedent

from tests.contract.store import Tree
from vcachediag.engine.capability_table import Capability

#: Has every way in which a name can lead somewhere.
FILES = {
    "__init__.py": """
        TABLE = {"LLM": ".engine:LLM"}
        def __getattr__(name): ...
    """,
    "engine.py": """
        from vllm.base import Base as Parent
        from vllm import base
        from pydantic import BaseModel
        from torch import nn
        class LLM(Parent):
            def __init__(self, model, **rest): self.model = model
            def run(self, prompt, *, limit=None): ...
        class Settings(BaseModel):
            size: int
        class More(Settings):
            extra: int
            _private: int
        class Noted(Parent):
            note: int
        class Sub(base.Base): ...
        class Layer(nn.Module): ...
        class Open(nn.Module):
            def __new__(cls, anything): ...
        def call(size, group): ...
        version = 1
        from numpy import array
    """,
    "base.py": """
        from dataclasses import dataclass
        class Base:
            def __init__(self, given): ...
            def reset(self): self.state = 0
        class Plain:
            unrelated: int
        @dataclass
        class Config(Plain):
            block_size: int
        class Registry:
            def register(self, name): self.names = {}
        REGISTRY = Registry()
        loop = loop
    """,
    "api/__init__.py": "from vllm.base import *\nfrom vllm.api import inner",
    "api/inner.py": "from ..engine import LLM as Engine",
}


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
