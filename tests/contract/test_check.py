"""The checker on a made-up vLLM: finds what is there, and notices each way of going missing."""

from pathlib import Path

import pytest

from tests.contract.check import Outcome, check
from tests.contract.synthetic import FILES, needs, write
from vcachediag.engine.capability_table import Capability


def _outcome(tmp_path: Path, capability: Capability) -> Outcome:
    return check(capability, write(tmp_path, FILES))


@pytest.mark.parametrize("capability", [
    needs("vllm:LLM", takes=("model", "whatever"), holds=("model", "reset", "state", "gone|run")),
    needs("vllm.engine:LLM.run", takes=("prompt", "limit")),
    needs("vllm.engine:LLM.reset"),
    needs("vllm.engine:LLM.state"),
    needs("vllm.engine:Sub", holds=("state",)),
    needs("vllm.engine:More", takes=("size", "extra"), holds=("size", "extra", "_private")),
    needs("vllm.engine:Noted", takes=("given",), holds=("note",)),
    needs("vllm.engine:Open", takes=("anything",)),
    needs("vllm.engine:call", takes=("size", "group|block")),
    needs("vllm.engine:array"),
    needs("vllm.base:Config", takes=("block_size",), holds=("unrelated",)),
    needs("vllm.base:REGISTRY", holds=("register", "names")),
    needs("vllm.base:REGISTRY.register", takes=("name",)),
    needs("vllm.api:Config", takes=("block_size",)),
    needs("vllm.api:inner.Engine.run", takes=("prompt",)),
    needs("vllm.api.inner:Engine", holds=("state",)),
], ids=lambda one: one.places[0])
def test_what_is_there_is_found(tmp_path: Path, capability: Capability) -> None:
    """Imports, star imports, lazy names, bases, instances and constructors are all followed."""
    outcome = _outcome(tmp_path, capability)

    assert (0, ()) == (outcome.place, outcome.gaps)


@pytest.mark.parametrize(("capability", "gap"), [
    (needs("vllm.gone:LLM"), "no module vllm.gone"),
    (needs("vllm.engine:Gone"), "no Gone in vllm.engine"),
    (needs("vllm:Gone"), "no Gone in vllm"),
    (needs("vllm.base:loop"), "no loop in vllm.base"),
    (needs("vllm.engine:LLM.gone"), "no gone in LLM of vllm.engine"),
    (needs("vllm.engine:LLM.run.gone"), "no gone in LLM.run of vllm.engine"),
    (needs("vllm.api:inner.Gone"), "no Gone in inner of vllm.api"),
    (needs("vllm.engine:LLM", holds=("gone",)), "vllm.engine:LLM has no attribute gone"),
    (needs("vllm.engine:LLM", holds=("a|b",)), "vllm.engine:LLM has no attribute a or b"),
    (needs("vllm.engine:LLM.run", takes=("gone",)), "vllm.engine:LLM.run takes no gone"),
    (needs("vllm.engine:More", takes=("gone",)), "vllm.engine:More takes no gone"),
    (needs("vllm.engine:More", takes=("_private",)), "vllm.engine:More takes no _private"),
    (needs("vllm.engine:Noted", takes=("note",)), "vllm.engine:Noted takes no note"),
    (needs("vllm.engine:Sub", takes=("gone",)), "vllm.engine:Sub takes no gone"),
    (needs("vllm.base:Plain", takes=("unrelated",)), "vllm.base:Plain takes no unrelated"),
    (needs("vllm.base:Config", takes=("unrelated",)), "vllm.base:Config takes no unrelated"),
    (needs("vllm.base:REGISTRY", holds=("gone",)), "vllm.base:REGISTRY has no attribute gone"),
    (needs("vllm.engine:Layer", takes=("x",)),
     "the parameters of vllm.engine:Layer cannot be read"),
    (needs("vllm.engine:array", takes=("x",)),
     "the parameters of vllm.engine:array cannot be read"),
    (needs("vllm.engine:call", holds=("x",)),
     "vllm.engine:call is no class, its attributes cannot be read"),
], ids=lambda one: one.places[0] if isinstance(one, Capability) else "")
def test_what_is_not_there_is_named(tmp_path: Path, capability: Capability, gap: str) -> None:
    """A gap says which module, name, parameter or attribute is missing, and of what."""
    assert (gap,) == _outcome(tmp_path, capability).gaps


def test_the_first_place_that_exists_is_the_one_that_counts(tmp_path: Path) -> None:
    """As `find` does: an older place is taken, and a newer one that differs is not passed over."""
    moved = needs("vllm.gone:LLM", "vllm.engine:LLM")
    changed = needs("vllm.engine:Sub", "vllm.engine:LLM", holds=("model",))

    assert (1, ()) == (_outcome(tmp_path, moved).place, _outcome(tmp_path, moved).gaps)
    assert ("vllm.engine:Sub has no attribute model",) == _outcome(tmp_path, changed).gaps


def test_every_place_that_was_tried_is_named(tmp_path: Path) -> None:
    """What is in none of its places says so of each, and stays marked as optional."""
    outcome = _outcome(tmp_path, needs("vllm.gone:LLM", "vllm.engine:Gone", optional=True))

    assert Outcome(name="LLM", optional=True, place=None,
                   gaps=("no module vllm.gone", "no Gone in vllm.engine")) == outcome
    assert not outcome.ok


@pytest.mark.parametrize(("file", "old", "new", "gap"), [
    ("engine.py", "def run(self, prompt,", "def run(self, text,",
     "vllm.engine:LLM.run takes no prompt"),
    ("engine.py", "def run(", "def execute(", "no run in LLM of vllm.engine"),
    ("engine.py", "class LLM(", "class Engine(", "no LLM in vllm.engine"),
])
def test_a_change_in_vllm_is_noticed(
        tmp_path: Path, file: str, old: str, new: str, gap: str) -> None:
    """A renamed parameter, method or class turns what was there into a gap."""
    capability = needs("vllm.engine:LLM.run", takes=("prompt",))
    before = check(capability, write(tmp_path / "before", FILES))
    changed = FILES | {file: FILES[file].replace(old, new)}

    assert before.ok
    assert FILES[file] != changed[file]
    assert (gap,) == check(capability, write(tmp_path / "after", changed)).gaps


def test_a_renamed_attribute_of_a_base_class_is_noticed(tmp_path: Path) -> None:
    """An inherited attribute that is no longer set is a gap of the class that we use."""
    capability = needs("vllm.engine:LLM", holds=("state",))
    changed = FILES | {"base.py": FILES["base.py"].replace("self.state", "self.condition")}

    assert check(capability, write(tmp_path / "before", FILES)).ok
    assert ("vllm.engine:LLM has no attribute state",) == check(
        capability, write(tmp_path / "after", changed)).gaps
