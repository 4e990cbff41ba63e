"""Who took the time: what requests and chunks cost others, each line leading to its forward."""

from dash import html
from dash.development.base_component import Component

from profiler.ledger.report import ChunkCost, CulpritCost, StallReport
from ui.part_words import causes_ns
from ui.web.attributes import data
from ui.web.instants import instant_link
from ui.web.ledger_table import even_ms
from ui.web.metric_heads import head, name_head
from ui.web.names import shown
from ui.web.pages.stalls_rows import MOST_ROWS, bar_cell, more_rows, rows_table
from ui.web.runs import Run
from ui.words import UNKNOWN, count, seconds

__all__ = ["chunks_table", "culprits_table"]

_CHARGED = ("others_prefill", "mixed_extra")


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
    swatch = _cost_swatch(report)
    body = [_culprit(run, report, each, most_ns, swatch) for each in report.culprits[:MOST_ROWS]]
    table = rows_table("Culprits", heads, body)
    return [table, *more_rows(len(report.culprits), "culprit", "that cost less")]


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
    swatch = _cost_swatch(report)
    body = [_chunk(run, chunk, most_ns, swatch) for chunk in report.chunks[:MOST_ROWS]]
    table = rows_table("Culprits, per chunk", heads, body)
    return [table, *more_rows(len(report.chunks), "chunk", "that cost less")]


def _culprit(run: Run, report: StallReport, culprit: CulpritCost, most_ns: int, swatch: str) -> html.Tr:
    costliest = next((chunk for chunk in report.chunks if chunk.rid == culprit.rid), None)
    name = shown(culprit.name)
    cells = [
        html.Th(_request_link(name, run, culprit.rid, costliest), scope="row"),
        html.Td(count(culprit.chunks)),
        bar_cell(swatch, culprit.cost_ns / most_ns),
        html.Td(even_ms(culprit.cost_ns, most_ns), className="strong"),
        html.Td(seconds(culprit.longest_ns / 1e9)),
        html.Td(seconds(None if culprit.device_ns is None else culprit.device_ns / 1e9)),
    ]
    return html.Tr(cells, **data(ns=culprit.cost_ns))


def _chunk(run: Run, chunk: ChunkCost, most_ns: int, swatch: str) -> html.Tr:
    number = f"{chunk.number}/{chunk.of or UNKNOWN}"
    cells = [
        html.Th(_forward_link(f"{shown(chunk.name)} {number}", run, chunk), scope="row"),
        html.Td(f"[{count(chunk.prefix_len)}, {count(chunk.extend_end)})"),
        bar_cell(swatch, chunk.cost_ns / most_ns),
        html.Td(even_ms(chunk.cost_ns, most_ns), className="strong"),
        html.Td(seconds(None if chunk.device_ns is None else chunk.device_ns / 1e9)),
        html.Td(count(chunk.gaps)),
    ]
    return html.Tr(cells, title=f"forward {count(chunk.forward_id)}", **data(ns=chunk.cost_ns))


def _cost_swatch(report: StallReport) -> str:
    """Of what chunks cost others most: their waiting, or the length of forwards that they decoded in."""
    causes = {cause: ns for cause, ns in causes_ns(report.by_kind).items() if cause.key in _CHARGED}
    return max(causes, key=lambda cause: causes[cause]).swatch


def _request_link(name: str, run: Run, rid: int, costliest: ChunkCost | None) -> Component | str:
    """To its costliest chunk; to all of its prefill where that chunk is not among the listed ones."""
    if costliest is not None:
        return _forward_link(name, run, costliest)
    ref = run.timeline.ref(rid)
    if ref.arrival_ns is None:
        return name
    return instant_link(name, run, ref.arrival_ns, ref.first_token_ns or ref.arrival_ns)


def _forward_link(words: str, run: Run, chunk: ChunkCost) -> Component | str:
    """To where the chunk's forward starts."""
    start_ns = run.timeline.start_of_forward(chunk.forward_id)
    if start_ns is None:
        return words
    return instant_link(words, run, start_ns, start_ns + (chunk.device_ns or 0))
