"""Ledgers as JSON: whole nanoseconds, the user's names, no more rows than asked for."""

import json

import pytest

from profiler.ledger.culprit_costs import chunk_tolls
from profiler.ledger.document import culprit_document, report_document, request_document
from profiler.ledger.parts import PartKind
from profiler.ledger.request_ledgers import RequestLedgers
from tests.support.ledgers import EMPTY, FEW, LONG, WALL
from tests.support.three_runs import record_three_runs
from traces.reader import open_trace


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory: pytest.TempPathFactory) -> RequestLedgers:
    return RequestLedgers.of(
        open_trace(record_three_runs(tmp_path_factory.mktemp("runs"), FEW)["chunked"]), [0, LONG]
    )


def test_a_report_is_json_in_nanoseconds_under_the_users_names() -> None:
    document = json.loads(json.dumps(report_document(WALL, top=10), allow_nan=False))
    assert document["waiting_ns"] == sum(document["by_kind_ns"].values()) == 17_500_000_000
    assert document["by_kind_ns"].keys() == {kind.name for kind in PartKind}
    [wall, other] = document["groups"]
    assert wall == document["longest"]
    assert wall["rids"] == ["r1", "r2", "r3", "r4", "r5", "r6"]
    assert (wall["cause"], wall["lost_ns"]) == ("OTHERS_PREFILL", 6 * wall["late_ns"])
    assert wall["gap_ns"] == sum(wall["by_kind_ns"].values()) == wall["until_ns"] - wall["since_ns"]
    assert wall["culprits"][0] == {"rid": "r7", "device_ns": 1_140_000_000}
    assert other["rids"] == ["r7"]
    assert document["victims"][0]["rid"] == "r1"
    assert document["culprits"][1] == {
        "rid": "r8",
        "chunks": 1,
        "cost_ns": 2_590_000_000,
        "longest_ns": 315_000_000,
        "device_ns": None,
    }
    assert document["chunks"][2] == {
        "rid": "r8",
        "forward_id": 51,
        "number": 1,
        "of": None,
        "prefix_len": 0,
        "extend_end": 2_048,
        "device_ns": None,
        "cost_ns": 2_590_000_000,
        "gaps": 7,
    }
    over_time = document["over_time"]
    assert len(over_time["edges_ns"]) == len(over_time["waiting_ns"]["IDLE"]) + 1
    assert sum(sum(spans) for spans in over_time["waiting_ns"].values()) == document["waiting_ns"]


def test_lists_have_at_most_so_many_rows() -> None:
    document = report_document(WALL, top=1)
    assert [len(document[name]) for name in ("groups", "victims", "culprits", "chunks")] == [1, 1, 1, 1]
    assert document["waiting_ns"] == WALL.waiting_ns


def test_nothing_to_report_is_a_report() -> None:
    document = report_document(EMPTY, top=10)
    assert (document["gaps"], document["longest"], document["groups"]) == (0, None, [])


def test_a_request_has_its_sums_and_its_worst_gaps_part_by_part(ledgers: RequestLedgers) -> None:
    gaps = ledgers.gaps_of(0)
    document = json.loads(json.dumps(request_document("decode-1", gaps, top=2), allow_nan=False))
    assert (document["rid"], document["gaps"]) == ("decode-1", len(gaps))
    assert document["waiting_ns"] == sum(document["by_kind_ns"].values()) == sum(g.gap_ns for g in gaps)
    assert 0 < document["late_ns"] < document["waiting_ns"]
    assert len(document["worst"]) == 2
    for gap in document["worst"]:
        assert sum(part["part_ns"] for part in gap["parts"]) == gap["gap_ns"]
        by_name = {culprit["rid"]: culprit["device_ns"] for culprit in gap["culprits"]}
        charged = [part for part in gap["parts"] if part["chunk"] is not None]
        assert sum(part["part_ns"] for part in charged) == sum(by_name.values())
        assert {part["chunk"]["rid"] for part in charged} == set(by_name)


def test_a_culprits_costs_sum_up_and_down(ledgers: RequestLedgers) -> None:
    tolls = chunk_tolls(ledgers.gaps_behind(LONG), LONG)
    document = json.loads(json.dumps(culprit_document("long-1", tolls, top=None), allow_nan=False))
    assert document["cost_ns"] == sum(chunk["cost_ns"] for chunk in document["chunks"])
    assert document["cost_ns"] == sum(victim["cost_ns"] for victim in document["victims"])
    for chunk in document["chunks"]:
        assert chunk["rid"] == "long-1"
        assert chunk["cost_ns"] == sum(victim["cost_ns"] for victim in chunk["victims"]) > 0
    assert [chunk["number"] for chunk in document["chunks"]] == list(range(1, len(tolls) + 1))
    fewer = culprit_document("long-1", tolls, top=2)
    assert len(fewer["chunks"]) == 2
    assert fewer["cost_ns"] == document["cost_ns"]
