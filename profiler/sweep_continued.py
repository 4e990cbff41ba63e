"""Lets a sweep that was broken off go on in one sound trace: what was recorded before comes first."""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from profiler.recorder import Writer
from traces.errors import TraceError
from traces.meta import read_meta
from traces.ownership import DirectoryLock
from traces.writer import TraceWriter

if TYPE_CHECKING:
    from profiler.sweep_halfway import Halfway

__all__ = ["continue_trace", "set_aside", "whole_trace"]

ASIDE = ".before-resume"
RESUMED = "resumed"  # in meta.json: where it went on; only there once all from before is in the trace
FORWARD_COLUMNS = ("forward_id", "step")


def set_aside(output: Path) -> Path:
    """Where the trace from before waits while it is taken over into a new one."""
    return output.with_name(f"{output.stem}{ASIDE}{output.suffix}")


def whole_trace(output: Path) -> Path:
    """The trace of a sweep, or what was set aside where a process ended while taking it over."""
    aside = set_aside(output)
    if not aside.exists():
        return output
    try:
        taken_over = RESUMED in read_meta(output)
    except TraceError:
        taken_over = False
    return output if taken_over else aside


def continue_trace(output: Path, meta: Mapping[str, Any], before: "Halfway") -> Writer:
    """A writer of a new trace at `output` that begins with `before`; the old trace goes when that is done.

    TraceError when it cannot be written, or when another process goes on with the same sweep; the old trace
    is then where it was.
    """
    lock = _taken(before)
    aside = set_aside(output)
    try:
        if before.path == aside:
            _remove_part(output)
        else:
            shutil.rmtree(aside, ignore_errors=True)
            before.path.rename(aside)
        try:
            writer = _taken_over(output, meta, before)
        except BaseException:
            with suppress(OSError):  # where it has to stay aside, the next resume finds it there
                aside.rename(output)
            raise
        shutil.rmtree(aside, ignore_errors=True)  # all of it is in the new trace
    except OSError as error:
        raise TraceError(f"{output}: cannot be written: {error.strerror or error}") from error
    finally:
        lock.release()
    return writer


def _taken(before: "Halfway") -> DirectoryLock:
    """The lock on the trace from before. TraceError where it is no longer what was read."""
    try:
        lock = DirectoryLock(before.path)
    except OSError:
        raise _another(before) from None
    try:
        same = lock.held and read_meta(before.path).get("writer") == before.meta.get("writer")
    except TraceError:
        same = False
    if not same:
        lock.release()
        raise _another(before)
    return lock


def _another(before: "Halfway") -> TraceError:
    return TraceError(f"{before.path}: another process goes on with it: try again when that has ended")


def _remove_part(output: Path) -> None:
    """Remove what a process that ended had taken over. TraceError where something else is there."""
    try:
        workload = read_meta(output).get("workload")
    except TraceError:
        workload = None  # a part may end before its meta.json
    if isinstance(workload, Mapping) and "sweep" not in workload:
        raise TraceError(f"{output}: is another trace, and {set_aside(output)} is to go on here: move either")
    shutil.rmtree(output, ignore_errors=True)


def _taken_over(output: Path, meta: Mapping[str, Any], before: "Halfway") -> Writer:
    """The writer, with all from before written. Leaves nothing at `output` when it fails."""
    new = TraceWriter(output, meta)
    try:
        writer = ContinuedWriter(new, before)
        went_on = {"forward_id": before.next_forward_id, "run_ns": before.end_ns}
        writer.update_meta({RESUMED: [*before.meta.get(RESUMED, ()), went_on]})
    except BaseException:
        shutil.rmtree(output, ignore_errors=True)
        raise
    return writer


class ContinuedWriter:
    """A recorder's writer that puts the part from before in front: forward ids go on where it stopped."""

    def __init__(self, writer: Writer, before: "Halfway") -> None:
        """Write the part from before at once."""
        self._writer = writer
        self._before = before
        for name, table in before.tables.items():
            columns = {column: table.column(column) for column in table.column_names}
            writer.append(name, columns, table.num_rows)

    def append(self, table: str, columns: Mapping[str, Any], num_rows: int) -> None:
        """Write rows with their forward ids moved."""
        moved = {name: self._moved(columns[name]) for name in FORWARD_COLUMNS if name in columns}
        self._writer.append(table, {**columns, **moved}, num_rows)

    def update_meta(self, updates: Mapping[str, Any]) -> None:
        """Replace top-level entries; clocks and what is known of columns are kept from before."""
        self._writer.update_meta(self._merged(updates))

    def close(self, meta_updates: Mapping[str, Any], *, clean_end: bool) -> None:
        """Seal the trace."""
        self._writer.close(self._merged(meta_updates), clean_end=clean_end)

    def _moved(self, ids: Any) -> Any:
        by = self._before.next_forward_id
        if ids is None:
            return None
        if isinstance(ids, (pa.Array, pa.ChunkedArray)):
            return pc.add(ids, pa.scalar(by, ids.type))
        return np.asarray(ids) + np.uint32(by)

    def _merged(self, updates: Mapping[str, Any]) -> dict[str, Any]:
        merged, before = dict(updates), self._before.meta
        if "clock_anchors" in merged:
            kept = [a for a in before.get("clock_anchors", ()) if a["run_ns"] <= self._before.end_ns]
            merged["clock_anchors"] = [*kept, *merged["clock_anchors"]]
        if "columns" in merged:
            merged["columns"] = _known_in_either(before.get("columns", {}), merged["columns"])
        return merged


def _known_in_either(
    before: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, str]]:
    """What is known of each table's columns, where only one part tells them too."""
    return {
        table: {
            name: before.get(table, {}).get(name, state) if state == "missing" else state
            for name, state in columns.items()
        }
        for table, columns in now.items()
    }
