"""Tables of the Stalls page over a whole run: worst stalls, who lost time, who took it, spans of time."""

from collections.abc import Iterable, Sequence
from typing import Any

from dash import html
from dash.development.base_component import Component

from profiler.ledger.parts import GapDetail
from profiler.ledger.report import CausesOverTime, ChunkCost, CulpritCost, StallGroup, StallReport, Victim
from ui.part_words import PART_WORDS, cause_of
from ui.stall_words import culprit_shares, names_words
from ui.web.attributes import aria, data
from ui.web.figures.causes import cause_sums
from ui.web.instants import instant_link
from ui.web.ledger_table import even_ms
from ui.web.metric_heads import head, name_head
from ui.web.names import shown
from ui.web.runs import Run
from ui.words import UNKNOWN, count, plural, seconds

__all__ = ["MOST_ROWS", "chunks_table", "culprits_table", "spans_table", "victims_table", "worst_table"]

MOST_ROWS = 12
"""Of each list; how many more there are is said below it."""

_ORDERS = {"late": "late_by", "lost": "lost"}
_MOST_SPANS = 240


def worst_table(
    run: Run, groups: Sequence[StallGroup], chosen: GapDetail | None, order: str
) -> list[Component]:
    """Late tokens, a row for all that were late at one instant for one cause; a click chooses the gap."""
    if order == "lost":
        groups = sorted(groups, key=lambda group: -group.lost_ns)
    rows = groups[:MOST_ROWS]
    most_ns = max((group.late_ns for group in groups), default=0) or 1
    heads = [
        name_head("who waited"),
        head("stall_group", "since"),
        _sort_head("late", "late by, each", order, colSpan=2),
        _sort_head("lost", "lost in all", order),
        head("cause", "cause", className="words"),
        head("culprit_cost", "culprits, share of the gap", className="words"),
    ]
    body = [_group(run, group, most_ns, _is_in(chosen, group)) for group in rows]
    return [
        _table("Worst stalls", heads, body, "worst"),
        *_more(len(groups), "stall", "on this list"),
    ]


def victims_table(run: Run, report: StallReport) -> list[Component]:
    """Who lost how much between their tokens; a click chooses the longest gap."""
    heads = [
        name_head("request"),
        head("victims", "gaps"),
        head("waiting", "waiting"),
        head("late_by", "late"),
        head("itl_longest", "longest"),
    ]
    body = [_victim(victim, report) for victim in report.victims[:MOST_ROWS]]
    table = _table("Victims", heads, body)
    return [table, *_more(len(report.victims), "request", "with less")]


def culprits_table(run: Run, report: StallReport) -> list[Component]:
    """Whose chunks cost others how much; a click leads to the costliest of them."""
    if not report.culprits:
        return [html.P("No request's chunks cost others anything.", className="muted")]
    heads = [
        name_head("request"),
        head("culprit_cost", "chunks"),
        head("culprit_cost", "cost others", colSpan=2),
        head("culprit_cost", "of one gap"),
        head("culprit_cost", "ran"),
    ]
    most_ns = report.culprits[0].cost_ns or 1
    body = [_culprit(run, report, each, most_ns) for each in report.culprits[:MOST_ROWS]]
    table = _table("Culprits", heads, body)
    return [table, *_more(len(report.culprits), "culprit", "that cost less")]


def chunks_table(run: Run, report: StallReport) -> list[Component]:
    """The chunks that cost others most; a click leads to the forward."""
    if not report.chunks:
        return [html.P("No chunk cost others anything.", className="muted")]
    heads = [
        name_head("chunk"),
        head("forward_tokens", "tokens"),
        head("chunk_cost", "cost others", colSpan=2),
        head("chunk_cost", "ran"),
        head("chunk_cost", "gaps"),
    ]
    most_ns = report.chunks[0].cost_ns or 1
    body = [_chunk(run, chunk, most_ns) for chunk in report.chunks[:MOST_ROWS]]
    table = _table("Culprits, per chunk", heads, body)
    return [table, *_more(len(report.chunks), "chunk", "that cost less")]


def spans_table(run: Run, causes: CausesOverTime) -> Component:
    """Waiting by cause in each span; the last row has the sums, which are those of the whole run."""
    sums = {cause: waited for cause, waited in cause_sums(causes).items() if waited.any()}
    heads = [name_head("since"), *(head("causes_over_time", cause.words) for cause in sums)]
    edges_s = ((causes.edges_ns - run.timeline.start_ns) / 1e9).tolist()
    spans = [(f"{edges_s[at]:,.3f} s", at) for at in range(min(len(edges_s) - 1, _MOST_SPANS))]
    whole_ns = max((int(waited.max()) for waited in sums.values()), default=0)
    body = [_span(since, [int(waited[at]) for waited in sums.values()], whole_ns) for since, at in spans]
    total = _span("all", [int(waited.sum()) for waited in sums.values()], whole_ns)
    return _table("Waiting by cause over time", heads, [*body, total])


def _span(since: str, waited_ns: Sequence[int], whole_ns: int) -> html.Tr:
    cells = [html.Td(even_ms(ns, whole_ns), **data(ns=ns)) for ns in waited_ns]
    return html.Tr([html.Th(since, scope="row"), *cells])


