"""What the timeline says in words: sums of a selection, the arrow's label, the walls that decodes hit."""

from typing import Any

import numpy as np
import polars as pl

from engine.batch import ForwardMode
from profiler.ledger.parts import Chunk, GapDetail
from profiler.timeline.tiles import Sums
from profiler.timeline.timeline import Timeline
from ui import words

__all__ = ["arrow", "sums", "walls"]

_MIXED = ForwardMode.MIXED.value
_NAMES_SHOWN = 3
_ALIKE = 0.5  # a silence of less than this much of the longest that ended with it is another one
_LOOKED_AT = 2000  # silences, the longest, that may be joined


def sums(sums: Sums) -> str:
    """A selection in one line; what the trace does not know is left a dash."""
    modes = ", ".join(f"{words.count(n)} {mode}" for mode, n in sums.forwards_by_mode.items() if n)
    return (
        f"{words.seconds((sums.end_ns - sums.start_ns) / 1e9)} · {words.plural(sums.forwards, 'forward')}"
        f"{f' ({modes})' if modes else ''} · {words.count(sums.extend_tokens)} prefill + "
        f"{words.count(sums.decode_tokens)} decode tokens · {words.count(sums.output_tokens)} given out · "
        f"device busy {words.seconds(None if sums.busy_ns is None else sums.busy_ns / 1e9)} · "
        f"{words.plural(sums.stalls, 'stall')}"
    )


def arrow(chunk: Chunk) -> str:
    """What the arrow from a stall points at: the chunk that took the largest part, and how much that is."""
    return f"costliest chunk: {_chunk(chunk)}, {words.seconds(chunk.in_gap_ns / 1e9)}"


def walls(timeline: Timeline, limit: int) -> list[dict[str, Any]]:
    """The longest silences that requests share: title, detail, and the interval that each covers.

    Requests whose late token came from the same forward share one. Silences in which decodes rode along are
    joined where one follows another.
    """
    joined = _join_rides(_shared(timeline.stalls))
    joined.sort(key=lambda wall: -wall["gap_ns"])
    return [_worded(wall, timeline) for wall in joined[:limit]]


def _shared(stalls: pl.DataFrame) -> list[dict[str, Any]]:
    """One row a forward that ended silences, those of the longest, in time order."""
    alike = pl.col("gap_ns") >= pl.col("gap_ns").max().over("own_forward_id") * _ALIKE
    return (
        stalls.filter(alike)
        .sort("gap_ns", descending=True)
        .group_by("own_forward_id", maintain_order=True)
        .agg(
            pl.col("rid", "token_index", "gap_ns", "own_mode", "others_ns", "own_start_ns").first(),
            pl.col("start_ns").min(),
            pl.col("end_ns").max(),
            pl.col("rid").n_unique().alias("requests"),
            pl.col("gap_ns").last().alias("shortest_ns"),
        )
        .head(_LOOKED_AT)
        .sort("start_ns")
        .with_columns(forwards=pl.concat_list("own_forward_id"))
        .to_dicts()
    )


def _join_rides(shared: list[dict[str, Any]]) -> list[dict[str, Any]]:
    joined: list[dict[str, Any]] = []
    for wall in shared:
        last = joined[-1] if joined else None
        if last is None or not (_rides(wall) and _rides(last)) or wall["start_ns"] > last["end_ns"]:
            joined.append(wall)
            continue
        joined[-1] = max(last, wall, key=lambda part: part["gap_ns"]) | {
            "start_ns": last["start_ns"],
            "end_ns": wall["end_ns"],
            "requests": max(last["requests"], wall["requests"]),
            "forwards": last["forwards"] + wall["forwards"],
            "shortest_ns": min(last["shortest_ns"], wall["shortest_ns"]),
        }
    return joined


def _rides(wall: dict[str, Any]) -> bool:
    return wall["own_mode"] == _MIXED and not wall["others_ns"]


def _worded(wall: dict[str, Any], timeline: Timeline) -> dict[str, Any]:
    detail = timeline.gap(wall["rid"], wall["token_index"])
    decodes = words.plural(wall["requests"], "decode")
    shortest, longest = (words.seconds(wall[key] / 1e9) for key in ("shortest_ns", "gap_ns"))
    end_ns = wall["end_ns"]
    if _rides(wall):
        every = longest if shortest == longest else f"{shortest} to {longest}"
        title, cause = f"a token every {every}", f"{_riders(wall, timeline)} along with each chunk"
    else:
        title, cause = f"{decodes} silent for {longest}", "" if detail is None else _cause(detail)
        end_ns = wall["own_start_ns"] or end_ns
    return {"start_ns": wall["start_ns"], "end_ns": end_ns, "title": title, "detail": cause}


def _riders(wall: dict[str, Any], timeline: Timeline) -> str:
    """How many decodes its forwards hold, fewest to most."""
    strip = timeline.strip(wall["start_ns"], wall["end_ns"], max(1, timeline.num_forwards))
    held = strip.decode_tokens[np.isin(strip.forward_id, wall["forwards"])]
    known = held[held > 0]
    fewest, most = (int(known.min()), int(known.max())) if len(known) else (wall["requests"],) * 2
    span = "" if fewest == most else f"{words.count(fewest)} to "
    return f"{span}{words.plural(most, 'decode')} {'rides' if most == 1 else 'ride'}"


def _cause(detail: GapDetail) -> str:
    if not detail.culprits:
        return ""
    names = [words.name(culprit.name) for culprit in detail.culprits[:_NAMES_SHOWN]]
    more = len(detail.culprits) - len(names)
    blockers = ", ".join(names) + (f" and {more} more" if more else "")
    forwards = len({chunk.forward_id for chunk in detail.chunks})
    if forwards == 1 and len(names) == 1 and detail.chunks[0].of == 1:
        return f"blocked by {blockers}: its whole prompt is one forward"
    return (
        f"{words.plural(forwards, 'prefill forward')} in a row: {blockers}"
        if forwards > 1
        else f"blocked by {blockers}"
    )


def _chunk(chunk: Chunk) -> str:
    number = f"{chunk.number}/{chunk.of}" if chunk.of is not None else f"{chunk.number}"
    return f"{words.name(chunk.name)} {number}"
