"""The panel of a chosen gap: who waited, what each part of it went to, and what would make it shorter."""

from collections.abc import Sequence

from dash import html
from dash.development.base_component import Component

from profiler.ledger.parts import Chunk, GapDetail
from profiler.ledger.why import mend_gap, why_late
from profiler.sentences import waited, why_waited
from ui.web.answer import why_no_gap
from ui.web.attributes import aria, data
from ui.web.instants import instant_link
from ui.web.ledger_table import chunk_name, ledger_table
from ui.web.metric_heads import named
from ui.web.names import shown, with_shown_names
from ui.web.runs import Run, compared
from ui.words import count, seconds

__all__ = ["gap_panel"]

_MOST_BARS = 64
_MOST_CULPRITS = 6


def gap_panel(runs: Sequence[Run], run: Run, gap: GapDetail | None) -> list[Component]:
    """What the panel shows; without a gap, how to choose one."""
    if gap is None:
        return [
            _over("Gap between tokens"),
            html.H2("No gap is chosen"),
            html.P(_nothing(runs), className="muted"),
        ]
    named_gap = with_shown_names(gap)
    return [
        _over(_place(run, gap)),
        html.H2(waited(named_gap), **named("gap")),
        html.P(why_waited(named_gap), className="lost" if gap.culprits else None),
        html.H3("Ledger of this gap", **named("gap_ledger")),
        ledger_table(run, gap, _MOST_CULPRITS),
        *_chunks(run, gap),
        *_elsewhere(runs, gap.name),
        html.H3("Why it waited"),
        html.P(why_late(named_gap)),
        *_change(run, gap),
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


def _chunks(run: Run, gap: GapDetail) -> list[Component]:
    """One bar a chunk in time order, so that the cost of a growing prefix shows."""
    if gap.costliest is None:
        return []
    chunks = sorted(gap.chunks, key=lambda chunk: -chunk.in_gap_ns)[:_MOST_BARS]
    drawn = sorted(chunks, key=lambda chunk: (chunk.start_ns, chunk.rid))
    left = len(gap.chunks) - len(drawn)
    most = max(chunk.in_gap_ns for chunk in drawn) or 1
    bars = [_bar(run, gap, chunk, chunk.in_gap_ns / most) for chunk in drawn]
    note = f"; the {_MOST_BARS} costliest of {count(len(gap.chunks))}" if left else ""
    return [
        html.H3(
            ["Cost of each chunk ", html.Small(f"in time order{note}", className="muted")],
            **named("chunk_cost"),
        ),
        html.Div(bars, className="bars", role="group", **aria(label="Cost of each chunk")),
        html.P(_costliest(gap, gap.costliest), className="costliest"),
    ]


def _bar(run: Run, gap: GapDetail, chunk: Chunk, height: float) -> html.A:
    """A bar that leads to its forward."""
    label = f"{_chunk(chunk)}: {seconds(chunk.in_gap_ns / 1e9)} of forward {count(chunk.forward_id)}"
    return instant_link(
        "",
        run,
        chunk.start_ns,
        chunk.end_ns,
        gap,
        style={"height": f"{max(4.0, 100 * height):.1f}%"},
        className="costliest" if chunk == gap.costliest else None,
        title=label,
        **aria(label=label),
        **data(ns=chunk.in_gap_ns),
    )


def _costliest(gap: GapDetail, chunk: Chunk) -> str:
    share = 100 * chunk.in_gap_ns / max(1, gap.gap_ns)
    return (
        f"Costliest: {_chunk(chunk)}, tokens [{count(chunk.prefix_len)}, {count(chunk.extend_end)}), "
        f"forward {count(chunk.forward_id)}: {seconds(chunk.in_gap_ns / 1e9)}, {share:.1f} % of the gap."
    )


def _chunk(chunk: Chunk) -> str:
    return chunk_name(chunk.name, chunk.number, chunk.of)


def _change(run: Run, gap: GapDetail) -> list[Component]:
    """One sentence with its option, and the page that has what it costs."""
    found = mend_gap(gap, run.timeline.trace.meta)
    if found is None:
        return []
    option = [html.Code(" ".join(found.option)), html.Br()] if found.option else []
    more = html.A("its whole ledger and what options cost", href="/stalls", **data(page="/stalls"))
    return [html.H3("What would change it"), html.P([*option, found.sentence]), html.P(more)]


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
