"""The replay screen as lines: a picture composed for a terminal of some size."""

from profiler.scheduler_state import SchedulerState
from ui.tui.answer import Answer, alike, answer, open_answer
from ui.tui.chart import axis_line, gauge_lines, lane_lines, strip_lines
from ui.tui.foot import (
    key_line,
    kpi_brief,
    kpi_lines,
    legend_line,
    seek_brief,
    seek_lines,
)
from ui.tui.frame import bar_line, rule, too_small
from ui.tui.head import answer_line, tab_line, title_line
from ui.tui.ink import Ink
from ui.tui.layout import PANEL_CELLS, Layout, layout
from ui.tui.panel import brief_lines, panel_lines
from ui.tui.picture import Following, Picture
from ui.tui.text import Line, fit

__all__ = ["compose"]


def compose(picture: Picture, width: int, height: int) -> list[Line]:
    """`height` lines of `width` cells each."""
    place = layout(width, height, picture.source.timeline.num_requests)
    lines: list[Line]
    if place is None:
        lines = [too_small(width, height)]
    elif not picture.source.timeline.num_forwards:
        lines = _empty(picture, place)
    else:
        state = picture.source.state(picture.view.cursor_ns)
        lines = _wide(picture, place, state) if place.wide else _compact(picture, place, state)
    return [fit(line, width) for line in (lines + [[]] * height)[:height]]


def _wide(picture: Picture, place: Layout, state: SchedulerState) -> list[Line]:
    cursor = picture.view.column(picture.view.cursor_ns, place.columns)
    chart = [
        axis_line(picture, place),
        *strip_lines(picture, place, cursor),
        *lane_lines(picture, place, cursor),
        rule(place.chart_cells),
        *gauge_lines(picture, place, cursor),
    ]
    kpis = picture.source.kpis()
    return [
        title_line(picture, place),
        tab_line(place.width, "Replay", "r requests"),
        [],
        answer_line(_answer(picture, state), place),
        rule(place.width),
        *_beside(chart, panel_lines(state, PANEL_CELLS - 1, len(chart)), place),
        rule(place.width),
        *kpi_lines(kpis, place),
        [],
        legend_line(picture.marks, place),
        [],
        *seek_lines(picture, place),
        _last(picture, place),
    ]


def _compact(picture: Picture, place: Layout, state: SchedulerState) -> list[Line]:
    cursor = picture.view.column(picture.view.cursor_ns, place.columns)
    cells = place.width - 2
    brief = [*brief_lines(state, cells), kpi_brief(picture.source.kpis(), cells)]
    return [
        title_line(picture, place),
        answer_line(_answer(picture, state), place),
        axis_line(picture, place),
        *strip_lines(picture, place, cursor),
        *lane_lines(picture, place, cursor),
        *gauge_lines(picture, place, cursor),
        *([(" ", Ink.BLANK), *line] for line in brief),
        seek_brief(picture, place),
        _last(picture, place),
    ]


def _empty(picture: Picture, place: Layout) -> list[Line]:
    """A trace without forwards: nothing to draw yet, or ever."""
    why = {
        Following.LIVE: "No forward yet: waiting for the first one of the run.",
        Following.DIED: "The run died before its first forward was recorded.",
        Following.ENDED: "The run ended without a forward.",
        Following.UNREADABLE: "The trace cannot be read on, and holds no forward so far.",
        Following.REPLAY: "This trace holds no forward: there is nothing to replay.",
    }[picture.following]
    middle = place.height // 2 - 2
    text: Line = [(" " * max((place.width - len(why)) // 2, 0), Ink.BLANK), (why, Ink.STRONG)]
    body: list[Line] = [*([[]] * middle), text]
    body += [[]] * (place.height - 2 - len(body))
    return [title_line(picture, place), *body, _last(picture, place)]


def _answer(picture: Picture, state: SchedulerState) -> Answer:
    source, t_ns = picture.source, picture.view.cursor_ns
    silent = alike(source.stalls().at(t_ns))
    if not silent and t_ns >= picture.view.last_ns and picture.following is not Following.REPLAY:
        waiting = open_answer(state)
        if waiting is not None:
            return waiting
    gap = source.gap(silent[0]["rid"], silent[0]["token_index"]) if silent else None
    return answer(state, silent, gap, source.ask(lambda timeline: timeline.next_stall(t_ns)))


def _beside(chart: list[Line], panel: list[Line], place: Layout) -> list[Line]:
    """The panel at the right of the chart, which is at least as high."""
    panel = panel + [[]] * (len(chart) - len(panel))
    return [
        [*fit(left, place.chart_cells + 1), ("│ ", Ink.RULE), *fit(right, PANEL_CELLS - 1)]
        for left, right in zip(chart, panel, strict=True)
    ]


def _last(picture: Picture, place: Layout) -> Line:
    return bar_line(picture.message, place.width) if picture.message else key_line(place)
