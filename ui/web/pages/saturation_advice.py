"""The Saturation page's parts that depend on what a person accepts: the choice, the price list, the marks."""

from dataclasses import replace
from itertools import chain, repeat

from dash import html, no_update
from dash.development.base_component import Component

from profiler.advice import Advice
from profiler.advice_words import answer, basis, reasons
from ui.si_words import percent
from ui.web.figures.throughput_marks import Marks
from ui.web.metric_heads import named
from ui.web.pages.saturation_evidence import Evidence
from ui.web.pages.saturation_prices import policy_of, price_table, whole_list
from ui.web.pages.saturation_view import plain_marks
from ui.words import count, plural

__all__ = ["ADVICE_PARTS", "advice_parts", "marks_of", "no_advice"]

ADVICE_PARTS = {
    "answer": "children",
    "advice": "children",
    "prices-data": "data",
    "prices-note": "children",
    "all-prices-data": "data",
    "advice-basis": "children",
}
"""Every part of the page that depends on the limits, and the property that holds it."""

_LEAST_MARGIN = 0.005
_SENTENCES = ("advice_point", "longest_wait", "ttft_long")
"""The entries of the first reasons; further ones are of limits and margins."""
_ENTRIES = {
    "workload": "workload",
    "waits, TTFT": "longest_wait",
    "forward times": "cost_model",
    "point": "advice_point",
    "margins": "margins",
    "activations": "activation_bytes",
    "KV tokens": "kv_tokens",
}


def advice_parts(
    evidence: Evidence, advice: Advice, policy: str | None, *, untried: bool = False
) -> dict[str, object]:
    """All parts; the rows of `policy` are shown, or those of the recommended one's.

    `untried` where the rows were not chosen for these limits, so that further ones may keep them.
    """
    row = advice.choice.row
    shown = policy or (None if row is None else policy_of(row.options)) or "prefill-first"
    return {
        "answer": _answer(evidence, advice),
        "advice": _said(advice),
        "prices-data": price_table(advice, shown),
        "prices-note": _note(advice, shown, untried=untried),
        "all-prices-data": whole_list(advice),
        "advice-basis": html.Dl(
            [part for head, text in basis(advice) for part in (_term(head), html.Dd(text))],
            className="facts",
        ),
    }


def no_advice(reason: str | None) -> dict[str, object]:
    """All parts without a price list; None where it is still to come."""
    note = "" if reason is None else f"No price list: {reason}."
    tables = dict.fromkeys(("prices-data", "all-prices-data"))
    return {**dict.fromkeys(ADVICE_PARTS, ""), **tables, "answer": no_update, "prices-note": note}


def marks_of(evidence: Evidence, advice: Advice) -> Marks:
    """What is drawn over the curves of a run."""
    row = advice.choice.row
    recommended = None if row is None else row.options.chunk_tokens
    return replace(plain_marks(evidence), recommended=recommended, limit_s=advice.choice.limits.itl_max_s)


def _answer(evidence: Evidence, advice: Advice) -> object:
    """The first sentence, where the run's own forwards of one prompt do not tell the point."""
    if evidence.board.report.found.status == "ok":
        return no_update
    point = advice.point
    span = "" if point.low == point.high else f" [{count(point.low)}, {count(point.high)}]"
    source = "forwards of all runs" if point.by_points else "the model of all forwards"
    return f"About {plural(point.tokens, 'token')}{span} fill one forward, by {source}."


def _said(advice: Advice) -> list[Component | str]:
    glyph = html.Span("▼ ", className="mark") if advice.choice.row else html.Span("✕ ", className="lost")
    told: list[Component] = [html.B(answer(advice), **named("choice"))]
    keys = chain(_SENTENCES if advice.choice.row else ["choice"], repeat("margins"))
    told += [html.Span(sentence, **named(key)) for sentence, key in zip(reasons(advice), keys, strict=False)]
    return [glyph, *(part for each in told for part in (each, " ")), *_together(advice)]


def _together(advice: Advice) -> list[Component]:
    """The headline's point is of the run alone, and that of advice of all runs of its setup."""
    if advice.num_traces == 1:
        return []
    label = f"◇ of {count(advice.num_traces)} runs together"
    return [html.Small(label, className="muted", **named("advice_point"))]


def _term(head: str) -> html.Dt:
    return html.Dt(head, **(named(_ENTRIES[head]) if head in _ENTRIES else {}))


def _note(advice: Advice, shown: str, *, untried: bool) -> str:
    """What the columns and the crosses mean."""
    row = advice.choice.row
    told = [
        f"Simulated: the workload through the real scheduler. TTFT long: of the longest prompt, "
        f"{count(advice.workload.longest_prompt)} tokens; first and last: its forwards."
    ]
    if row is None and untried and not any(map(advice.decodes_break, advice.choice.bindings)):
        told.append("Smaller chunks than these may keep the limits: load the page anew to have them tried.")
    if row is not None and policy_of(row.options) not in (shown, None):
        told.append("The recommended row is in the list of another policy.")
    margin = max([advice.margins.decode, *advice.margins.prompts.values()], default=0.0)
    over = (
        f", with up to {percent(margin)} added, as measured forwards miss the model"
        if margin > _LEAST_MARGIN
        else ""
    )
    told.append(f"✕ breaks a limit{over}.")
    return " ".join(told)
