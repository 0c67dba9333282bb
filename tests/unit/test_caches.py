"""Emptying caches where vLLM has no call for it, or does not tell how it went."""

from collections import OrderedDict
from types import SimpleNamespace
from typing import Any

import pytest

from vcachediag.engine import caches, capabilities


def engine(*, reset: bool | None, cached: int = 0, encoder: Any = None) -> Any:
    """An engine of which only the caches matter."""
    pool = SimpleNamespace(cached_block_hash_to_block=dict.fromkeys(range(cached)))
    scheduler = SimpleNamespace(kv_cache_manager=SimpleNamespace(block_pool=pool),
                                encoder_cache_manager=encoder)
    core = SimpleNamespace(engine_core=SimpleNamespace(scheduler=scheduler))
    return SimpleNamespace(reset_prefix_cache=lambda: reset, engine_core=core)


def shared_encoder_cache() -> Any:
    """An encoder cache manager that shares outputs between requests, with two of them."""
    return SimpleNamespace(cache_size=9, num_free_slots=2, num_freeable_slots=6,
                           cached={"a": set(), "b": {"r1"}}, freeable=OrderedDict(a=4),
                           freed=["c"])


@pytest.fixture
def has(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names that this vLLM has."""
    names: set[str] = set()
    monkeypatch.setattr(capabilities, "has", names.__contains__)
    return names


@pytest.mark.parametrize(("reset", "cached", "emptied"), [
    (True, 0, True), (False, 3, False), (None, 0, True), (None, 3, False)])
def test_prefix_cache(reset: bool | None, cached: int, emptied: bool) -> None:
    """Whether the reset worked is taken from its result, else from what is still cached."""
    assert emptied == caches.empty_prefix(engine(reset=reset, cached=cached))


def test_encoder_outputs_of_single_requests_need_nothing(has: set[str]) -> None:
    """Where nothing is shared between requests there is nothing to empty."""
    del has

    assert caches.empty_encoder(engine(reset=True), SimpleNamespace())


def test_shared_encoder_cache_is_emptied_on_both_sides(has: set[str]) -> None:
    """Where it is shared and there is no call for it, scheduler and runner both forget."""
    has.add("EncoderCacheManager.check_and_update_cache")
    manager, runner = shared_encoder_cache(), SimpleNamespace(encoder_cache={"a": 1, "b": 2})

    assert caches.empty_encoder(engine(reset=True, encoder=manager), runner)
    assert ({}, {}, {}, []) == (runner.encoder_cache, manager.cached, manager.freeable,
                                manager.freed)
    assert 9 == manager.num_free_slots == manager.num_freeable_slots


def test_what_cannot_be_emptied_is_said(has: set[str]) -> None:
    """A shared cache of a kind that we do not know is left alone."""
    has.add("EncoderCacheManager.check_and_update_cache")

    assert not caches.empty_encoder(engine(reset=True, encoder=SimpleNamespace()),
                                    SimpleNamespace(encoder_cache={}))
