"""From planned requests to one flat batch."""

from array import array
from collections.abc import Sequence

import numpy as np

from engine.batch import ByteColumn, ForwardBatch, ForwardMode, IntColumn, Role
from engine.cache import KVCache
from engine.executors.protocol import NO_TOKEN
from engine.request import Request

__all__ = ["build_batch"]


def build_batch(
    forward_id: int,
    extend: Sequence[Request],
    decode: Sequence[Request],
    roles: Sequence[Role],
    cached: Sequence[int],
    cache: KVCache,
    last: ForwardBatch | None = None,
) -> ForwardBatch:
    """Extend rows take `[prefix_len, extend_end)` of their request, decode rows the token before their end.

    `roles` and `cached` (newly credited tokens) are those of the extend rows. Pages must be allocated. A
    decode row whose token `last`, the forward before, is still to sample awaits it.
    """
    requests = [*extend, *decode]
    decode_ends = [r.kv_len for r in decode]
    prefix_lens = _ints([r.prefix_len for r in extend] + [end - 1 for end in decode_ends])
    ends = _ints([r.extend_end for r in extend] + decode_ends)
    input_ids = array("i")
    for request in extend:
        input_ids.extend(request.tokens[request.prefix_len : request.extend_end])
    known = [len(r.tokens) >= r.kv_len for r in decode]
    input_ids.extend(r.tokens[-1] if k else NO_TOKEN for r, k in zip(decode, known, strict=True))
    return ForwardBatch(
        forward_id=forward_id,
        mode=_mode(len(extend), len(decode)),
        requests=requests,
        num_extend_seqs=len(extend),
        page_size=cache.page_size,
        rids=_ints([r.rid for r in requests]),
        attempts=_ints([r.attempt for r in requests]),
        roles=_bytes([*roles, *[Role.DECODE] * len(decode)]),
        prefix_lens=prefix_lens,
        extend_lens=ends - prefix_lens,
        cached_tokens=_ints([*cached, *[0] * len(decode)]),
        input_ids=np.frombuffer(input_ids, dtype=np.int32),
        pages=[cache.row_pages(r) for r in requests],
        awaited_rows=None if all(known) else _awaited_rows(len(extend), decode, known, last),
    )


def _awaited_rows(
    num_extend_seqs: int, decode: Sequence[Request], known: Sequence[bool], last: ForwardBatch | None
) -> IntColumn:
    assert last is not None, "only a forward in flight can hold a token back"
    row_of = {request.rid: row for row, request in enumerate(last.requests)}
    awaited = [-1 if k else row_of[r.rid] for r, k in zip(decode, known, strict=True)]
    return _ints([-1] * num_extend_seqs + awaited)


def _mode(extend: int, decode: int) -> ForwardMode:
    if not decode:
        return ForwardMode.EXTEND
    return ForwardMode.MIXED if extend else ForwardMode.DECODE


def _ints(values: list[int]) -> IntColumn:
    return np.array(values, dtype=np.int32)


def _bytes(values: Sequence[int]) -> ByteColumn:
    return np.array(values, dtype=np.uint8)
