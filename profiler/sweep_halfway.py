"""What a sweep that was broken off had measured, read from its trace."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from engine.batch import ForwardMode
from engine.errors import ConfigError
from profiler.sweep_cases import SweepCase
from profiler.sweep_order import Timings
from profiler.sweep_plan import SweepPlan
from profiler.tables import frame
from traces.reader import Trace

__all__ = ["Halfway", "halfway"]

CARRIED = ("clock_anchors", "resumed")  # lists in meta.json, each entry with its time
SETTING = (
    ("model", "name", "--model"),
    ("model", "num_params", "a model of so many parameters:"),
    ("model", "dtype", "--dtype"),
    ("model", "load_format", "--load-format"),
    ("hardware", "device", "--device"),
    ("hardware", "name", "the device"),
    ("hardware", "threads", "--threads"),
)
"""Where meta.json says what times depend on, and what a person calls it."""


@dataclass(frozen=True, slots=True)
class Halfway:
    """The part of a trace before the first request that had not ended; all of it when all had."""

    plan: SweepPlan
    cases: list[SweepCase]
    timings: Timings
    next_forward_id: int
    next_rid: int
    end_ns: int  # of the last thing that happened
    tables: Mapping[str, pa.Table]
    meta: Mapping[str, Any]
    path: Path

    def require_same(self, meta: Mapping[str, Any]) -> None:
        """Raise ConfigError, naming the option, where the trace is not of what `meta` describes."""
        for place, key, option in SETTING:
            before, now = (_object(about, place).get(key) for about in (self.meta, meta))
            if before != now:
                raise ConfigError(
                    f"--resume: {self.path} was recorded with {option} {before}, this is {now}: "
                    "give the same, or another -o"
                )
        if _plain(_assumed(self.meta)) != _plain(_assumed(meta)):
            raise ConfigError(
                f"--resume: {self.path} was recorded with other assumptions about the GPU: "
                "give the same, or another -o"
            )


def halfway(trace: Trace) -> Halfway:
    """Read how far a sweep came. ConfigError when the trace is none of a sweep."""
    told = trace.meta.get("workload")
    try:
        assert isinstance(told, Mapping)
        plan, cases = SweepPlan.from_json(told["sweep"])
    except (AssertionError, KeyError, TypeError, ValueError):
        raise ConfigError(
            f"{trace.path}: no trace of a sweep: give another -o, or leave out --resume"
        ) from None
    _require_sound(trace)
    cut = _first_open_forward(trace)
    tables = _before(trace, cut)
    return Halfway(
        plan=plan,
        cases=cases,
        timings=_timings(trace, cut, cases),
        next_forward_id=cut,
        next_rid=_next(tables["requests"], "rid"),
        end_ns=max((_latest(table) for table in tables.values()), default=0),
        tables=tables,
        meta=trace.meta,
        path=trace.path,
    )


def _assumed(meta: Mapping[str, Any]) -> tuple[Any, Any]:
    """What the times of a simulated sweep come from."""
    return meta.get("cost_model"), _object(meta, "hardware").get("peaks")


def _object(meta: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An entry of meta.json that holds others; empty where it is none."""
    told = meta.get(name)
    return told if isinstance(told, Mapping) else {}


def _require_sound(trace: Trace) -> None:
    """Raise ConfigError where what a resume carries over from meta.json is not as recording writes it."""
    for name in CARRIED:
        told = trace.meta.get(name, [])
        if not isinstance(told, list) or not all(
            isinstance(each, Mapping) and type(each.get("run_ns")) is int for each in told
        ):
            raise ConfigError(
                f"{trace.path}: {name} in meta.json is not as recording writes it: give another -o"
            )


def _plain(content: Any) -> str:
    """Content in one form, whether it was read from JSON or not."""
    return json.dumps(content, sort_keys=True)


def _first_open_forward(trace: Trace) -> int:
    """The first forward with a row of a request that had not ended, or of which a part was not written."""
    forwards = frame(trace, "forwards").select("forward_id")
    rows = frame(trace, "rows").select("forward_id", "rid")
    ended = frame(trace, "requests").filter(pl.col("finish_ns").is_not_null()).select("rid")
    broken = [
        rows.join(ended, on="rid", how="anti"),
        rows.join(forwards, on="forward_id", how="anti"),
        forwards.join(rows, on="forward_id", how="anti"),
        forwards.select(pl.col("forward_id").max() + 1),  # the one that would have come next
    ]
    first = pl.concat([each.select(pl.col("forward_id").cast(pl.Int64)) for each in broken]).min().item()
    return 0 if first is None else int(first)


def _before(trace: Trace, cut: int) -> dict[str, pa.Table]:
    """Of each table what belongs to forwards before `cut` and to the requests with a row in these.

    In the order in which a recorder writes, so that no claim is ever unmet.
    """
    rows = trace.table("rows")
    rids = pc.unique(rows.filter(pc.less(rows["forward_id"], cut))["rid"])
    tables = {}
    for name in ("rows", "pages", "forwards", "events", "requests", "kernels"):
        table = trace.table(name)
        ours = pc.is_in(table["rid"], rids) if name in ("events", "requests") else None
        early = None if name == "requests" else pc.less(table["forward_id"], cut)
        if name == "events":  # one of no request, an eviction, belongs to its forward
            kept = pc.or_(ours, pc.and_(pc.is_null(table["rid"]), pc.fill_null(early, False)))
        else:
            kept = early if ours is None else ours
        tables[name] = table.filter(kept)
    return tables


def _timings(trace: Trace, cut: int, cases: list[SweepCase]) -> Timings:
    """The measured forwards before `cut`, in their order; those of one visit of a decode batch together."""
    decodes = pl.col("mode") == ForwardMode.DECODE.value
    one_prompt = (pl.col("mode") == ForwardMode.EXTEND.value) & (pl.col("num_extend_seqs") == 1)
    first_row = frame(trace, "rows").group_by("forward_id").agg(rid=pl.col("rid").min())
    visits = (
        frame(trace, "forwards")
        .filter((pl.col("forward_id") < cut) & (decodes | one_prompt))
        .join(first_row, on="forward_id")
        .sort("forward_id")
        .with_columns(time_s=(pl.col("end_ns") - pl.col("start_ns")) / 1e9)
        .group_by("rid", maintain_order=True)
        .agg(
            decode=decodes.first(),
            rows=pl.col("decode_tokens").first(),
            context=pl.col("kv_tokens").first(),
            tokens=pl.col("extend_tokens").first(),
            prefix=pl.col("prefix_tokens").first(),
            cost_s=pl.col("time_s").sum(),
            median_s=pl.col("time_s").median(),
        )
    )
    timings, wanted = Timings(), set(cases)
    for visit in visits.iter_rows(named=True):
        case = SweepCase(visit["tokens"], visit["prefix"])
        if visit["decode"]:
            rows = visit["rows"]
            case = SweepCase(rows, visit["context"] // rows - 1, decode=True)
        if case in wanted:
            timings.note(case, visit["cost_s"], visit["median_s"])
    return timings


def _next(table: pa.Table, column: str) -> int:
    largest = pc.max(table[column]).as_py()
    return 0 if largest is None else int(largest) + 1


def _latest(table: pa.Table) -> int:
    """The latest time in a table."""
    times = [pc.max(table[name]).as_py() for name in table.column_names if name.endswith("_ns")]
    return max((int(time) for time in times if time is not None), default=0)
