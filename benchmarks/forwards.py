"""Decode forwards as an engine would tell them, without an engine."""

from array import array

import numpy as np

from engine.batch import ForwardBatch, ForwardMode, Outcome, Role
from engine.executors.protocol import ForwardResult
from engine.observer import ForwardRecord, Owner, PageChange, PlanRecord, PoolState
from engine.request import Request

PROMPT = 100
POOL = PoolState(total=100_000, free=60_000, evictable=20_000, protected=10_000, private=10_000)


def synthetic(forward_id: int, rows: int, page_size: int, pace_ns: int) -> ForwardRecord:
    """A decode forward of `rows` sequences as an engine would tell it."""
    prefix = np.arange(rows, dtype=np.int32) + PROMPT + forward_id
    opened = np.flatnonzero(prefix % page_size == 0)
    pages = array("i", [1 + (forward_id * rows + int(row)) % 99_991 for row in opened])
    changes = [PageChange(pages, Owner.ROW, rids=opened.astype(np.int32))] if pages else []
    batch = ForwardBatch(
        forward_id=forward_id,
        mode=ForwardMode.DECODE,
        requests=[Request(0, "r", [1])] * rows,
        num_extend_seqs=0,
        page_size=page_size,
        rids=np.arange(rows, dtype=np.int32),
        attempts=np.zeros(rows, dtype=np.int32),
        roles=np.full(rows, Role.DECODE, dtype=np.uint8),
        prefix_lens=prefix,
        extend_lens=np.ones(rows, dtype=np.int32),
        cached_tokens=np.zeros(rows, dtype=np.int32),
        input_ids=np.ones(rows, dtype=np.int32),
        pages=[],
    )
    plan = PlanRecord(
        POOL,
        running_reqs=rows,
        absent_decode_reqs=0,
        waiting_reqs=0,
        pending_tokens=0,
        new_token_ratio=0.5,
        private_pages=np.full(rows, 2, dtype=np.int32),
        inflight_after_plan=np.zeros(rows, dtype=np.uint8),
    )
    start_ns, end_ns = forward_id * pace_ns, (forward_id + 1) * pace_ns
    return ForwardRecord(
        batch,
        plan,
        ForwardResult([1] * rows, start_ns, end_ns),
        *(start_ns, start_ns, start_ns, end_ns, end_ns, end_ns),
        overlapped=False,
        outcomes=np.full(rows, Outcome.EMITTED, dtype=np.uint8),
        token_index=prefix - PROMPT,
        inflight_after_result=np.zeros(rows, dtype=np.uint8),
        page_changes=changes,
    )
