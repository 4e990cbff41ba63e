"""A planned forward out of its rows alone: what a cost model looks at."""

from array import array
from collections.abc import Sequence

import numpy as np

from engine.batch import ForwardBatch, ForwardMode, Role
from engine.request import Request

__all__ = ["forward_of"]


def forward_of(rows: Sequence[tuple[Role, int, int]]) -> ForwardBatch:
    """Of (role, prefix, extend) rows in any order."""
    rows = sorted(rows, key=lambda row: row[0] is Role.DECODE)
    count = len(rows)
    extends = [extend for _, _, extend in rows]
    return ForwardBatch(
        forward_id=0,
        mode=ForwardMode.MIXED,
        requests=[Request(i, f"r{i}", array("i", [1])) for i in range(count)],
        num_extend_seqs=sum(role is not Role.DECODE for role, _, _ in rows),
        page_size=1,
        rids=np.arange(count, dtype=np.int32),
        attempts=np.zeros(count, dtype=np.int32),
        roles=np.array([role for role, _, _ in rows], dtype=np.uint8),
        prefix_lens=np.array([prefix for _, prefix, _ in rows], dtype=np.int32),
        extend_lens=np.array(extends, dtype=np.int32),
        cached_tokens=np.zeros(count, dtype=np.int32),
        input_ids=np.zeros(sum(extends), dtype=np.int32),
        pages=[array("i")] * count,
    )
