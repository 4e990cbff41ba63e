"""`Plan`: what the scheduler hands to the engine each round."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from engine.batch import ForwardBatch, IntColumn
from engine.cache import KVCache
from engine.observer import PlanRecord
from engine.request import Request

__all__ = ["Plan", "private_pages"]


@dataclass(slots=True, eq=False)
class Plan:
    """A planned forward: its batch, whose pages are allocated, and what was known when it was planned."""

    batch: ForwardBatch
    record: PlanRecord


def private_pages(cache: KVCache, requests: Iterable[Request]) -> IntColumn:
    """(requests,) pages held by a request's row and not by the tree."""
    size = cache.page_size
    return np.array([-(-r.kv_len // size) - r.protected_len // size for r in requests], dtype=np.int32)
