"""The table of what we touch in vLLM is complete, and names nothing else."""

import ast
import re
from pathlib import Path

from vcachediag.engine.capabilities import CAPABILITIES

ENGINE = Path(__file__).resolve().parents[2] / "vcachediag" / "engine"


def test_every_name_that_is_looked_up_is_in_the_table() -> None:
    """A name of vLLM's that the engine looks up is declared, with what it is used for."""
    used = {name for path in ENGINE.rglob("*.py")
            for name in re.findall(r'find\("([^"]+)"\)', path.read_text())}
    declared = {capability.name for capability in CAPABILITIES}

    assert used
    assert set() == used - declared


def test_every_entry_of_the_table_is_used() -> None:
    """An entry is looked up by its name, or its last part is used on what another one gave."""
    trees = [ast.parse(path.read_text()) for path in ENGINE.rglob("*.py")
             if path.name != "capabilities.py"]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = {node.value for node in nodes if isinstance(node, ast.Constant)}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    names |= {node.arg for node in nodes if isinstance(node, ast.keyword)}

    assert [] == [one.name for one in CAPABILITIES
                  if not {one.name, one.name.rpartition(".")[2]} & names]


def test_vllm_is_imported_through_the_table_only() -> None:
    """No module of the engine imports vLLM by itself."""
    found = [path.name for path in ENGINE.rglob("*.py")
             if re.search(r"^\s*(from|import) vllm\b", path.read_text(), re.MULTILINE)]

    assert [] == found
