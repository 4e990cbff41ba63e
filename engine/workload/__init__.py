"""Requests from files, the project's own and those of others, and from seeded generators."""

from engine.workload.generated import uniform_requests
from engine.workload.load import Workload, load_workload
from engine.workload.own import Tokenizer
from engine.workload.prompts import random_ids, shared_prefix

__all__ = [
    "Tokenizer",
    "Workload",
    "load_workload",
    "random_ids",
    "shared_prefix",
    "uniform_requests",
]
