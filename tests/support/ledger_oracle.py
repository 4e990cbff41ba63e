"""The gap ledger again, from its definition alone and as plainly as it can be written.

Each gap is cut at every time that anything on its rank begins or ends; each slice asks all forwards near it
who holds it. Nothing of `profiler` is used.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import groupby, pairwise

from engine.arithmetic import ForwardSums
from tests.support.oracle_extra import alone_ns
from tests.support.oracle_tables import (
    CHUNKS,
    TIMES,
    Record,
    Tables,
    begins_ns,
    device_ns,
    holds,
    records,
    sums_of,
    touches,
)

__all__ = ["KINDS", "LedgerOracle", "OracleGap", "PartKey"]

PartKey = tuple[str, int | None, int | None]  # kind, forward, and the request whose chunk it is

KINDS = (
    *("OWN_DECODE", "OWN_OTHER", "RECOMPUTE", "OTHERS_PREFILL", "OTHERS_MIXED", "OTHERS_DECODE"),
    *("MIXED_EXTRA", "MIXED_UNKNOWN", "SIT_OUT", "RETRACTED", "DEFERRED", "PREEMPTED"),
    *("PLAN", "LAUNCH", "RESULT", "WAIT", "IDLE", "UNTOLD"),
)
_NOT_LATE = ("OWN_DECODE", "OWN_OTHER")
_HOST = (
    ("RESULT", "result_start_ns", "result_end_ns"),
    ("LAUNCH", "launch_start_ns", "launch_end_ns"),
    ("PLAN", "plan_start_ns", "plan_end_ns"),
)


@dataclass(frozen=True)
class OracleGap:
    """One gap; `parts` are its nanoseconds by kind, forward and the request that the chunk is of."""

    rid: int
    token_index: int
    rank: int
    start_ns: int
    end_ns: int
    own: int
    parts: Mapping[PartKey, int]

    @property
    def gap_ns(self) -> int:
        """Its length."""
        return self.end_ns - self.start_ns

    @cached_property
    def by_kind(self) -> dict[str, int]:
        """Sums of parts; every kind."""
        return {kind: sum(ns for key, ns in self.parts.items() if key[0] == kind) for kind in KINDS}

    @cached_property
    def late_ns(self) -> int:
        """Gap less its own decode forwards."""
        return self.gap_ns - sum(self.by_kind[kind] for kind in _NOT_LATE)

    @cached_property
    def cause(self) -> str:
        """The largest kind but its own decode forwards, the first of equals; where none is, OWN_DECODE."""
        if not self.late_ns:
            return "OWN_DECODE"
        others = [kind for kind in KINDS if kind not in _NOT_LATE]
        return max(others, key=lambda kind: (self.by_kind[kind], -KINDS.index(kind)))


class LedgerOracle:
    """The ledger of every gap of a trace; `seconds` is a cost model to split forwards by, else tokens do."""

    def __init__(self, trace: Tables, seconds: Callable[[ForwardSums], float] | None = None) -> None:
        self.forwards = records(trace, "forwards")
        self.rows = records(trace, "rows")
        self.events = records(trace, "events")
        self.watched = {row["forward_id"] for row in records(trace, "kernels")}
        self.seconds = seconds
        self.forward = {forward["forward_id"]: forward for forward in self.forwards}
        self.rows_of: dict[int, list[Record]] = defaultdict(list)
        for row in sorted((row for row in self.rows if row["rid"] is not None), key=lambda row: row["rid"]):
            self.rows_of[row["forward_id"]].append(row)

    @cached_property
    def gaps(self) -> list[OracleGap]:
        """Every gap, by request and token."""
        return [self._gap(*found) for found in self._spans()]

    def chunk_rows(self, forward_id: int) -> list[Record]:
        """A forward's extend rows, by request."""
        return [row for row in self.rows_of[forward_id] if row["role"] in CHUNKS]

    def mixed_extra_ns(self, forward: Record) -> int | None:
        """What a MIXED forward took longer than its decode rows alone would; None where that is not known."""
        rows, kv_tokens = forward["decode_tokens"], forward["pairs_decode"]
        if None in (rows, kv_tokens, forward["start_ns"], forward["end_ns"]) or self._slowed(forward):
            return None
        alone = alone_ns(rows, kv_tokens, self._decodes)
        taken_ns = device_ns(forward)
        return None if alone is None else min(max(taken_ns - alone, 0), taken_ns)

    def shares(self, total_ns: int, chunks: Sequence[Record]) -> dict[int, int]:
        """A forward's time shared among some of its chunks: by largest remainder, then by rid."""
        weights = self._weights(chunks)
        exact = [total_ns * weight / sum(weights) for weight in weights]
        whole = [int(share) for share in exact]
        by_remainder = sorted(range(len(chunks)), key=lambda i: (whole[i] - exact[i], chunks[i]["rid"]))
        for i in by_remainder[: total_ns - sum(whole)]:
            whole[i] += 1
        return {chunk["rid"]: ns for chunk, ns in zip(chunks, whole, strict=True)}

    def _slowed(self, forward: Record) -> bool:
        return forward["forward_id"] in self.watched and not self._all_watched

    def _spans(self) -> Iterator[tuple[int, int, int, int, int, int]]:
        """rid, token_index, rank, start, end and own forward of every gap."""
        tokens: dict[tuple[int, int], tuple[int, int, int]] = {}
        for row in self.rows:
            forward = self.forward.get(row["forward_id"])
            if forward is None or row["outcome"] != "EMITTED" or row["token_index"] is None:
                continue
            if row["rid"] is None or forward["result_end_ns"] is None:
                continue
            key = row["rid"], row["token_index"]
            token = forward["rank"], forward["result_end_ns"], forward["forward_id"]
            if key not in tokens or token[0] < tokens[key][0]:
                tokens[key] = token
        for rid, index in sorted(tokens):
            if (rid, index - 1) in tokens:
                rank, end_ns, own = tokens[rid, index]
                yield rid, index, rank, tokens[rid, index - 1][1], end_ns, own

    def _gap(self, rid: int, index: int, rank: int, start_ns: int, end_ns: int, own: int) -> OracleGap:
        here = [forward for forward in self.forwards if touches(forward, rank, start_ns, end_ns)]
        slices = [
            (self._holder(rid, rank, here, own, begin, end), end - begin)
            for begin, end in pairwise(sorted(self._edges(rid, here, start_ns, end_ns)))
        ]
        parts: dict[PartKey, int] = defaultdict(int)
        for (kind, forward_id), stretch in groupby(slices, key=lambda each: each[0]):
            for key, share in self._shared(rid, kind, forward_id, sum(ns for _, ns in stretch)):
                parts[key] += share
        nonzero = {key: ns for key, ns in parts.items() if ns}
        return OracleGap(rid, index, rank, start_ns, end_ns, own, nonzero)

    def _edges(self, rid: int, here: Sequence[Record], start_ns: int, end_ns: int) -> set[int]:
        """Every time in the gap at which anything may begin or end."""
        edges = {start_ns, end_ns}
        for forward in here:
            edges |= {forward[name] for name in TIMES}
            if forward["mode"] == "MIXED" and forward["end_ns"] is not None:
                edges.add(forward["end_ns"] - (self._extras[forward["forward_id"]] or 0))
        for spell in self._spells[rid]:
            edges |= set(spell[:2])
        return {edge for edge in edges if edge is not None and start_ns <= edge <= end_ns}

    def _holder(
        self, rid: int, rank: int, here: Sequence[Record], own: int, begin: int, end: int
    ) -> tuple[str, int | None]:
        """Whose a slice of a gap is."""
        device = [f for f in here if holds(f, "start_ns", "end_ns", begin, end)]
        if device:
            first = min(device, key=lambda forward: forward["start_ns"])  # of equals the first of the trace
            return self._device_kind(rid, first, own, begin, end), first["forward_id"]
        host = [
            (forward[start], kind)
            for kind, start, stop in _HOST
            for forward in here
            if holds(forward, start, stop, begin, end)
        ]
        if host:
            return min(host, key=lambda interval: interval[0])[1], None
        flying = [f for f in here if holds(f, "launch_end_ns", "result_start_ns", begin, end)]
        if any(None in (forward["start_ns"], forward["end_ns"]) for forward in flying):
            return "UNTOLD", None
        if flying:
            return "WAIT", None
        return ("IDLE" if self._complete[rank] else "UNTOLD"), None

    def _device_kind(self, rid: int, forward: Record, own: int, begin: int, end: int) -> str:
        forward_id, mode = forward["forward_id"], forward["mode"]
        mine = [row for row in self.rows_of[forward_id] if row["rid"] == rid]
        if mine and mine[0]["role"] in CHUNKS:
            return "BESIDE_OWN_CHUNK"
        if mine:
            extra_ns = self._extras[forward_id] if mode == "MIXED" else 0
            if extra_ns is None:
                return "MIXED_UNKNOWN"
            if begin >= forward["end_ns"] - extra_ns:
                return "MIXED_EXTRA"
            return "OWN_DECODE" if forward_id == own else "OWN_OTHER"
        for event, kind in (("SIT_OUT", "SIT_OUT"), ("DEFER", "DEFERRED")):
            if (rid, forward_id, event) in self._held_back:
                return kind
        gave = [why for since, until, why in self._spells[rid] if since <= begin and end <= until]
        if gave:
            return gave[-1]
        return {"EXTEND": "OTHERS_PREFILL", "MIXED": "OTHERS_MIXED"}.get(mode, "OTHERS_DECODE")

    def _shared(self, rid: int, kind: str, forward_id: int | None, ns: int) -> Iterator[tuple[PartKey, int]]:
        """A forward's time in a gap, charged to the requests whose chunks it computed."""
        chunks = [] if forward_id is None else self.chunk_rows(forward_id)
        if kind == "BESIDE_OWN_CHUNK":
            for culprit, share in self.shares(ns, chunks).items():
                mine = culprit == rid
                key = ("RECOMPUTE", forward_id, None) if mine else ("OTHERS_PREFILL", forward_id, culprit)
                yield key, share
        elif kind in _NOT_LATE or not chunks:
            yield (kind, forward_id, None), ns
        else:
            for culprit, share in self.shares(ns, chunks).items():
                yield (kind, forward_id, culprit), share

    def _weights(self, chunks: Sequence[Record]) -> list[Fraction]:
        weights = [Fraction(row["extend_len"] or 0) for row in chunks]
        if self.seconds is not None and len(self.chunk_rows(chunks[0]["forward_id"])) > 1:
            modelled = self._modelled(chunks[0]["forward_id"])
            told = [modelled[row["rid"]] for row in chunks]
            weights = told if any(told) else weights
        return weights if any(weights) else [Fraction(1)] * len(chunks)

    def _modelled(self, forward_id: int) -> dict[int, Fraction]:
        """By how much the forward takes longer with each chunk, in whole millionths of the sum of these."""
        rows = self.rows_of[forward_id]
        assert self.seconds is not None
        whole = self.seconds(sums_of(rows))
        added = {
            row["rid"]: max(0.0, whole - self.seconds(sums_of([other for other in rows if other is not row])))
            for row in self.chunk_rows(forward_id)
        }
        total = sum(added.values())
        return {rid: Fraction(round(1_000_000 * s / total) if total else 0) for rid, s in added.items()}

    @cached_property
    def _decodes(self) -> list[tuple[int, int, int]]:
        """Rows, KV tokens and time of the DECODE forwards that tell all three and that no profiler slowed."""
        told = [f for f in self.forwards if f["mode"] == "DECODE" and not self._slowed(f)]
        wanted = ("start_ns", "end_ns", "decode_tokens", "kv_tokens")
        told = [forward for forward in told if all(forward[name] is not None for name in wanted)]
        return [(forward["decode_tokens"], forward["kv_tokens"], device_ns(forward)) for forward in told]

    @cached_property
    def _all_watched(self) -> bool:
        return all(forward["forward_id"] in self.watched for forward in self.forwards)

    @cached_property
    def _complete(self) -> dict[int, bool]:
        """By rank: whether every forward has all its times."""
        complete = dict.fromkeys((forward["rank"] for forward in self.forwards), True)
        for forward in self.forwards:
            complete[forward["rank"]] &= all(forward[name] is not None for name in TIMES)
        return complete

    @cached_property
    def _extras(self) -> dict[int, int | None]:
        return {f["forward_id"]: self.mixed_extra_ns(f) for f in self.forwards if f["mode"] == "MIXED"}

    @cached_property
    def _held_back(self) -> set[tuple[int, int, str]]:
        return {(event["rid"], event["forward_id"], event["kind"]) for event in self.events}

    @cached_property
    def _spells(self) -> dict[int, list[tuple[int, int, str]]]:
        """By request: from giving its KV back to the start of its next chunk of a later attempt, and why."""
        spells: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
        whys = {"RETRACT": "RETRACTED", "PREEMPT": "PREEMPTED"}
        told = [event for event in self.events if event["kind"] in whys and event["t_ns"] is not None]
        for event in sorted(told, key=lambda event: event["t_ns"]):
            starts = [
                begins_ns(self.forward[row["forward_id"]])
                for row in self.rows
                if row["rid"] == event["rid"]
                and row["role"] in CHUNKS
                and (event["attempt"] is None or (row["attempt"] or 0) > event["attempt"])
            ]
            later = [start for start in starts if start is not None and start >= event["t_ns"]]
            until = min(later, default=2**63)
            spells[event["rid"]].append((event["t_ns"], until, whys[event["kind"]]))
        return spells
