"""From planned requests to one flat batch."""

from array import array
from collections.abc import Sequence

import numpy as np

from engine.batch import ByteColumn, ForwardBatch, ForwardMode, IntColumn, Role
from engine.cache import KVCache
from engine.request import Request

__all__ = ["build_batch"]


def build_batch(
    forward_id: int,
    extend: Sequence[Request],
    decode: Sequence[Request],
    roles: Sequence[Role],
    cached: Sequence[int],
    cache: KVCache,
) -> ForwardBatch:
    """Extend rows take `[prefix_len, extend_end)` of their request, decode rows its last token.

    `roles` and `cached` (newly credited tokens) are those of the extend rows. Pages must be allocated.
    """
    requests = [*extend, *decode]
    decode_prefix = [len(r.tokens) - 1 for r in decode]
    prefix_lens = _ints([r.prefix_len for r in extend] + decode_prefix)
    ends = _ints([r.extend_end for r in extend] + [p + 1 for p in decode_prefix])
    input_ids = array("i")
    for request in extend:
        input_ids.extend(request.tokens[request.prefix_len : request.extend_end])
    input_ids.extend(r.tokens[-1] for r in decode)
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
    )


def _mode(extend: int, decode: int) -> ForwardMode:
    if not decode:
        return ForwardMode.EXTEND
    return ForwardMode.MIXED if extend else ForwardMode.DECODE


def _ints(values: list[int]) -> IntColumn:
    return np.array(values, dtype=np.int32)


def _bytes(values: Sequence[int]) -> ByteColumn:
    return np.array(values, dtype=np.uint8)
