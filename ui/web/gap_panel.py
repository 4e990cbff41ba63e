"""The panel of a chosen gap: who waited, whose forwards filled it, and what it met in other runs."""

from collections.abc import Sequence

from dash import html
from dash.development.base_component import Component

from profiler.gap_parts import GapPart, PartKind, gap_parts
from profiler.ledger.parts import Chunk, GapDetail
from profiler.sentences import waited, why_waited
from ui.web.answer import why_no_gap
from ui.web.attributes import aria, data
from ui.web.metric_heads import named
from ui.web.names import shown, with_shown_names
from ui.web.runs import Run, compared
from ui.words import count, plural, seconds

__all__ = ["gap_panel"]

_MOST_BARS = 64
_MOST_PARTS = 6
_SWATCHES = {
    PartKind.PREFILL: "stall",
    PartKind.MIXED: "mixed",
    PartKind.DECODES: "decode",
    PartKind.OWN: "decode",
    PartKind.OWN_OTHERS: "decode",
    PartKind.HOST: "host",
}
_WORDS = {
    PartKind.DECODES: "decodes of others",
    PartKind.OWN: "own forward",
    PartKind.OWN_OTHERS: "its other forwards",
    PartKind.HOST: "host, no forward",
}


def gap_panel(runs: Sequence[Run], run: Run, gap: GapDetail | None) -> list[Component]:
    """What the panel shows; without a gap, how to choose one."""
    if gap is None:
        return [
            _over("Gap between tokens"),
            html.H2("No gap is chosen"),
            html.P(_nothing(runs), className="muted"),
        ]
    name, gap = gap.name, with_shown_names(gap)
    return [
        _over(_place(run, gap)),
        html.H2(waited(gap), **named("gap")),
        html.P(why_waited(gap), className="lost" if gap.culprits else None),
        *_parts(gap),
        *_chunks(gap),
        *_elsewhere(runs, name),
    ]


def _over(words: str) -> html.Div:
    """The line above the panel's title; its button goes to the longest gap of all runs."""
    button = html.Button("Worst of all", title="select the longest gap of all runs", **data(act="worst"))
    return html.Div([html.Span(words), button], className="over")


def _nothing(runs: Sequence[Run]) -> str:
    if all(run.timeline.worst_gap() is None for run in runs):
        return why_no_gap(runs)
    return "Click a stall in the picture, or press ] for the next one."


def _place(run: Run, gap: GapDetail) -> str:
    """Where a gap stands among the listed stalls of its run, which are in order of length."""
    stalls = run.timeline.stalls
    mine = ((stalls["rid"] == gap.rid) & (stalls["token_index"] == gap.token_index)).arg_true()
    if not len(mine):
        return f"Selected gap, run {run.letter}"
    return f"Selected gap, {count(mine[0] + 1)} of {count(len(stalls))} in {run.letter}"


def _parts(gap: GapDetail) -> list[Component]:
    parts = gap_parts(gap)
    prefill = [part for part in parts if part.name is not None]
    kept = [*prefill[:_MOST_PARTS], *(part for part in parts if part.name is None)]
    left = prefill[_MOST_PARTS:]
    rows = [_row(part) for part in kept]
    if left:
        ns, share = sum(part.part_ns for part in left), sum(part.share for part in left)
        rows.insert(_MOST_PARTS, _line("stall", plural(len(left), "more prompt"), ns, share))
    total = _line(None, "gap", gap.gap_ns, 1.0)
    return [
        html.H3("What filled it", **named("gap_parts")),
        html.Table(html.Tbody([*rows, total]), className="parts"),
    ]


def _row(part: GapPart) -> html.Tr:
    return _line(_SWATCHES[part.kind], _label(part), part.part_ns, part.share)


def _line(swatch: str | None, label: str, ns: int, share: float) -> html.Tr:
    bar = (
        html.Span(className=f"bar {swatch}", style={"width": f"{max(1.0, 34 * share):.1f}px"})
        if swatch
        else ""
    )
    mark = html.Span(className=f"swatch {swatch}") if swatch else ""
    return html.Tr(
        [
            html.Th([mark, html.Span(label, className="label")], scope="row"),
            html.Td(bar),
            html.Td(seconds(ns / 1e9)),
            html.Td(f"{share * 100:.1f} %" if swatch else "100 %", className="muted"),
        ],
        className=None if swatch else "total",
    )


