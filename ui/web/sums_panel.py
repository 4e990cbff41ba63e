"""Exact sums over a selected interval, one column a run, as the trace's rows add up to."""

from collections.abc import Callable, Sequence

from dash import html
from dash.development.base_component import Component

from profiler.timeline.tiles import Sums
from ui.web.attributes import data
from ui.web.metric_heads import named
from ui.web.runs import Run, compared
from ui.words import UNKNOWN, count, seconds

__all__ = ["sums_panel"]

_ROWS: tuple[tuple[str, Callable[[Sums], str]], ...] = (
    ("forwards", lambda sums: count(sums.forwards)),
    ("prefill tokens", lambda sums: count(sums.extend_tokens)),
    ("decode tokens", lambda sums: count(sums.decode_tokens)),
    ("tokens given out", lambda sums: count(sums.output_tokens)),
    ("device busy", lambda sums: UNKNOWN if sums.busy_ns is None else seconds(sums.busy_ns / 1e9)),
    ("TFLOP", lambda sums: UNKNOWN if sums.flops is None else f"{sums.flops / 1e12:,.3f}"),
    ("stalls", lambda sums: count(sums.stalls)),
)


def sums_panel(runs: Sequence[Run], selection: tuple[int, int] | None) -> list[Component]:
    """Sums of each compared run over [start, end), nanoseconds since its start; nothing without."""
    if selection is None:
        return []
    start_ns, end_ns = selection
    shown = compared(runs)
    sums = [
        run.timeline.sums(run.timeline.start_ns + start_ns, run.timeline.start_ns + end_ns) for run in shown
    ]
    heads = [
        html.Td(""),
        *(html.Th(run.letter, scope="col", title=run.title, className="names") for run in shown),
    ]
    rows = [
        html.Tr([html.Th(label, scope="row", **named("selection")), *(html.Td(text(each)) for each in sums)])
        for label, text in _ROWS
    ]
    title = f"Selected {seconds((end_ns - start_ns) / 1e9)}"
    where = f"{start_ns / 1e9:,.3f} to {end_ns / 1e9:,.3f} s. A forward counts where it starts."
    return [
        html.H3(title),
        html.P(where, className="muted small"),
        html.Table(
            [html.Thead(html.Tr(heads)), html.Tbody(rows)],
            className="sums",
            **data(sel=f"{start_ns}-{end_ns}"),
        ),
    ]
