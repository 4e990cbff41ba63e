"""A trace's rows piece by piece in order of forwards, so that tens of millions need no memory."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from profiler.forward_positions import ForwardPositions
from profiler.forward_table import ForwardTable
from profiler.stable_order import stable_order
from profiler.tables import TraceLike, column_batches, integers

__all__ = ["ROW_COLUMNS", "RowBlock", "RowsOutOfOrder", "row_blocks"]

_UNKNOWN_CODE = 255
ROW_COLUMNS = (
    *("forward_id", "rid", "attempt", "role", "outcome"),
    *("prefix_len", "extend_len", "token_index"),
)
_SORTED_ROWS = 1 << 18  # of rows that had to be sorted, as many a block


class RowsOutOfOrder(Exception):
    """The rows of a trace do not lie in order of its forwards."""


@dataclass(frozen=True, slots=True)
class RowBlock:
    """(rows,) columns in order of forwards. An unknown number is -1, an unknown code 255."""

    forward: NDArray[np.int32]  # position in the `ForwardTable`
    rid: NDArray[np.uint32]
    attempt: NDArray[np.int32]
    role: NDArray[np.uint8]
    outcome: NDArray[np.uint8]
    prefix_len: NDArray[np.int32]
    extend_len: NDArray[np.int32]
    token_index: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.forward)

    def of(self, chosen: NDArray[np.bool_] | NDArray[np.int64] | slice) -> "RowBlock":
        """Some of them."""
        return RowBlock(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def then(self, other: "RowBlock") -> "RowBlock":
        """These and then others."""
        return _joined([self, other]) if len(self) else other


def row_blocks(trace: TraceLike, forwards: ForwardTable, *, sort: bool = False) -> Iterator[RowBlock]:
    """Rows of known request and forward. Raises RowsOutOfOrder midway, unless all are sorted first."""
    positions = ForwardPositions(forwards.forward_id)
    blocks = _ahead(_block(batch, positions) for batch in column_batches(trace, "rows", ROW_COLUMNS))
    if sort:
        yield from _sorted(list(blocks))
        return
    last = -1
    for block in blocks:
        if len(block):
            if block.forward[0] < last or (np.diff(block.forward) < 0).any():
                raise RowsOutOfOrder
            last = int(block.forward[-1])
            yield block


def _block(batch: pa.RecordBatch, positions: ForwardPositions) -> RowBlock:
    table = pa.Table.from_batches([batch])
    known = table.column("rid").is_valid().to_numpy() & table.column("forward_id").is_valid().to_numpy()
    forward = positions.of(integers(table, "forward_id", 0, np.uint32))
    block = RowBlock(
        forward=forward,
        rid=integers(table, "rid", 0, np.uint32),
        attempt=integers(table, "attempt", -1, np.int32),
        role=integers(table, "role", _UNKNOWN_CODE, np.uint8),
        outcome=integers(table, "outcome", _UNKNOWN_CODE, np.uint8),
        prefix_len=integers(table, "prefix_len", -1, np.int32),
        extend_len=integers(table, "extend_len", -1, np.int32),
        token_index=integers(table, "token_index", -1, np.int32),
    )
    known &= forward >= 0
    return block if known.all() else block.of(known)


def _ahead(blocks: Iterator[RowBlock]) -> Iterator[RowBlock]:
    """The same, each read while the one before it is worked on."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = reader.submit(next, blocks, None)
            yield block


def _sorted(blocks: list[RowBlock]) -> Iterator[RowBlock]:
    if blocks:
        rows = _joined(blocks)
        rows = rows.of(stable_order(rows.forward))
        for begin in range(0, len(rows), _SORTED_ROWS):
            yield rows.of(slice(begin, begin + _SORTED_ROWS))


def _joined(blocks: list[RowBlock]) -> RowBlock:
    return RowBlock(*(np.concatenate([getattr(b, field.name) for b in blocks]) for field in fields(RowBlock)))
