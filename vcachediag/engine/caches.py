"""Empties the engine's caches, also where vLLM has no call for it."""

from typing import Any

from vcachediag.engine import capabilities


def empty_prefix(engine: Any) -> bool:
    """Empty the prefix cache; False: blocks are still in use, and it was not emptied."""
    done = engine.reset_prefix_cache()
    if done is None:
        # Earlier vLLM does not tell, but the cache does.
        manager = engine.engine_core.engine_core.scheduler.kv_cache_manager
        done = len(manager.block_pool.cached_block_hash_to_block) == 0
    return bool(done)


def empty_encoder(engine: Any, runner: Any) -> bool:
    """Empty the encoder cache; False: this vLLM shares it between requests and cannot empty it."""
    if capabilities.has("LLMEngine.reset_encoder_cache"):
        engine.reset_encoder_cache()
        return True
    if not capabilities.has("EncoderCacheManager.check_and_update_cache"):
        # Outputs are kept for one request only and go with it.
        return True
    manager = engine.engine_core.engine_core.scheduler.encoder_cache_manager
    outputs = getattr(runner, "encoder_cache", None)
    if not isinstance(outputs, dict) or not hasattr(manager, "num_freeable_slots"):
        return False
    outputs.clear()
    for entries in (manager.cached, manager.freeable, manager.freed):
        entries.clear()
    manager.num_free_slots = manager.num_freeable_slots = manager.cache_size
    return True
