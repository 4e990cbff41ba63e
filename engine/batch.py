"""One forward as flat columns: extend rows first, decode rows after them."""

from array import array
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from engine.request import Request

__all__ = ["MIDDLE_ROLES", "ForwardBatch", "ForwardMode", "Outcome", "Role", "StopReason"]

IntColumn = NDArray[np.int32]
ByteColumn = NDArray[np.uint8]


class ForwardMode(IntEnum):
    """What a forward computes; the order is that of the trace's enum."""

    EXTEND = 0
    DECODE = 1
    MIXED = 2


class Role(IntEnum):
    """What a row is to its request. FIRST and MIDDLE are middle chunks: they never emit."""

    WHOLE = 0
    FIRST = 1
    MIDDLE = 2
    LAST = 3
    DECODE = 4


MIDDLE_ROLES = (Role.FIRST, Role.MIDDLE)


class Outcome(IntEnum):
    """What became of a row's sample."""

    EMITTED = 0
    MIDDLE_DROPPED = 1
    FINISHED_DROPPED = 2
    ABORTED = 3
    RETRACTED = 4


class StopReason(IntEnum):
    """Why admission ended in a round."""

    QUEUE_EMPTY = 0
    TOTAL = 1
    CURRENT = 2
    INPUT = 3
    CHUNK = 4
    ALIGN = 5
    SLOTS = 6
    MAX_REQUESTS = 7
    BATCH_FULL = 8
    INTERVAL = 9
    ORDER = 10


@dataclass(slots=True, eq=False)
class ForwardBatch:
    """One forward pass over `rows` sequences and `sum(extend_lens)` tokens, ragged by `extend_lens`.

    A decode row has `extend_len` 1 and `prefix_len` = sequence length - 1. The KV slot of position
    `p` of row i is `pages[i][p // page_size] * page_size + p % page_size`; page 0 is never handed out.
    """

    forward_id: int
    mode: ForwardMode
    requests: list[Request]
    num_extend_seqs: int
    page_size: int
    rids: IntColumn
    attempts: IntColumn
    roles: ByteColumn
    prefix_lens: IntColumn
    extend_lens: IntColumn
    cached_tokens: IntColumn  # credited to the request by this row
    input_ids: IntColumn  # (tokens,), rows after one another; NO_TOKEN where the row awaits its token
    pages: (
        "list[array[int]]"  # a row's pages in order, at least ceil(seq_len / page_size); copy before keeping
    )
    # (rows,) the row of the forward before that samples this row's input; -1 where it is known. None: all are
    awaited_rows: IntColumn | None = None

    @property
    def num_rows(self) -> int:
        """Sequences in this forward."""
        return len(self.requests)

    @property
    def seq_lens(self) -> IntColumn:
        """(rows,) tokens each row attends to at its last position: prefix + extend."""
        return self.prefix_lens + self.extend_lens

    @property
    def is_middle(self) -> NDArray[np.bool_]:
        """(rows,) whether the row is a middle chunk, whose sample is dropped."""
        return np.isin(self.roles, MIDDLE_ROLES)
