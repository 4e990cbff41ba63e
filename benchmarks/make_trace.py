"""A sealed trace of as many forwards as wanted, of 8 rows each or as many as wanted.

    python benchmarks/make_trace.py FORWARDS -o T.chunkscope [--rows N] [--mixed] [--seed N]

The real scheduler runs an episode of at most 10,000 forwards on an invented device. The trace is that episode
again and again, with ids and times moved on; where FORWARDS is no multiple, a shorter episode comes last. No
KV outlives an episode.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# A script's own directory comes first on the path, and holds an engine.py of its own.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.episodes import ROWS, record_episode
from traces.reader import Trace
from traces.schema import TABLES
from traces.writer import TraceWriter

EPISODE_FORWARDS = 10_000
PAUSE_NS = 50_000_000  # between episodes
WRITER_KEYS = ("schema_version", "writer", "sealed", "clock_anchors")  # of meta: not the generated trace's
COUNTED_IN = {"forward_id": "forwards", "step": "forwards", "node": "nodes"}  # ids by what they count
COUNTED_IN |= dict.fromkeys(("rid", "blocked_rid", "chunked_rid", "peer_rid"), "requests")
NOT_TIMES = ("clock_error_ns",)


@dataclass(frozen=True)
class Offsets:
    """By how much a copy's ids and times are larger than those of its episode."""

    forwards: int = 0
    requests: int = 0
    nodes: int = 0
    time_ns: int = 0


def main() -> None:
    options = parse_options()
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        episodes = list(record_episodes(Path(folder), options))
        rows = write_trace(options.output, episodes, options)
    seconds = time.perf_counter() - begin
    size = sum(file.stat().st_size for file in options.output.rglob("*") if file.is_file())
    print(
        f"{options.output}: {options.forwards:,} forwards, {rows:,} rows, "
        f"{size / 2**20:,.0f} MiB, in {seconds:.1f} s"
    )


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("forwards", type=positive, metavar="FORWARDS")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="T.chunkscope")
    parser.add_argument(
        "--rows", type=positive, default=ROWS, metavar="N", help="mean of a forward (%(default)s)"
    )
    parser.add_argument("--mixed", action="store_true", help="let decode rows ride in prefill forwards")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def record_episodes(folder: Path, options: argparse.Namespace) -> Iterator[tuple[Trace, int]]:
    """Each episode and how often the trace has it."""
    copies, rest = divmod(options.forwards, EPISODE_FORWARDS)
    for forwards, times in ((EPISODE_FORWARDS, copies), (rest, 1)):
        if forwards and times:
            path = folder / f"{forwards}.chunkscope"
            episode = record_episode(
                path, forwards, mixed=options.mixed, seed=options.seed, rows=options.rows
            )
            yield episode, times


def write_trace(path: Path, episodes: list[tuple[Trace, int]], options: argparse.Namespace) -> int:
    """Write all copies of all episodes; returns the number of rows."""
    first = episodes[0][0].meta
    meta = {key: value for key, value in first.items() if key not in WRITER_KEYS}
    meta["generated"] = {"forwards": options.forwards, "episode_forwards": EPISODE_FORWARDS}
    rows, offsets = 0, Offsets()
    with TraceWriter(path, meta) as writer:
        for episode, times in episodes:
            length = length_of(episode)
            for _ in range(times):
                for name in TABLES:
                    append(writer, name, moved(episode.table(name), offsets))
                rows += len(episode.table("rows"))
                offsets = Offsets(*(a + b for a, b in zip(vars(offsets).values(), length, strict=True)))
        writer.close({"pool_at_end": episodes[-1][0].meta["pool_at_end"]})
    return rows


def length_of(episode: Trace) -> tuple[int, int, int, int]:
    """Forwards, requests, tree nodes and nanoseconds of an episode: the offsets of what follows it."""
    nodes = [pc.max(episode.table(name).column("node")).as_py() or 0 for name in ("events", "pages")]
    ends = [pc.max(episode.table("forwards").column("result_end_ns")).as_py()]
    ends += [pc.max(episode.table("requests").column("finish_ns")).as_py()]
    requests = len(episode.table("requests"))
    return len(episode.table("forwards")), requests, max(nodes) + 1, max(ends) + PAUSE_NS


def moved(table: pa.Table, offsets: Offsets) -> pa.Table:
    """A copy of an episode's table with ids and times moved on; null stays null."""
    for at, field in enumerate(table.schema):
        column = table.column(at)
        if field.name in COUNTED_IN:
            column = pc.add(column, pa.scalar(getattr(offsets, COUNTED_IN[field.name]), field.type))
        elif field.name.endswith("_ns") and field.name not in NOT_TIMES:
            column = pc.add(column, pa.scalar(offsets.time_ns, field.type))
        elif field.name == "prefix_hashes":
            column = other_hashes(column.combine_chunks(), offsets.requests)
        table = table.set_column(at, field, column)
    if "arrival_ns" in table.schema.names:
        names = pc.binary_join_element_wise("r", pc.cast(table.column("rid"), pa.string()), "")
        table = table.set_column(table.schema.get_field_index("name"), "name", names)
    return table


def other_hashes(lists: pa.ListArray, salt: int) -> pa.ListArray:
    """Prompts of different copies are different, those of one share what they shared."""
    hashes = pc.bit_wise_xor(lists.values, pa.scalar(salt * 0x9E3779B97F4A7C15 % 2**64, pa.uint64()))
    return pa.ListArray.from_arrays(lists.offsets, hashes)


def append(writer: TraceWriter, name: str, table: pa.Table) -> None:
    if len(table):
        writer.append(name, dict(zip(table.schema.names, table.columns, strict=True)), len(table))


if __name__ == "__main__":
    main()
