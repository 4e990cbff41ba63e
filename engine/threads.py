"""Torch work in threads of its own."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

__all__ = ["apart", "torch_worker"]

T = TypeVar("T")


def torch_worker(name: str) -> ThreadPoolExecutor:
    """One thread that computes with as many OpenMP threads as the caller; each thread has its own count."""
    return ThreadPoolExecutor(1, name, torch.set_num_threads, (torch.get_num_threads(),))


def apart(work: Callable[[], T]) -> T:
    """Run torch work in a thread that ends with it.

    libgomp keeps a thread's team while the thread lives, and lets every team wait less eagerly once there are
    more threads than cores. A team that the main thread had kept made the worker's forwards a quarter slower.
    """
    with torch_worker("apart") as worker:
        return worker.submit(work).result()
