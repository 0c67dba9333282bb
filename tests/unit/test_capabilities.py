"""The table of what we touch in vLLM is complete, and names nothing else."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest

from vcachediag.engine import capabilities
from vcachediag.engine.capabilities import accepted
from vcachediag.engine.capability_table import CAPABILITIES, Capability
from vcachediag.errors import VllmMissingError

ENGINE = Path(__file__).resolve().parents[2] / "vcachediag" / "engine"


def test_every_name_that_is_looked_up_is_in_the_table() -> None:
    """A name of vLLM's that the engine looks up is declared, with what it is used for."""
    used = {name for path in ENGINE.rglob("*.py")
            for name in re.findall(r'\b(?:find|has)\("([^"]+)"\)', path.read_text())}
    declared = {capability.name for capability in CAPABILITIES}

    assert used
    assert set() == used - declared


def test_every_entry_of_the_table_is_used() -> None:
    """An entry is looked up by its name, or what it holds is read from what another one gave."""
    trees = [ast.parse(path.read_text()) for path in ENGINE.rglob("*.py")
             if path.name != "capability_table.py"]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = {node.value for node in nodes if isinstance(node, ast.Constant)}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    names |= {node.arg for node in nodes if isinstance(node, ast.keyword)}

    def used(one: Capability) -> bool:
        if {one.name, one.name.rpartition(".")[2]} & names:
            return True
        return bool(one.holds) and all(set(held.split("|")) & names for held in one.holds)

    assert [] == [one.name for one in CAPABILITIES if not used(one)]


def test_every_entry_has_a_name_of_its_own() -> None:
    """Two entries of one name would be looked up as one."""
    names = [capability.name for capability in CAPABILITIES]

    assert len(names) == len(set(names))


def test_vllm_is_imported_through_the_table_only() -> None:
    """No module of the engine imports vLLM by itself."""
    found = [path.name for path in ENGINE.rglob("*.py")
             if re.search(r"^\s*(from|import) vllm\b", path.read_text(), re.MULTILINE)]

    assert [] == found


def test_no_version_is_compared() -> None:
    """What a vLLM has is asked of it: its version is only shown."""
    found = [path.name for path in ENGINE.rglob("*.py")
             if re.search(r"version\(\) *[<>=!]|[<>=]=? *version\(|__version__ *[<>=!]",
                          path.read_text())]

    assert [] == found


def test_only_known_parameters_are_given() -> None:
    """A parameter that this vLLM's function does not have is left out."""
    def function(known: int, *, other: int = 0) -> int:
        return known + other

    assert {"known": 1, "other": 2} == accepted(function, known=1, other=2, unknown=3)


def test_a_hook_that_cannot_see_does_not_stop_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a vLLM lacks what only a hook needs, the hook is named and everything else works."""
    gone = replace(next(one for one in CAPABILITIES if one.name == "BlockPool.touch"),
                   places=("vllm.v1.core.block_pool:BlockPool.renamed",))
    table = tuple(gone if one.name == gone.name else one for one in CAPABILITIES)
    monkeypatch.setattr(capabilities, "CAPABILITIES", table)
    monkeypatch.setitem(capabilities._BY_NAME, gone.name, gone)
    capabilities.require_all()

    capabilities.require_hook("lookup")
    with pytest.raises(VllmMissingError, match=r"lacks `BlockPool\.touch`"):
        capabilities.require_hook("blocks")


def test_what_is_needed_stops_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without scheduled tokens there is nothing to judge: exit code 4 at the start."""
    gone = replace(next(one for one in CAPABILITIES if one.name == "Scheduler.schedule"),
                   places=("vllm.v1.core.sched.scheduler:Scheduler.renamed",))
    monkeypatch.setitem(capabilities._BY_NAME, gone.name, gone)

    with pytest.raises(VllmMissingError, match=r"lacks `Scheduler\.schedule`"):
        capabilities.require_all()
