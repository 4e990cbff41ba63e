"""The Stalls page's parts of the chosen gap: its whole ledger, what each chunk cost it, why it waited."""

from dataclasses import replace

from dash import html
from dash.development.base_component import Component

from profiler.ledger.parts import Chunk, GapDetail
from profiler.ledger.why import why_late
from profiler.sentences import waited
from ui.web.attributes import data
from ui.web.instants import instant_link
from ui.web.ledger_table import chunk_name, even_ms, ledger_table
from ui.web.metric_heads import head, name_head, named
from ui.web.names import shown, with_shown_names
from ui.web.pages.stalls_rows import bar_cell, rows_table
from ui.web.pages.stalls_tables import worst_table
from ui.web.runs import Run
from ui.words import count, plural, seconds

__all__ = ["GAP_PARTS", "gap_parts", "merged_chunks"]

GAP_PARTS = {
    "worst": "children",
    "worst-note": "children",
    "ledger": "children",
    "why": "children",
    "chunks": "children",
    "chunks-note": "children",
}
"""Every part of the page that depends on the gap, and the property that holds it."""

_MOST_CULPRITS = 10
_MOST_CHUNKS = 32


def gap_parts(run: Run, gap: GapDetail | None, order: str) -> dict[str, object]:
    """All parts for a gap; where none is chosen, the list to choose from."""
    report = run.timeline.stall_report
    parts = {
        **dict.fromkeys(GAP_PARTS, ""),
        "worst": worst_table(run, report, gap, order),
        "worst-note": "how much later a token came than its own decode forwards needed",
    }
    if gap is None:
        return {**parts, "ledger": html.P("No gap is chosen.", className="muted")}
    chunks = merged_chunks(gap)
    return {
        **parts,
        "ledger": _ledger(run, gap),
        "why": why_late(with_shown_names(gap)),
        "chunks": _chunks_table(run, gap, chunks),
        "chunks-note": _said(gap, chunks),
    }


def merged_chunks(gap: GapDetail) -> list[Chunk]:
    """Others' chunks in time order, each once with all that it took of the gap."""
    merged: dict[tuple[int, int], Chunk] = {}
    for chunk in gap.chunks:
        key = (chunk.forward_id, chunk.rid)
        before = merged[key].in_gap_ns if key in merged else 0
        merged[key] = replace(chunk, in_gap_ns=before + chunk.in_gap_ns)
    return list(merged.values())


def _ledger(run: Run, gap: GapDetail) -> list[Component]:
    name = shown(gap.name)
    own_ns = gap.gap_ns - gap.late_ns
    times = f", {gap.gap_ns / own_ns:,.0f} × own decode" if own_ns > 0 else ""
    link = instant_link("Open in Compare", run, _instant(gap), gap.end_ns, gap, className="button")
    return [
        html.Div(
            [
                html.H2(
                    [
                        f"Ledger: {name}, token {count(gap.token_index)}",
                        html.Small(f"gap {even_ms(gap.gap_ns, gap.gap_ns)}{times}"),
                    ],
                    **named("gap_ledger"),
                ),
                link,
            ],
            className="head",
        ),
        html.P(f"{waited(with_shown_names(gap))}.", className="sr-only"),
        ledger_table(run, gap, _MOST_CULPRITS),
    ]


def _instant(gap: GapDetail) -> int:
    """Where its costliest chunk starts, or the gap itself where no prompt is to blame."""
    return gap.start_ns if gap.costliest is None else max(gap.start_ns, gap.costliest.start_ns)


def _chunks_table(run: Run, gap: GapDetail, chunks: list[Chunk]) -> list[Component]:
    """A bar a chunk in time order, so that the cost of a growing prefix shows."""
    if not chunks:
        return [html.P("No chunk of another request took time of this gap.", className="muted")]
    costliest = sorted(chunks, key=lambda chunk: -chunk.in_gap_ns)
    kept, left = costliest[:_MOST_CHUNKS], costliest[_MOST_CHUNKS:]
    most_ns = costliest[0].in_gap_ns or 1
    rows = [_chunk_row(run, gap, chunk, most_ns, chunk is costliest[0]) for chunk in chunks if chunk in kept]
    heads = [name_head("chunk"), name_head("forward"), head("chunk_cost", "of this gap", colSpan=2)]
    table = rows_table("What each chunk took of the gap", heads, rows, "chunks")
    if not left:
        return [table]
    rest_ns = sum(chunk.in_gap_ns for chunk in left)
    more = f"{plural(len(left), 'more chunk')} took {seconds(rest_ns / 1e9)} together."
    return [table, html.P(more, className="caption", **data(ns=rest_ns))]


def _chunk_row(run: Run, gap: GapDetail, chunk: Chunk, most_ns: int, costliest: bool) -> html.Tr:
    name = chunk_name(chunk.name, chunk.number, chunk.of)
    return html.Tr(
        [
            html.Th(
                instant_link(name, run, chunk.start_ns, chunk.end_ns, gap, title="show it in Compare"),
                scope="row",
            ),
            html.Td(f"forward {count(chunk.forward_id)}", className="words muted"),
            bar_cell("prefill", chunk.in_gap_ns / most_ns),
            html.Td(even_ms(chunk.in_gap_ns, gap.gap_ns), className="strong"),
        ],
        className="selected" if costliest else None,
        title=f"tokens [{count(chunk.prefix_len)}, {count(chunk.extend_end)})",
        **data(ns=chunk.in_gap_ns),
    )


def _said(gap: GapDetail, chunks: list[Chunk]) -> str:
    """How many forwards are blamed, and that the costs are of this gap alone."""
    forwards = {chunk.forward_id for chunk in chunks}
    if not forwards:
        return ""
    note = f"{plural(len(forwards), 'forward')}, in time order"
    if gap.mixed_extra_ns is not None:
        note += f"; mixed extra by the {gap.mixed_extra_estimator}"
    return note
