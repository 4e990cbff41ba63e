"""Who held the device: a forward's time shared among the requests whose prompts it computed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from engine.batch import Role

__all__ = ["Culprit", "culprits", "split_exactly"]


@dataclass(frozen=True, slots=True)
class Culprit:
    """A request whose prefill held the device while another was silent."""

    rid: int
    name: str
    device_ns: int


def culprits(charges: Mapping[int, int], rows: pl.DataFrame, names: Mapping[int, str]) -> tuple[Culprit, ...]:
    """Each forward's charge in nanoseconds, shared among its extend rows by tokens; the largest sum first.

    A forward without extend rows in `rows` charges nobody.
    """
    extend = rows.filter(
        (pl.col("role") != Role.DECODE.value) & pl.col("forward_id").is_in(list(charges))
    ).select("forward_id", "rid", "extend_len")
    shares: dict[int, int] = {}
    for there in extend.partition_by("forward_id"):
        parts = split_exactly(charges[there["forward_id"][0]], there["extend_len"].to_list())
        for rid, part in zip(there["rid"], parts, strict=True):
            shares[rid] = shares.get(rid, 0) + part
    ranked = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Culprit(rid, names.get(rid, str(rid)), device_ns) for rid, device_ns in ranked)


def split_exactly(total: int, weights: Sequence[int]) -> list[int]:
    """`total` in whole parts proportional to `weights`, by largest remainder, so that they sum to it."""
    whole = sum(weights)
    if whole <= 0:
        return [0] * len(weights)
    parts = [total * w // whole for w in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: (-(total * weights[i] % whole), i))
    for i in by_remainder[: total - sum(parts)]:
        parts[i] += 1
    return parts
