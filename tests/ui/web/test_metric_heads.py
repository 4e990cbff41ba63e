"""Every head and label of a number on the web pages names its entry in docs/metrics.md."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from dash import html
from dash.development.base_component import Component

from profiler.advice import Advice
from profiler.price_rows import Limits
from profiler.timeline.timeline import Timeline, open_timeline
from tests.support.recorded import TINY
from tests.support.three_runs import record_three_runs
from traces.meta import update_sealed_meta
from ui.metric_entries import ENTRIES, explained
from ui.palette import LIGHT
from ui.web.checks import Checks
from ui.web.gap_panel import gap_panel
from ui.web.kpi_table import kpi_table
from ui.web.metric_heads import head, name_head
from ui.web.pages import saturation
from ui.web.pages.saturation_advice import advice_parts
from ui.web.pages.saturation_evidence import EvidenceOf
from ui.web.pages.saturation_roof import roof_parts
from ui.web.pages.saturation_view import parts_of
from ui.web.places import worst_gap
from ui.web.rule_table import rule_table
from ui.web.runs import make_runs
from ui.web.sums_panel import sums_panel

NAMES = {"run", "table", "A", "B"}


@pytest.fixture(scope="module")
def timelines(tmp_path_factory: pytest.TempPathFactory) -> list[Timeline]:
    paths = record_three_runs(tmp_path_factory.mktemp("heads"))
    return [open_timeline(paths[name]) for name in ("whole", "mixed")]


def walk(parts: object) -> Iterator[Any]:
    if isinstance(parts, Component):
        yield parts
        yield from walk(getattr(parts, "children", None))
    elif isinstance(parts, (list, tuple)):
        for part in parts:
            yield from walk(part)


def check(parts: object, names: set[str] = NAMES) -> int:
    """Columns of numbers, each with its entry; the others name what a row is of."""
    numbers = 0
    for part in walk(parts):
        if not isinstance(part, html.Th) or getattr(part, "scope", None) != "col":
            continue
        key = getattr(part, "data-metric", None)
        if key is None:
            assert part.className == "names"
            assert part.children in names
            continue
        assert part.title == explained(key)
        numbers += 1
    return numbers


def check_drawn(table: Any, names: set[str]) -> int:
    """The same of a table that the page's script draws."""
    heads = table["heads"]
    assert all(head["title"] == explained(head["metric"]) for head in heads if "metric" in head)
    assert {head["text"] for head in heads if "metric" not in head} <= names
    return len([head for head in heads if "metric" in head])


def keys(parts: object) -> set[str]:
    return {key for part in walk(parts) if (key := getattr(part, "data-metric", None))}


def test_the_tables_of_compare(timelines: list[Timeline]) -> None:
    runs = make_runs(timelines)
    assert check(kpi_table(runs)) == 9
    sums = sums_panel(runs, (0, 10**9))
    assert check(sums) == 0
    labels = [part for part in walk(sums) if isinstance(part, html.Th) and part.scope == "row"]
    assert len(labels) == 7
    assert {getattr(label, "data-metric") for label in labels} <= set(ENTRIES)


def test_the_parts_of_a_gap(timelines: list[Timeline]) -> None:
    runs = make_runs(timelines)
    index, gap = worst_gap(runs)
    assert keys(gap_panel(runs, runs[index], gap)) == {"gap", "gap_ledger", "chunk_cost"}


def test_the_tables_of_a_trace(timelines: list[Timeline]) -> None:
    from ui.web.pages.trace import _provenance, _tables
    from ui.web.trace_facts import table_facts

    tables = table_facts(timelines[0])
    assert check(_tables(tables)) == 2
    assert keys(_provenance(tables)) == {"column_states"}
    assert check(rule_table(Checks().ask(timelines[0]))) == 0


def test_heads_say_what_their_numbers_are() -> None:
    made: Any = head("itl_p99", "ITL p99")
    assert made.title.endswith("docs/metrics.md, Latency: p99")
    label: Any = name_head("run")
    assert label.className == "names"


def test_the_tables_of_saturation(timelines: list[Timeline]) -> None:
    evidence_of = EvidenceOf(timelines)
    evidence = evidence_of(1)
    parts = {**parts_of(evidence, LIGHT), **roof_parts(evidence.board, "forwards", "t", LIGHT)}
    names = {"forward", "operator", "reason", "convention", "term", "source", "forwards of", "policy"}
    assert check(parts["sizes"], names) == 8
    assert check(parts["modes"], names) == 7
    assert check(parts["forwards"], names) == 6
    assert check(parts["conventions"], names) == 2
    rows = [part for part in walk(parts["basis"]) if isinstance(part, html.Dt)]
    assert {row.children for row in rows} >= {"layout", "prefix", "model"}
    assert [row.children for row in rows if getattr(row, "data-metric", None) not in ENTRIES] == []
    layout = saturation.layout(timelines, "light")
    assert keys(layout) == {
        *("longest_wait", "price_itl_p99", "ttft_p99", "riding", "saturation_point", "residual"),
        *("price_list", "roof_share", "activation_bytes", "decode_point", "flops_total"),
        *("saturation_interval", "margins", "ceilings"),
    }


def test_the_tables_of_a_price_list_and_a_model(tmp_path: Path) -> None:
    path = record_three_runs(tmp_path)["mixed"]
    update_sealed_meta(path, {"model": {**asdict(TINY), "dtype": "float32"}})
    evidence_of = EvidenceOf([open_timeline(path)])
    evidence, advice = evidence_of(0), evidence_of.advise(0, Limits())
    assert isinstance(advice, Advice)
    names = {"policy", "term", "source", "forwards of"}
    parts = {**parts_of(evidence, LIGHT), **advice_parts(evidence, advice, None)}
    assert keys(parts["advice"]) == {"choice", "advice_point", "longest_wait", "ttft_long"}
    terms = [part for part in walk(parts["advice-basis"]) if isinstance(part, html.Dt)]
    assert [term.children for term in terms if getattr(term, "data-metric", None) not in ENTRIES] == []
    limited = advice_parts(evidence, advice.under(Limits(itl_max_s=1e6)), None)
    assert keys(limited["advice"]) == keys(parts["advice"]) | {"margins"}
    assert check_drawn(parts["prices-data"], names) == 10
    assert check_drawn(parts["all-prices-data"], names) == 13
    assert check(parts["terms"], names) == 4 + 4
    assert check(parts["memory-table"], names) == 5
