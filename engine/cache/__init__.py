"""KV bookkeeping in plain integers: pages, request rows, the radix tree. No tensors."""

from engine.cache.kv_cache import KVCache

__all__ = ["KVCache"]
