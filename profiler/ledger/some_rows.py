"""A trace of which only the rows that a question needs are read, as a long one has tens of millions."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from engine.batch import Outcome, Role
from profiler.ledger.row_blocks import ROW_COLUMNS
from profiler.tables import TraceLike, column_batches
from traces.schema import TABLES

__all__ = ["SomeRows"]


class SomeRows:
    """A `TraceLike` with the rows of some requests, or of all but some, and those of `SpecialRows`.

    Of `rows` it has the columns that ledgers ask for; the other tables are whole.
    """

    def __init__(self, trace: TraceLike, rids: Iterable[int], *, all_but: bool = False) -> None:
        self.trace = trace
        self._rids = pa.array(sorted(rids), pa.uint32())
        self._all_but = all_but

    @property
    def meta(self) -> Mapping[str, Any]:
        """The trace's."""
        return self.trace.meta

    @property
    def torn_bytes(self) -> int:
        """The trace's."""
        return self.trace.torn_bytes

    def table(self, name: str) -> pa.Table:
        """A table of the trace, `rows` with some of its rows."""
        if name != "rows":
            return self.trace.table(name)
        kept = (batch.filter(self._chosen(batch)) for batch in column_batches(self.trace, name, ROW_COLUMNS))
        schema = pa.schema([TABLES[name].field(column) for column in ROW_COLUMNS])
        return pa.Table.from_batches(_cast(kept, schema), schema=schema)

    def _chosen(self, batch: pa.RecordBatch) -> pa.Array:
        mine = pc.is_in(batch.column("rid"), value_set=self._rids)
        if self._all_but:
            mine = pc.invert(mine)
        special = pc.or_kleene(
            pc.less_equal(batch.column("role"), Role.LAST.value),
            pc.not_equal(batch.column("outcome"), Outcome.EMITTED.value),
        )
        return pc.or_(mine, pc.fill_null(special, True))


def _cast(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> list[pa.RecordBatch]:
    """Without what a trace's own schema says beyond the types."""
    return [pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in batches]
