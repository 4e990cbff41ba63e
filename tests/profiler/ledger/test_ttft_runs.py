"""Ledgers of first tokens on recorded runs: against the definition, instant by instant, and their sums."""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from engine.batch import ForwardMode, Outcome, Role, StopReason
from engine.errors import WorkloadError
from engine.limits import check_request
from engine.observer import EventKind
from engine.request import Request
from profiler.ledger.ttft import read_ttft
from profiler.ledger.ttft_parts import TtftKind, TtftLedger
from profiler.ledger.ttft_source import TtftSource
from profiler.ledger.ttft_totals import sum_ttft
from profiler.tables import TraceLike
from tests.support.counts import LONG
from tests.support.recorded import record_run, record_timed_run, rows_of
from tests.support.seeded_workloads import seeded_workload
from tests.support.traces import MemoryTrace

SEEDS = range(400) if LONG else (4, 21, 35, 40, 41, 80, 95, 98, 130, 145)  # these have every kind
Row = dict[str, Any]
Line = tuple[str, int | None, str | None, int | None]  # kind, forward, budget, behind whom


class ByInstant:
    """The definition of docs/metrics.md on plain rows, one instant at a time."""

    def __init__(self, tables: dict[str, list[Row]], rid: int) -> None:
        self.rid = rid
        request = next(r for r in tables["requests"] if r["rid"] == rid)
        by_id = {f["forward_id"]: f for f in tables["forwards"]}
        mine = [r for r in tables["rows"] if r["rid"] == rid]
        gave = [r for r in mine if r["outcome"] == Outcome.EMITTED.value and r["token_index"] == 0]
        self.start = request["arrival_ns"]
        self.end = by_id[gave[0]["forward_id"]]["result_end_ns"]
        rank = by_id[gave[0]["forward_id"]]["rank"]
        self.forwards = [f for f in tables["forwards"] if f["rank"] == rank]
        self.mine = {r["forward_id"]: r for r in mine if by_id[r["forward_id"]]["rank"] == rank}
        self.events = [e for e in tables["events"] if e["rid"] == rid]
        self.rounds = sorted(self.forwards, key=lambda f: (f["plan_start_ns"], f["start_ns"]))
        first = next(f for f in self.rounds if f["forward_id"] in self.mine)
        self.admitted = min(max(first["plan_start_ns"], self.start), self.end)

    def lines(self) -> Counter[Line]:
        """How long each line holds, with all chunks of a forward that it has a chunk in under one line."""
        times = {self.start, self.end, self.admitted, *(e["t_ns"] for e in self.events)}
        times |= {
            f[name] for f in self.forwards for name in f if name.endswith("_ns") and f[name] is not None
        }
        found: Counter[Line] = Counter()
        marks = sorted(t for t in times if self.start <= t <= self.end)
        for begin, end in pairwise(marks):
            line = self.queue(begin) if begin < self.admitted else self.prefill(begin)
            found[line] += end - begin
        return found

    def queue(self, t: int) -> Line:
        began = [f for f in self.rounds if self.start <= f["plan_start_ns"] <= t]
        while began and began[0]["stop_reason"] == StopReason.QUEUE_EMPTY.value:
            began.pop(0)
        on_device, host = self.device(t), self.host(t)
        if not began:
            if on_device is None and host == "IDLE":
                return "IDLE", None, None, None
            return "QUEUED", None if on_device is None else on_device["forward_id"], None, None
        f = began[-1]
        if f["stop_reason"] == StopReason.INTERVAL.value:
            return "DEFERRED", f["forward_id"], None, None
        if f["stop_reason"] is None and on_device is None and host == "IDLE":
            return "IDLE", None, None, None
        budget = None if f["stop_reason"] is None else StopReason(f["stop_reason"]).name
        behind = None if f["blocked_rid"] == self.rid else f["blocked_rid"]
        return "BLOCKED", f["forward_id"], budget, behind

    def prefill(self, t: int) -> Line:
        f = self.device(t)
        if f is None:
            return self.host(t), None, None, None
        row = self.mine.get(f["forward_id"])
        if row is not None:
            return "OWN" if row["role"] != Role.DECODE.value else "OWN_DECODE", f["forward_id"], None, None
        for event in self.events:
            if event["kind"] == EventKind.DEFER.value and event["forward_id"] == f["forward_id"]:
                return "DEFERRED", f["forward_id"], None, None
        if any(gave <= t < back for gave, back in self.spells()):
            return "RETRACTED", f["forward_id"], None, None
        kinds = {ForwardMode.EXTEND.value: "OTHERS_PREFILL", ForwardMode.MIXED.value: "OTHERS_MIXED"}
        return kinds.get(f["mode"], "OTHERS_DECODE"), f["forward_id"], None, None

    def spells(self) -> Iterator[tuple[int, int]]:
        for event in self.events:
            if event["kind"] in (EventKind.RETRACT.value, EventKind.PREEMPT.value):
                later = [
                    f["start_ns"]
                    for f in self.forwards
                    if f["start_ns"] >= event["t_ns"]
                    and f["forward_id"] in self.mine
                    and self.mine[f["forward_id"]]["attempt"] > event["attempt"]
                    and self.mine[f["forward_id"]]["role"] != Role.DECODE.value
                ]
                if self.admitted < event["t_ns"] <= self.end:
                    yield event["t_ns"], min(later, default=self.end)

    def device(self, t: int) -> Row | None:
        there = [f for f in self.forwards if f["start_ns"] <= t < f["end_ns"]]
        return min(there, key=lambda f: f["start_ns"], default=None)

    def host(self, t: int) -> str:
        edges = (("RESULT", "result"), ("LAUNCH", "launch"), ("PLAN", "plan"))
        there = [
            (f[f"{name}_start_ns"], kind)
            for kind, name in edges
            for f in self.forwards
            if f[f"{name}_start_ns"] <= t < f[f"{name}_end_ns"]
        ]
        if there:
            return min(there, key=lambda found: found[0])[1]
        waits = any(f["launch_end_ns"] <= t < f["result_start_ns"] for f in self.forwards)
        return "WAIT" if waits else "IDLE"


