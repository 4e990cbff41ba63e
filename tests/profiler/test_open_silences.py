"""Who is told to be silent at the end of a trace, and who is not."""

from engine.observer import EventKind
from engine.request import FinishReason
from profiler.open_silences import OpenSilences, open_silences
from tests.support.silent_tables import MS, silent_tables
from tests.support.traces import MemoryTrace, event


def test_those_whose_last_token_is_older_than_their_longest_gap() -> None:
    trace = MemoryTrace(silent_tables())
    assert open_silences(trace) == OpenSilences(2, "a", 70 * MS, "doc")


def test_a_silence_no_longer_than_a_gap_before_is_none() -> None:
    tables = silent_tables()
    tables["forwards"] = tables["forwards"][:3]
    tables["rows"] = tables["rows"][:5]
    tables["forwards"][2]["end_ns"] = tables["forwards"][2]["result_end_ns"] = 30 * MS
    assert open_silences(MemoryTrace(tables)) is None
    tables["forwards"][2]["result_end_ns"] += 1
    assert open_silences(MemoryTrace(tables)) == OpenSilences(2, "a", 10 * MS + 1, "doc")


def test_who_ended_or_queues_again_is_not_silent() -> None:
    tables = silent_tables()
    tables["events"] += [event(20 * MS, 0, EventKind.FINISH), event(30 * MS, 1, EventKind.RETRACT)]
    assert open_silences(MemoryTrace(tables)) is None


def test_without_unfinished_requests_or_knowledge_of_them_there_is_none() -> None:
    tables = silent_tables()
    assert open_silences(MemoryTrace(tables, meta={"provenance": "imported"})) is None
    assert open_silences(MemoryTrace({})) is None
    for request in tables["requests"]:
        request["finish_reason"] = FinishReason.LENGTH.value
    assert open_silences(MemoryTrace(tables)) is None