def _group(run: Run, group: StallGroup, most_ns: int, chosen: bool) -> html.Tr:
    cause = cause_of(group.cause)
    since_s = (group.start_ns - run.timeline.start_ns) / 1e9
    many = html.Span(f" {plural(group.requests, 'request')}", className="muted")
    cells = [
        html.Th([_button(names_words(group.names, shown)), many], scope="row"),
        html.Td(f"{since_s:,.3f} s"),
        _bar(cause.swatch, group.late_ns / most_ns),
        html.Td(even_ms(group.late_ns, most_ns), className="strong"),
        html.Td(seconds(group.lost_ns / 1e9)),
        html.Td([html.Span(className=f"swatch {cause.swatch}"), PART_WORDS[group.cause]], className="words"),
        html.Td(culprit_shares(group, shown), className="words"),
    ]
    return _gap_row(cells, group.rids[0], group.token_index, chosen, group.lost_ns)


def _victim(victim: Victim, report: StallReport) -> html.Tr:
    whole_ns = max(each.waiting_ns for each in report.victims)
    cells = [
        html.Th(_button(shown(victim.name)), scope="row"),
        html.Td(count(victim.gaps)),
        html.Td(seconds(victim.waiting_ns / 1e9)),
        html.Td(even_ms(victim.late_ns, whole_ns), className="strong"),
        html.Td(seconds(victim.longest_ns / 1e9)),
    ]
    return _gap_row(cells, victim.rid, victim.longest_token_index, False, victim.late_ns)


def _culprit(run: Run, report: StallReport, culprit: CulpritCost, most_ns: int) -> html.Tr:
    costliest = next((chunk for chunk in report.chunks if chunk.rid == culprit.rid), None)
    name = shown(culprit.name)
    cells = [
        html.Th(name if costliest is None else _forward_link(name, run, costliest), scope="row"),
        html.Td(count(culprit.chunks)),
        _bar("stall", culprit.cost_ns / most_ns),
        html.Td(even_ms(culprit.cost_ns, most_ns), className="strong"),
        html.Td(seconds(culprit.longest_ns / 1e9)),
        html.Td(seconds(None if culprit.device_ns is None else culprit.device_ns / 1e9)),
    ]
    return html.Tr(cells, **data(ns=culprit.cost_ns))


def _chunk(run: Run, chunk: ChunkCost, most_ns: int) -> html.Tr:
    number = f"{chunk.number}/{chunk.of or UNKNOWN}"
    cells = [
        html.Th(_forward_link(f"{shown(chunk.name)} {number}", run, chunk), scope="row"),
        html.Td(f"[{count(chunk.prefix_len)}, {count(chunk.extend_end)})"),
        _bar("stall", chunk.cost_ns / most_ns),
        html.Td(even_ms(chunk.cost_ns, most_ns), className="strong"),
        html.Td(seconds(None if chunk.device_ns is None else chunk.device_ns / 1e9)),
        html.Td(count(chunk.gaps)),
    ]
    return html.Tr(cells, title=f"forward {count(chunk.forward_id)}", **data(ns=chunk.cost_ns))


def _forward_link(words: str, run: Run, chunk: ChunkCost) -> Component | str:
    """To where the chunk's forward starts."""
    start_ns = run.timeline.start_of_forward(chunk.forward_id)
    if start_ns is None:
        return words
    return instant_link(words, run, start_ns, start_ns + (chunk.device_ns or 0))


def _gap_row(cells: Sequence[Component], rid: int, token_index: int, chosen: bool, ns: int) -> html.Tr:
    """A row that stands for a gap; the page's script chooses it."""
    return html.Tr(
        cells,
        className="selected" if chosen else None,
        **data(rid=rid, tok=token_index, ns=ns),
        **(aria(selected="true") if chosen else {}),
    )


def _is_in(gap: GapDetail | None, group: StallGroup) -> bool:
    if gap is None or gap.rid not in group.rids:
        return False
    return gap.start_ns == group.start_ns and gap.own_forward_id == group.own_forward_id


def _sort_head(order: str, words: str, now: str, **more: Any) -> html.Th:
    sort = {"sort": "descending"} if order == now else {}
    button = html.Button([words, " ▾" if order == now else ""], className="plain", **data(sort=order))
    return head(_ORDERS[order], button, **more, **aria(**sort))


def _button(words: str) -> html.Button:
    return html.Button(words, className="plain", title="show this gap's ledger")


def _bar(swatch: str, share: float) -> html.Td:
    return html.Td(
        html.Span(className=f"bar {swatch}", style={"width": f"{100 * share:.2f}%"}), className="bar-cell"
    )


def _table(caption: str, heads: Sequence[html.Th], body: Iterable[Component], kind: str = "") -> html.Table:
    return html.Table(
        [
            html.Caption(caption, className="sr-only"),
            html.Thead(html.Tr(list(heads))),
            html.Tbody(list(body)),
        ],
        className=f"numbers {kind}".strip(),
    )


def _more(number: int, noun: str, which: str) -> list[Component]:
    left = number - MOST_ROWS
    return [html.P(f"{plural(left, f'more {noun}')} {which}.", className="caption")] if left > 0 else []