def lines_of(ledger: TtftLedger, with_chunk: set[int]) -> Counter[Line]:
    """The same of a ledger; `with_chunk` are the forwards that the request has a chunk in."""
    found: Counter[Line] = Counter()
    for part in ledger.parts:
        own = part.kind in (TtftKind.OWN_CHUNKS, TtftKind.OTHERS_PREFILL) and part.forward_id in with_chunk
        budget = part.budget.name if part.budget is not None else None
        found["OWN" if own else part.kind.name, part.forward_id, budget, part.behind_rid] += part.part_ns
    return found


def assert_shared_by_tokens(ledger: TtftLedger, rows: Sequence[Row]) -> None:
    """What is charged to chunks is charged to all of a forward, each in proportion, to the nanosecond."""
    tokens: dict[int, dict[int, int]] = {}
    for row in rows:
        if row["role"] != Role.DECODE.value:
            tokens.setdefault(row["forward_id"], {})[row["rid"]] = row["extend_len"]
    shared: dict[tuple[int | None, bool], Counter[int]] = {}
    queue = (TtftKind.QUEUED, TtftKind.BLOCKED)
    for part in ledger.parts:
        if part.chunk is not None or part.kind is TtftKind.OWN_CHUNKS:
            rid = ledger.rid if part.chunk is None else part.chunk.rid
            assert rid != ledger.rid or part.kind is TtftKind.OWN_CHUNKS
            shared.setdefault((part.forward_id, part.kind in queue), Counter())[rid] += part.part_ns
        elif part.forward_id in tokens:
            assert part.kind in (TtftKind.OWN_DECODE, TtftKind.UNTOLD)
    for (forward_id, _), shares in shared.items():
        assert forward_id is not None
        of = tokens[forward_id]
        whole = Fraction(shares.total(), sum(of.values()))
        pieces = 3  # of one interval at most, each rounded by itself
        for rid, weight in of.items():
            assert abs(shares[rid] - whole * weight) <= pieces


def assert_sums(source: TtftSource, ledgers: Sequence[TtftLedger]) -> None:
    """The totals are the sums of the ledgers."""
    totals = sum_ttft(source, top=None)
    kinds: Counter[TtftKind] = Counter()
    budgets: Counter[StopReason | None] = Counter()
    costs: Counter[int] = Counter()
    held: Counter[int] = Counter()
    behind: Counter[int] = Counter()
    for ledger in ledgers:
        for part in ledger.parts:
            kinds[part.kind] += part.part_ns
            if part.kind is TtftKind.BLOCKED:
                budgets[part.budget] += part.part_ns
                if part.behind_rid is not None:
                    behind[part.behind_rid] += part.part_ns
            if part.chunk is not None:
                costs[part.chunk.rid] += part.part_ns
                held[part.chunk.rid] += part.part_ns if part.kind is TtftKind.BLOCKED else 0
    assert totals.requests == len(ledgers)
    assert totals.waiting_ns == sum(totals.by_kind.values()) == sum(ledger.ttft_ns for ledger in ledgers)
    assert {kind: ns for kind, ns in totals.by_kind.items() if ns} == dict(kinds)
    assert totals.by_budget == dict(budgets)
    assert {cost.rid: cost.cost_ns for cost in totals.culprits} == dict(costs)
    assert {cost.rid: cost.budget_ns for cost in totals.culprits} == {rid: held[rid] for rid in costs}
    assert {line.rid: line.blocked_ns for line in totals.behind} == dict(behind)
    assert [worst.ttft_ns for worst in totals.worst] == sorted((x.ttft_ns for x in ledgers), reverse=True)
    by_rid = {ledger.rid: ledger for ledger in ledgers}
    for worst in totals.worst:
        parts = by_rid[worst.rid].parts
        for kind in TtftKind:
            assert worst.by_kind[kind] == sum(part.part_ns for part in parts if part.kind is kind)
        for reason, ns in worst.by_budget.items():
            blocked = [p for p in parts if p.kind is TtftKind.BLOCKED and p.budget is reason]
            assert ns == sum(part.part_ns for part in blocked)


