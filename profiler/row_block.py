"""The rows of many forwards as one block of columns, and the sums over each forward's rows.

Nothing here runs once a row: a row is an element of columns from the engine on.
"""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.batch import Role
from engine.observer import ForwardRecord
from traces.schema import TABLES

__all__ = ["Columns", "RowBlock", "Sums", "concatenated"]

Columns = dict[str, Any]  # by name: an array, a sequence that may hold None, or one value for every row
Sums = Mapping[str, NDArray[np.int64]]  # by name, (forwards,)

ROW_FIELDS = {
    "rid": "batch.rids",
    "attempt": "batch.attempts",
    "role": "batch.roles",
    "prefix_len": "batch.prefix_lens",
    "extend_len": "batch.extend_lens",
    "cached_tokens": "batch.cached_tokens",
    "inflight_after_plan": "plan.inflight_after_plan",
    "inflight_after_result": "inflight_after_result",
    "private_pages": "plan.private_pages",
    "outcome": "outcomes",
    "token_index": "token_index",
}

CHUNK_SUMS = (
    *("num_extend_seqs", "extend_tokens", "prefix_tokens"),
    *("pairs_prefix", "pairs_causal", "middle_chunks"),
)

_row_values = attrgetter(*ROW_FIELDS.values())
_types = {field.name: field.type for field in TABLES["rows"]}
_dtypes = {name: np.dtype(_types[name].to_pandas_dtype()) for name in ROW_FIELDS}


class RowBlock:
    """The rows of some forwards, one after another, as one block of columns; every forward has rows."""

    def __init__(self, records: Sequence[ForwardRecord]) -> None:
        self._counts = np.array([record.batch.num_rows for record in records], dtype=np.int64)
        assert self._counts.all(), "a forward has rows"
        self._forward_ids = np.array([record.batch.forward_id for record in records], dtype=np.uint32)
        self._page_size = records[0].batch.page_size  # one for all forwards of an engine
        parts = zip(*map(_row_values, records), strict=True)
        self._told = {name: self._joined(name, part) for name, part in zip(ROW_FIELDS, parts, strict=True)}

    def columns(self) -> Columns:
        """The trace's `rows` columns but rank; `token_index` is null where a row emitted nothing."""
        seq_len = self._told["prefix_len"] + self._told["extend_len"]
        token_index = self._told["token_index"]
        columns = {
            **self._told,
            "forward_id": np.repeat(self._forward_ids, self._counts),
            "seq_len": seq_len,
            "kv_pages": -(-seq_len // self._page_size),
            "token_index": pa.array(token_index, mask=token_index < 0),
        }
        return {
            name: pa.array(values) if isinstance(values, np.ndarray) else values
            for name, values in columns.items()
        }

    def sums(self) -> Sums:
        """Sums over each forward's rows under the trace's names, and `rows_with_logits`."""
        starts = np.cumsum(self._counts) - self._counts
        tokens = np.add.reduceat(self._told["extend_len"], starts, dtype=np.int64)
        kv_tokens = np.add.reduceat(self._told["prefix_len"], starts, dtype=np.int64) + tokens
        of_chunks = self._sums_of_chunks(starts)
        middle_chunks = of_chunks.pop("middle_chunks")
        return {
            **of_chunks,
            "num_decode_seqs": self._counts - of_chunks["num_extend_seqs"],
            "decode_tokens": tokens - of_chunks["extend_tokens"],
            "kv_tokens": kv_tokens,
            "pairs_decode": kv_tokens - of_chunks["prefix_tokens"] - of_chunks["extend_tokens"],
            "rows_with_logits": self._counts - middle_chunks,
        }

    def _sums_of_chunks(self, starts: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        """Sums over each forward's extend rows; most forwards have none."""
        sums = {name: np.zeros(len(starts), dtype=np.int64) for name in CHUNK_SUMS}
        chunks = np.flatnonzero(self._told["role"] != Role.DECODE)
        if len(chunks):
            role = self._told["role"][chunks]
            prefix = self._told["prefix_len"][chunks].astype(np.int64)
            extend = self._told["extend_len"][chunks].astype(np.int64)
            is_middle = (role == Role.FIRST) | (role == Role.MIDDLE)
            triangles = extend * (extend + 1) // 2
            terms = (np.ones_like(extend), extend, prefix, extend * prefix, triangles, is_middle)
            of_forward = np.searchsorted(starts, chunks, side="right") - 1
            for total, term in zip(sums.values(), terms, strict=True):
                np.add.at(total, of_forward, term)
        return sums

    def _joined(self, name: str, parts: Sequence[NDArray[Any] | None]) -> Any:
        """A column out of its parts; an Arrow array with nulls where some are unknown, None where all are."""
        dtype = _dtypes[name]
        known = [part for part in parts if part is not None]
        if len(known) == len(parts):
            source = known[0].dtype
            whole = np.frombuffer(
                b"".join([part.data for part in known]), source
            )  # numpy's own concatenation takes twice as long
            return whole.view(dtype) if source.itemsize == dtype.itemsize else whole.astype(dtype)
        if not known:
            return None
        return pa.concat_arrays(
            [
                pa.nulls(count, _types[name]) if part is None else pa.array(part.view(dtype))
                for part, count in zip(parts, self._counts.tolist(), strict=True)
            ]
        )


def concatenated(parts: Sequence[Sums]) -> Sums:
    """Sums of forwards one after another."""
    return parts[0] if len(parts) == 1 else {n: np.concatenate([part[n] for part in parts]) for n in parts[0]}
