"""Where the numbers of the Overview page come from: the run's source, model and tables, and its checks."""

from collections.abc import Mapping
from typing import Any

from dash import html
from dash.development.base_component import Component

from profiler.invariants.report import Status
from profiler.overview import Overview
from profiler.timeline.timeline import Timeline
from ui.si_words import dtype_word
from ui.web.checks import Check
from ui.web.names import shown
from ui.web.trace_facts import table_facts
from ui.words import UNKNOWN, count

__all__ = ["check_words", "not_checked", "provenance_rows"]

_HEADS = ("provenance", "model", "tables")


def provenance_rows(timeline: Timeline, told: Overview) -> list[Component]:
    """Terms and what is known of them; the checks come apart, as they take longer."""
    values = (_source(timeline.trace.meta), _model(timeline.trace.meta, told), _tables(timeline))
    return [
        part for head, value in zip(_HEADS, values, strict=True) for part in (html.Dt(head), html.Dd(value))
    ]


def check_words(check: Check) -> list[Component | str]:
    """How many of the scheduler's rules hold, as far as is known yet."""
    if check.error is not None:
        return [html.Span(f"✕ {check.error}", className="violated")]
    if check.report is None:
        return [
            html.Span(className="busy"),
            f"holding the rules against the trace, {check.running_s:.0f} s so far",
        ]
    held, violated, unchecked = (
        check.report.having(status) for status in (Status.HELD, Status.VIOLATED, Status.NOT_CHECKABLE)
    )
    checked = len(held) + len(violated)
    rest: list[Component | str] = [f" · {count(len(unchecked))} not checkable"] if unchecked else []
    if violated:
        names = ", ".join(rule.name.replace("_", " ") for rule in violated[:2])
        words = f"✕ {count(len(violated))} of {count(checked)} invariants violated: {names}"
        return [html.B(words, className="violated"), *rest]
    if not checked:
        return ["no invariant can be checked"]
    words = f"✓ {count(len(held))} of {count(checked)} invariants hold"
    return [html.B(words, className="held"), *rest]


def not_checked() -> list[Component | str]:
    """Of a run that grows: a check of half of it would be anew each second."""
    return ["once the run has ended"]


def _source(meta: Mapping[str, Any]) -> list[Component | str]:
    source, hardware = meta.get("provenance"), meta.get("hardware")
    told = hardware.get("name") if isinstance(hardware, Mapping) else None
    name = shown(str(told)) if told else "unknown hardware"
    words = {
        "measured": f": real scheduler, forwards timed on {name}",
        "simulated": f": real scheduler, cost model of {name}, virtual clock",
        "imported": ": of another tool's record; what it lacks is unknown, not zero",
    }
    return [html.B(shown(str(source or UNKNOWN))), words.get(str(source), "")]


def _model(meta: Mapping[str, Any], told: Overview) -> str:
    model = meta.get("model")
    facts = model if isinstance(model, Mapping) else {}
    name, dtype = facts.get("name"), facts.get("dtype")
    parts = [shown(str(name))] if name else []
    parts += [dtype_word(shown(str(dtype)))] if dtype else []
    parts += [f"{count(told.kv_token_bytes)} B of KV per token"] if told.kv_token_bytes is not None else []
    return ", ".join(parts) or UNKNOWN


def _tables(timeline: Timeline) -> list[Component | str]:
    tables = table_facts(timeline)
    there = ", ".join(table.name for table in tables if table.rows) or "none"
    missing = ", ".join(table.name for table in tables if not table.rows)
    return [there, "; ", html.B(f"{missing} missing")] if missing else [there]