def recorded(path: Path, seed: int) -> TraceLike:
    """A run of the workload of a seed, with arrivals between rounds or, of odd seeds, at any time."""
    config, todo = seeded_workload(seed)
    if seed % 2 == 0:
        return record_run(path, config, todo)[0]
    rng = Random(seed)
    requests = [arrival.request(rid, rng.randrange(150_000)) for rid, arrival in enumerate(todo)]
    return record_timed_run(path, config, [request for request in requests if served(request, config)])[0]


def served(request: Request, config: Any) -> bool:
    try:
        check_request(request, config)
    except WorkloadError:
        return False
    return True


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[TraceLike]:
    folder = tmp_path_factory.mktemp("runs")
    return [recorded(folder / f"{seed}.chunkscope", seed) for seed in SEEDS]


def tables_of(trace: TraceLike) -> dict[str, list[Row]]:
    return {name: rows_of(trace, name) for name in ("forwards", "rows", "requests", "events")}  # type: ignore[arg-type]


def ledgers_of(source: TtftSource) -> list[TtftLedger]:
    found = [read_ttft(source, rid) for rid in source.waits.rid.tolist()]
    return [ledger for ledger in found if ledger is not None]


def test_every_ledger_is_the_definitions_instant_by_instant(runs: list[TraceLike]) -> None:
    seen: set[TtftKind] = set()
    budgets: set[StopReason | None] = set()
    for trace in runs:
        tables, source = tables_of(trace), TtftSource.of(trace)
        ledgers = ledgers_of(source)
        for ledger in ledgers:
            wanted = ByInstant(tables, ledger.rid)
            assert (ledger.arrival_ns, ledger.first_token_ns) == (wanted.start, wanted.end)
            assert ledger.ttft_ns == sum(part.part_ns for part in ledger.parts)
            assert all(part.part_ns > 0 for part in ledger.parts)
            chunked = {i for i, row in wanted.mine.items() if row["role"] != Role.DECODE.value}
            assert lines_of(ledger, chunked) == wanted.lines()
            assert_shared_by_tokens(ledger, tables["rows"])
            seen.update(part.kind for part in ledger.parts)
            budgets.update(part.budget for part in ledger.parts if part.kind is TtftKind.BLOCKED)
        assert_sums(source, ledgers)
    assert {*TtftKind} - seen == {TtftKind.UNTOLD}
    assert budgets >= {StopReason.TOTAL, StopReason.CHUNK, StopReason.ALIGN, StopReason.INPUT}


def test_whatever_times_are_missing_parts_sum_to_the_whole(runs: list[TraceLike]) -> None:
    rng = Random(1)
    for trace in runs:
        tables = tables_of(trace)
        lost = rng.sample(sorted(tables["forwards"][0]), rng.randint(1, 6))
        lost = [name for name in lost if name not in ("forward_id", "rank", "result_end_ns")]
        share = rng.choice([0.02, 0.5, 1.0])
        for row in tables["forwards"]:
            row.update({name: None for name in lost if rng.random() < share})
        for row in tables["rows"]:
            row.update({name: None for name in ("attempt", "extend_len", "role") if rng.random() < 0.01})
        source = TtftSource.of(MemoryTrace(tables))
        ledgers = ledgers_of(source)
        for ledger in ledgers:
            assert ledger.ttft_ns == sum(part.part_ns for part in ledger.parts)
            assert all(part.part_ns > 0 for part in ledger.parts)
        assert_sums(source, ledgers)


def test_two_ranks_side_by_side_have_the_ledgers_of_each_alone(runs: list[TraceLike]) -> None:
    alone = [tables_of(trace) for trace in runs[:2]]
    ids = {"forward_id": 10_000, "rid": 1_000, "blocked_rid": 1_000, "rank": 1}
    both = {
        name: [*rows, *({**row, **_moved(row, ids)} for row in alone[1][name])]
        for name, rows in alone[0].items()
    }
    source = TtftSource.of(MemoryTrace(both))
    found = ledgers_of(source)
    wanted = [ledger for trace in runs[:2] for ledger in ledgers_of(TtftSource.of(trace))]
    assert [_summary(ledger) for ledger in found] == [_summary(ledger) for ledger in wanted]
    assert_sums(source, found)


def _moved(row: Row, ids: dict[str, int]) -> Row:
    return {name: row[name] + by for name, by in ids.items() if row.get(name) is not None}


def _summary(ledger: TtftLedger) -> tuple[int, list[tuple[TtftKind, int, StopReason | None]]]:
    return ledger.arrival_ns, [(part.kind, part.part_ns, part.budget) for part in ledger.parts]
