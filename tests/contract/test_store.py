"""Kept facts: as good as the sources for the table that they were made for, and never better."""

from pathlib import Path

import pytest

from tests.contract.check import check, check_all, look_everywhere
from tests.contract.store import Index, NotIndexedError, build_index, dump, load
from tests.contract.synthetic import FILES, needs, write
from vcachediag.engine.capability_table import Capability

TABLE = (
    needs("vllm:LLM", takes=("model",), holds=("reset", "model")),
    needs("vllm.gone:Old", "vllm.engine:LLM.run", takes=("prompt",)),
    needs("vllm.engine:More", takes=("size",)),
    needs("vllm.base:REGISTRY", holds=("register",)),
    needs("vllm.api:Config", "vllm.older:Config", takes=("block_size",)),
    needs("vllm.engine:array"),
    needs("vllm.api:inner.Engine"),
)


@pytest.fixture
def index(tmp_path: Path) -> Index:
    """What is kept of the made-up vLLM for TABLE."""
    return build_index("0.1.0", write(tmp_path, FILES), TABLE)


def test_kept_facts_answer_as_the_sources_do(tmp_path: Path, index: Index) -> None:
    """A check against the kept facts gives what a check against the sources gives."""
    assert check_all(TABLE, write(tmp_path, FILES)) == check_all(TABLE, index)
    assert all(one.ok for one in check_all(TABLE, index))


def test_kept_facts_survive_the_file(index: Index) -> None:
    """Nothing is lost or added by writing and reading, and the file is always the same."""
    assert index == load(dump(index))
    assert dump(index) == dump(load(dump(index)))


def test_facts_are_kept_for_places_behind_the_one_that_was_found(index: Index) -> None:
    """Each place is looked up, so that which one is found first does not matter later."""
    look_everywhere(TABLE, index)

    assert {"vllm.gone", "vllm.older"} <= index.absent


@pytest.mark.parametrize("grown", [
    needs("vllm.base:REGISTRY", holds=("names",)),
    needs("vllm.engine:LLM", holds=("state",)),
    needs("vllm.engine:LLM.reset"),
    needs("vllm.base:Plain", holds=("unrelated",)),
])
def test_more_of_a_known_class_needs_no_new_facts(index: Index, grown: Capability) -> None:
    """A class is kept whole, with its bases: another attribute of it can be checked at once."""
    assert check(grown, index).ok


def test_a_name_that_a_known_module_lacks_is_a_plain_gap(index: Index) -> None:
    """All names of a kept module are kept, so that a missing one is known to be missing."""
    assert ("no Gone in vllm.engine",) == check(needs("vllm.engine:Gone"), index).gaps


@pytest.mark.parametrize(("grown", "what"), [
    (needs("vllm.new:Thing"), "vllm.new"),
    (needs("vllm.engine:call"), "vllm.engine:call"),
])
def test_facts_that_were_not_kept_are_never_taken_for_a_gap(
        index: Index, grown: Capability, what: str) -> None:
    """A table that has grown fails with the command that helps, and passes silently nowhere."""
    with pytest.raises(NotIndexedError) as caught:
        check(grown, index)

    assert f"{what} is not in the index of vLLM 0.1.0: run make contract-index" == str(caught.value)


def test_a_new_place_behind_one_that_is_found_is_noticed(index: Index) -> None:
    """Looking everywhere asks for a new older place even where the newer one is there."""
    with pytest.raises(NotIndexedError, match=r"vllm\.oldest is not in the index"):
        look_everywhere([needs("vllm:LLM", "vllm.oldest:LLM")], index)