def _label(part: GapPart) -> str:
    if part.name is None:
        return _WORDS[part.kind]
    if part.chunks is None:
        return part.name
    first, last, of = part.chunks
    if of == 1:
        return f"{part.name}, whole"
    return f"{part.name}, chunk {first}" if first == last else f"{part.name}, chunks {first}–{last}"


def _chunks(gap: GapDetail) -> list[Component]:
    """One bar a chunk in time order, so that the cost of a growing prefix shows."""
    if gap.costliest is None:
        return []
    chunks = sorted(gap.chunks, key=lambda chunk: -chunk.in_gap_ns)[:_MOST_BARS]
    drawn = sorted(chunks, key=lambda chunk: (chunk.start_ns, chunk.rid))
    left = len(gap.chunks) - len(drawn)
    most = max(chunk.in_gap_ns for chunk in drawn) or 1
    bars = [_bar(chunk, chunk.in_gap_ns / most, chunk == gap.costliest) for chunk in drawn]
    note = f"; the {_MOST_BARS} costliest of {count(len(gap.chunks))}" if left else ""
    return [
        html.H3(
            ["Cost of each chunk ", html.Small(f"in time order{note}", className="muted")],
            **named("chunk_cost"),
        ),
        html.Div(bars, className="bars", role="img", **aria(label=_costliest(gap, gap.costliest))),
        html.P(_costliest(gap, gap.costliest), className="costliest"),
    ]


def _bar(chunk: Chunk, height: float, costliest: bool) -> html.Span:
    return html.Span(
        style={"height": f"{max(4.0, 100 * height):.1f}%"},
        className="costliest" if costliest else None,
        title=f"{_chunk(chunk)}: {seconds(chunk.in_gap_ns / 1e9)} of forward {count(chunk.forward_id)}",
    )


def _costliest(gap: GapDetail, chunk: Chunk) -> str:
    share = 100 * chunk.in_gap_ns / max(1, gap.gap_ns)
    return (
        f"Costliest: {_chunk(chunk)}, tokens [{count(chunk.prefix_len)}, {count(chunk.extend_end)}), "
        f"forward {count(chunk.forward_id)}: {seconds(chunk.in_gap_ns / 1e9)}, {share:.1f} % of the gap."
    )


def _chunk(chunk: Chunk) -> str:
    if chunk.of == 1:
        return f"{chunk.name} whole"
    return (
        f"{chunk.name} chunk {chunk.number}/{chunk.of}" if chunk.of else f"{chunk.name} chunk {chunk.number}"
    )


def _elsewhere(runs: Sequence[Run], name: str) -> list[Component]:
    """The longest gap of the request of this name under each run."""
    others = compared(runs)
    if len(others) < 2:
        return []
    longest = {run.index: _longest_ns(run, name) for run in others}
    most = max((ns for ns in longest.values() if ns is not None), default=1)
    rows = [_run_row(run, longest[run.index], most) for run in others]
    return [
        html.H3(f"{shown(name)}'s longest gap in each run", **named("gap")),
        html.Table(html.Tbody(rows), className="parts elsewhere"),
    ]


def _longest_ns(run: Run, name: str) -> int | None:
    rid = run.timeline.request_by_name(name)
    gap = run.timeline.longest_gap(rid) if rid is not None else None
    return None if gap is None else gap.gap_ns


def _run_row(run: Run, longest_ns: int | None, most_ns: int) -> html.Tr:
    bar = (
        html.Span(className="bar stall", style={"width": f"{max(1.0, 100 * longest_ns / most_ns):.1f}px"})
        if longest_ns
        else ""
    )
    return html.Tr(
        [
            html.Th([html.B(run.letter), " ", html.Span(run.title, className="label")], scope="row"),
            html.Td(bar),
            html.Td(seconds(None if longest_ns is None else longest_ns / 1e9)),
        ]
    )
