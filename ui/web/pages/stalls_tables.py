"""Who waited and when: the worst stalls, what each request lost, and waiting by cause over spans of time."""

from collections.abc import Sequence
from typing import Any

from dash import html
from dash.development.base_component import Component

from profiler.ledger.parts import GapDetail
from profiler.ledger.report import CausesOverTime, StallGroup, StallReport, Victim
from ui.part_words import PART_WORDS, cause_of
from ui.stall_words import culprit_shares, names_words
from ui.web.attributes import aria, data
from ui.web.figures.causes import cause_sums
from ui.web.ledger_table import even_ms
from ui.web.metric_heads import head, name_head
from ui.web.names import shown
from ui.web.pages.stalls_rows import MOST_ROWS, bar_cell, gap_button, gap_row, rest_note, rows_table
from ui.web.runs import Run
from ui.words import count, plural, seconds

__all__ = ["spans_table", "victims_table", "worst_table"]

_ORDERS = {"late": "late_by", "lost": "lost"}
_MOST_SPANS = 240
_LEAST_SHARE = 0.005  # of the largest lateness: what is less is in the sum of all others


def worst_table(run: Run, report: StallReport, chosen: GapDetail | None, order: str) -> list[Component]:
    """Late tokens, a row for all that were late at one instant for one cause; a click chooses the gap."""
    most_ns = max((group.late_ns for group in report.groups), default=0) or 1
    groups = [group for group in report.groups if group.late_ns > _LEAST_SHARE * most_ns]
    if order == "lost":
        groups.sort(key=lambda group: -group.lost_ns)
    rows = groups[:MOST_ROWS]
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
        rows_table("Worst stalls", heads, body, "worst"),
        *rest_note(report.late_ns - sum(group.lost_ns for group in rows), "All other late tokens lost"),
    ]


def victims_table(report: StallReport) -> list[Component]:
    """Who lost how much between their tokens; a click chooses the longest gap."""
    heads = [
        name_head("request"),
        head("victims", "gaps"),
        head("waiting", "waiting"),
        head("late_by", "late"),
        head("itl_longest", "longest"),
    ]
    body = [_victim(victim, report) for victim in report.victims[:MOST_ROWS]]
    table = rows_table("Victims", heads, body)
    rest_ns = report.late_ns - sum(victim.late_ns for victim in report.victims[:MOST_ROWS])
    return [table, *rest_note(rest_ns, "All other requests were late by")]


def spans_table(run: Run, causes: CausesOverTime) -> Component:
    """Waiting by cause in each span; the last row has the sums, which are those of the whole run."""
    sums = {cause: waited for cause, waited in cause_sums(causes).items() if waited.any()}
    heads = [name_head("since"), *(head("causes_over_time", cause.words) for cause in sums)]
    edges_s = ((causes.edges_ns - run.timeline.start_ns) / 1e9).tolist()
    spans = [(f"{edges_s[at]:,.3f} s", at) for at in range(min(len(edges_s) - 1, _MOST_SPANS))]
    whole_ns = max((int(waited.max()) for waited in sums.values()), default=0)
    body = [_span(since, [int(waited[at]) for waited in sums.values()], whole_ns) for since, at in spans]
    total = _span("all", [int(waited.sum()) for waited in sums.values()], whole_ns)
    return rows_table("Waiting by cause over time", heads, [*body, total])


def _span(since: str, waited_ns: Sequence[int], whole_ns: int) -> html.Tr:
    cells = [html.Td(even_ms(ns, whole_ns), **data(ns=ns)) for ns in waited_ns]
    return html.Tr([html.Th(since, scope="row"), *cells])


def _group(run: Run, group: StallGroup, most_ns: int, chosen: bool) -> html.Tr:
    cause = cause_of(group.cause)
    since_s = (group.start_ns - run.timeline.start_ns) / 1e9
    culprits = culprit_shares(group, shown)
    many = html.Span(f" {plural(group.requests, 'request')}", className="muted")
    cells = [
        html.Th([gap_button(names_words(group.names, shown)), many], scope="row"),
        html.Td(f"{since_s:,.3f} s"),
        bar_cell(cause.swatch, group.late_ns / most_ns),
        html.Td(even_ms(group.late_ns, most_ns), className="strong"),
        html.Td(seconds(group.lost_ns / 1e9)),
        html.Td([html.Span(className=f"swatch {cause.swatch}"), PART_WORDS[group.cause]], className="words"),
        html.Td(culprits, className="words", title=culprits),
    ]
    return gap_row(cells, group.rids[0], group.token_index, chosen, group.lost_ns)


def _victim(victim: Victim, report: StallReport) -> html.Tr:
    whole_ns = max(each.waiting_ns for each in report.victims)
    cells = [
        html.Th(gap_button(shown(victim.name)), scope="row"),
        html.Td(count(victim.gaps)),
        html.Td(seconds(victim.waiting_ns / 1e9)),
        html.Td(even_ms(victim.late_ns, whole_ns), className="strong"),
        html.Td(seconds(victim.longest_ns / 1e9)),
    ]
    return gap_row(cells, victim.rid, victim.longest_token_index, False, victim.late_ns)


def _is_in(gap: GapDetail | None, group: StallGroup) -> bool:
    if gap is None or gap.rid not in group.rids:
        return False
    return gap.start_ns == group.start_ns and gap.own_forward_id == group.own_forward_id


def _sort_head(order: str, words: str, now: str, **more: Any) -> html.Th:
    sort = {"sort": "descending"} if order == now else {}
    button = html.Button([words, " ▾" if order == now else ""], className="plain", **data(sort=order))
    return head(_ORDERS[order], button, **more, **aria(**sort))
