"""Prefill-first starvation: one prefill forward after another while decodes emit nothing."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.batch import ForwardMode, Role
from profiler.findings.build import build, median
from profiler.findings.finding import Finding, FindingKind, Severity
from profiler.findings.mends import let_decodes_ride
from profiler.findings.run import Run
from profiler.findings.words import named
from profiler.wording import count, duration, plural

__all__ = ["starvation"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Bursts:
    """(bursts,) prefill forwards in a row on one rank, by position; their times are 0 where unknown."""

    first: Ints
    last: Ints
    device_ns: Ints
    lost_ns: Ints

    @property
    def forwards(self) -> Ints:
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class _Worst:
    """The burst that took longest."""

    ids: pl.Series
    device_ns: int
    silent_ns: int | None
    prompts: list[int]  # whose ran, most tokens first
    waited: list[int]  # requests that decoded before and after it; empty where rows do not tell
    waiting: int  # decodes that waited throughout
    joined: int  # that waited for a part of it
    at_ns: int | None


def starvation(run: Run) -> Finding | None:
    """The finding, with the longest burst as its evidence; None where no burst is long enough."""
    table, limits = run.forwards, run.thresholds
    starved = table.select(_starved().fill_null(False)).to_series()
    if not starved.any():
        return None
    timed = not table.filter(starved)["device_ns"].null_count()
    decodes = table.filter(pl.col("mode") == ForwardMode.DECODE.value)["device_ns"]
    decode_ns = median(decodes) if timed else None
    bursts = _bursts(starved.to_numpy(), table)
    long = bursts.forwards >= limits.starvation_forwards
    if decode_ns:
        long |= bursts.device_ns >= limits.starvation_ratio * decode_ns
    if not long.any():
        return None
    ranked = np.lexsort((bursts.first, -bursts.forwards, -bursts.device_ns))
    worst = _worst(run, bursts, int(ranked[long[ranked]][0]))
    lost_ns = int(bursts.lost_ns[long].sum()) if timed else None
    return _told(run, worst, int(long.sum()), lost_ns, decode_ns)


def _starved() -> pl.Expr:
    """Prompts alone ran while others decoded, and not because these lacked KV to ride along."""
    alone = pl.col("mode") == ForwardMode.EXTEND.value
    return alone & (pl.col("waiting_decodes") > 0) & ~pl.col("sat_out")


def _bursts(starved: NDArray[np.bool_], table: pl.DataFrame) -> _Bursts:
    at = np.flatnonzero(starved)
    rank = table["rank"].to_numpy()[at]
    begins = np.flatnonzero((np.diff(at, prepend=-2) != 1) | (np.diff(rank, prepend=rank[0]) != 0))
    device_ns = table["device_ns"].fill_null(0).to_numpy()[at]
    absent = table["waiting_decodes"].fill_null(0).to_numpy()[at]
    return _Bursts(
        first=at[begins],
        last=at[np.append(begins[1:], len(at)) - 1],
        device_ns=np.add.reduceat(device_ns, begins),
        lost_ns=np.add.reduceat(device_ns * absent, begins),
    )


def _worst(run: Run, bursts: _Bursts, worst: int) -> _Worst:
    table, first, last = run.forwards, int(bursts.first[worst]), int(bursts.last[worst])
    ids, absent = table["forward_id"][first : last + 1], table["waiting_decodes"][first : last + 1]
    follows = _decodes_after(table, last)
    prompts, waited = _who(run, ids, None if follows is None else int(table["forward_id"][follows]))
    waiting = len(waited) or int(absent.to_numpy().min())
    silence = _silence(table, first, last, follows)
    return _Worst(
        ids=ids,
        device_ns=int(bursts.device_ns[worst]),
        silent_ns=None if silence is None else silence[1] - silence[0],
        prompts=prompts,
        waited=waited,
        waiting=waiting,
        joined=max(0, int(absent.to_numpy().max()) - waiting),
        at_ns=table["start_ns"][first] if silence is None else silence[0],
    )


def _decodes_after(table: pl.DataFrame, last: int) -> int | None:
    """The forward that follows a burst on its rank, if it has decode rows."""
    after = last + 1
    if after == table.height or table["rank"][after] != table["rank"][last]:
        return None
    return after if table["decode_tokens"][after] else None


def _silence(table: pl.DataFrame, first: int, last: int, follows: int | None) -> tuple[int, int] | None:
    """From the result before the burst to that of the decodes' next forward, or else to the burst's end."""
    begin, end = table["start_ns"][first], table["end_ns"][last]
    if first and table["rank"][first - 1] == table["rank"][first]:
        begin = table["result_end_ns"][first - 1]
    if follows is not None:
        end = table["result_end_ns"][follows]
    return None if begin is None or end is None else (int(begin), int(end))


def _who(run: Run, ids: pl.Series, follows: int | None) -> tuple[list[int], list[int]]:
    """Whose prompts ran, most tokens first, and who waited throughout: nobody where rows do not tell."""
    rows = run.rows(int(ids[0]), int(ids[-1]) if follows is None else follows)
    extends = rows.filter(pl.col("forward_id").is_in(ids.implode()), pl.col("role") != Role.DECODE.value)
    by_tokens = extends.group_by("rid").agg(pl.col("extend_len").sum())
    prompts: list[int] = by_tokens.sort("extend_len", "rid", descending=[True, False])["rid"].to_list()
    if follows is None:
        return prompts, []
    after = rows.filter(pl.col("forward_id") == follows, pl.col("role") == Role.DECODE.value)
    waited: list[int] = after.filter(~pl.col("rid").is_in(prompts))["rid"].sort().to_list()
    return prompts, waited


def _told(run: Run, worst: _Worst, bursts: int, lost_ns: int | None, decode_ns: float | None) -> Finding:
    limits, forwards = run.thresholds, len(worst.ids)
    ratio = worst.device_ns / decode_ns if decode_ns else None
    by_forwards = forwards >= limits.starvation_forwards
    name = "starvation_forwards" if by_forwards else "starvation_ratio"
    return build(
        FindingKind.PREFILL_FIRST_STARVATION,
        Severity.BAD,
        "Prefill-first starvation",
        _sentence(run, worst, bursts),
        evidence=(
            _in_a_row(worst.ids),
            None if ratio is None else f"the time of {count(round(ratio))} decode forwards",
            f"threshold {limits.starvation_forwards} in a row or the time of {limits.starvation_ratio:g}",
        ),
        numbers={
            "bursts": bursts,
            "forwards": forwards,
            "waiting_decodes": worst.waiting,
            "joined_decodes": worst.joined,
            "silent_ns": worst.silent_ns,
            "device_ns": None if lost_ns is None else worst.device_ns,
            "decode_forwards": ratio,
        },
        threshold=(name, getattr(limits, name)),
        forward_ids=worst.ids,
        rids=worst.waited or worst.prompts,
        mend=let_decodes_ride(run, forwards),
        at_ns=worst.at_ns,
        lost_ns=lost_ns,
    )


def _in_a_row(ids: pl.Series) -> str:
    if len(ids) == 1:
        return f"prefill forward {ids[0]} alone"
    return f"{count(len(ids))} prefill forwards in a row ({ids[0]} to {ids[-1]})"


def _sentence(run: Run, worst: _Worst, bursts: int) -> str:
    how_long = "" if worst.silent_ns is None else f" for {duration(worst.silent_ns / 1e9)}"
    joined = f", and {count(worst.joined)} more for a part of it," if worst.joined else ""
    whose = f" of {named(run.names(worst.prompts))}" if worst.prompts else ""
    again = "" if bursts == 1 else f" It is the longest of {count(bursts)} such times."
    return (
        f"{plural(worst.waiting, 'decode')} emitted nothing{how_long}{joined} during prefill{whose}.{again}"
    )
