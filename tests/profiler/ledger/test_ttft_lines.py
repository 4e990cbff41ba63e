"""The lines and the JSON of a first token's ledger."""

import json

from engine.batch import StopReason
from profiler.ledger.parts import Chunk
from profiler.ledger.ttft_document import ttft_document, ttft_totals_document
from profiler.ledger.ttft_lines import ttft_lines
from profiler.ledger.ttft_parts import (
    BlockedBehind,
    TtftCost,
    TtftKind,
    TtftLedger,
    TtftPart,
    TtftSum,
    TtftTotals,
)
from profiler.ledger.ttft_words import TTFT_WORDS

HELD = Chunk(7, "r7", 2, 3, 2_048, 4_096, 5, 100, 200, 40)
LEDGER = TtftLedger(
    rid=9,
    name="r9",
    arrival_ns=50,
    first_token_ns=250,
    parts=(
        TtftPart(TtftKind.QUEUED, 10, 4),
        TtftPart(TtftKind.BLOCKED, 40, 5, StopReason.CHUNK, 8, "r8", HELD),
        TtftPart(TtftKind.BLOCKED, 30, 6, StopReason.TOTAL),
        TtftPart(TtftKind.BLOCKED, 60, 7, StopReason.CHUNK, 8, "r8"),
        TtftPart(TtftKind.OWN_CHUNKS, 55, 8),
        TtftPart(TtftKind.WAIT, 5),
    ),
    split="tokens",
)
SUMS = {kind: LEDGER.sum_ns([kind]) for kind in TtftKind}
BUDGETS = {StopReason.CHUNK: 100, StopReason.TOTAL: 30, None: 0}
TOTALS = TtftTotals(
    requests=1,
    waiting_ns=200,
    by_kind=SUMS,
    by_budget=BUDGETS,
    culprits=(TtftCost(7, "r7", 40, 40), TtftCost(8, "r8", 4, 0)),
    behind=(BlockedBehind(8, "r8", 100),),
    worst=(TtftSum(9, "r9", 50, 250, SUMS, BUDGETS),),
    split="tokens",
)


def test_lines_are_kinds_and_what_ended_admission_behind_whom() -> None:
    lines = [(line.kind, line.part_ns, line.budget, line.behind) for line in ttft_lines(LEDGER)]
    assert lines == [
        (TtftKind.QUEUED, 10, None, None),
        (TtftKind.BLOCKED, 100, StopReason.CHUNK, "r8"),
        (TtftKind.BLOCKED, 30, StopReason.TOTAL, None),
        (TtftKind.OWN_CHUNKS, 55, None, None),
        (TtftKind.WAIT, 5, None, None),
    ]
    assert sum(line.part_ns for line in ttft_lines(LEDGER)) == LEDGER.ttft_ns
    assert [line.share for line in ttft_lines(LEDGER)] == [0.05, 0.5, 0.15, 0.275, 0.025]


def test_every_kind_has_words_of_its_own() -> None:
    assert set(TTFT_WORDS) == set(TtftKind)
    assert len(set(TTFT_WORDS.values())) == len(TtftKind)


def test_a_ledger_is_json_part_by_part() -> None:
    document = json.loads(json.dumps(ttft_document(LEDGER), allow_nan=False))
    assert document["ttft_ns"] == sum(part["part_ns"] for part in document["parts"]) == 200
    assert document["ttft_ns"] == sum(document["by_kind_ns"].values())
    assert document["parts"][1] == {
        "kind": "BLOCKED",
        "part_ns": 40,
        "forward_id": 5,
        "budget": "CHUNK",
        "behind": "r8",
        "chunk": {"rid": "r7", "number": 2, "of": 3},
    }
    assert document["holders"] == document["culprits"] == [{"rid": "r7", "cost_ns": 40}]


def test_totals_are_json_with_at_most_so_many_rows() -> None:
    document = json.loads(json.dumps(ttft_totals_document(TOTALS, top=1), allow_nan=False))
    assert document["waiting_ns"] == sum(document["by_kind_ns"].values()) == 200
    assert document["blocked_by_ns"] == {"CHUNK": 100, "TOTAL": 30, "NOT_TOLD": 0}
    assert document["culprits"] == [{"rid": "r7", "cost_ns": 40, "budget_ns": 40}]
    assert document["behind"] == [{"rid": "r8", "blocked_ns": 100}]
    assert document["worst"][0]["rid"] == "r9"
    assert document["worst"][0]["ttft_ns"] == 200
