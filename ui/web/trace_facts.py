"""What a trace says of itself, as groups of names and values, and what its tables hold."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from profiler.timeline.timeline import Timeline
from traces.layout import stream_label
from traces.schema import TABLES
from traces.seal_index import read_index
from ui.web.runs import status
from ui.words import UNKNOWN, clipped, count

__all__ = ["STATES", "TableFacts", "column_state", "facts", "table_facts"]

STATES = ("measured", "derived", "missing", "not told")
_MOST_CHARS = 300  # of a value; a command line with paths is readable at that
_APART = ("columns", "sealed", "writer", "clock_anchors", "crc32")  # said in words, or of no use to a reader
_FIRST = ("provenance", "schema_version", "command", "seed")

Group = tuple[str, list[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class TableFacts:
    """One table: rows of all ranks, bytes on disk, and its columns by state."""

    name: str
    rows: int
    size_bytes: int
    columns: dict[str, str]  # state by column

    @property
    def states(self) -> Counter[str]:
        """How many columns are in each state."""
        return Counter(self.columns.values())


def facts(timeline: Timeline) -> list[Group]:
    """Groups of a name and what is known of it: the trace, then each part of its meta.json."""
    trace = timeline.trace
    meta = {key: value for key, value in trace.meta.items() if key not in _APART}
    parts = {key: value for key, value in meta.items() if isinstance(value, Mapping)}
    single = {key: value for key, value in meta.items() if key not in parts}
    ordered = [*(key for key in _FIRST if key in single), *(key for key in single if key not in _FIRST)]
    own = [
        ("path", clipped(str(trace.path), _MOST_CHARS)),
        ("state", str(status(timeline))),
        ("torn bytes", count(trace.torn_bytes)),
        ("rank" if len(trace.ranks) == 1 else "ranks", ", ".join(map(str, trace.ranks)) or "none"),
        ("forwards with a time", count(timeline.num_forwards)),
        ("requests", count(timeline.num_requests)),
    ]
    return [
        ("trace", [*own, *((key, _value(single[key])) for key in ordered)]),
        *((key, list(_flat(parts[key]))) for key in parts),
    ]


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Names and values, those of an object within under its name and a dot."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", _value(value)


def table_facts(timeline: Timeline) -> list[TableFacts]:
    """Every table of the schema, also those that the trace holds nothing of."""
    rows = _rows(timeline)
    return [
        TableFacts(
            name,
            rows.get(name, 0),
            sum(_sizes(timeline, name)),
            {column: column_state(timeline.trace.meta, name, column) for column in schema.names},
        )
        for name, schema in TABLES.items()
    ]


def column_state(meta: Mapping[str, Any], table: str, column: str) -> str:
    """Measured, derived or missing, as meta.json has it; "not told" where it says nothing."""
    state: str = meta.get("columns", {}).get(table, {}).get(column, STATES[-1])
    return state


def _rows(timeline: Timeline) -> Counter[str]:
    """Rows by table; of a sealed trace from its index, so that no table has to be read for it."""
    trace = timeline.trace
    rows: Counter[str] = Counter()
    if not trace.sealed:
        return Counter({name: trace.table(name).num_rows for name in TABLES})
    for file in read_index(trace.path, str(trace.meta["sealed"]["index_crc32"])).files:
        rows[file.table] += sum(batch.rows for batch in file.batches)
    rows["requests"] = timeline.num_requests  # the file holds several versions of each
    return rows


def _sizes(timeline: Timeline, table: str) -> Iterable[int]:
    for rank in timeline.trace.ranks:
        file = timeline.path / stream_label(rank, table)
        if file.exists():
            yield file.stat().st_size


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return count(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return clipped(" ".join(map(str, value)), _MOST_CHARS)
    return UNKNOWN if value is None else clipped(str(value), _MOST_CHARS)
