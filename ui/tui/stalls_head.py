"""The top of the Stalls screen: what all waiting went to, in one sentence and as one bar."""

from ui.part_words import causes_ns
from ui.stall_words import StallsAnswer, stalls_answer
from ui.tui.frame import rule
from ui.tui.head import tab_line, title_line
from ui.tui.ink import Ink
from ui.tui.layout import layout
from ui.tui.picture import Picture
from ui.tui.stalls_bar import cause_legend, stacked
from ui.tui.stalls_layout import StallsLayout
from ui.tui.stalls_view import StallsView
from ui.tui.text import Line, between, shown, span_length

__all__ = ["head_lines"]

NAME_CELLS = 24


def head_lines(view: StallsView, picture: Picture, place: StallsLayout) -> list[Line]:
    """Title, screens, the answer, and the bar with its legend where there is any waiting."""
    title = layout(place.width, place.height, picture.source.timeline.num_requests)
    assert title is not None  # the same size is enough for both
    wide: list[Line] = [[]] if place.wide else []
    lines = [title_line(picture, title), tab_line(place.width, "Stalls"), *wide]
    if view.report is None:
        said = view.lacking or f"taking every gap apart … {view.working_s:.0f} s"
        return [*lines, [(" ", Ink.BLANK), (said, Ink.BAD if view.lacking else Ink.MUTED)]]
    answer = stalls_answer(view.report, _show)
    said_line, left_out = _answer(answer, place.cells)
    lines += [_inset(said_line), *([rule(place.width)] if place.wide else [])]
    if view.report.gaps:
        by_cause = causes_ns(view.report.by_kind)
        right: Line = [(f"  {left_out}.", Ink.MUTED)] if left_out else []
        room = place.cells - span_length(right)
        legend = cause_legend(by_cause, room, wide=place.wide)
        lines += [_inset(stacked(by_cause, place.cells)), _inset(between(legend, right, place.cells))]
    return lines


def _answer(answer: StallsAnswer, cells: int) -> tuple[Line, str | None]:
    """The clauses that there is room for, and the worst wait where there is none for it."""
    line: Line = [(f"{answer.cause}.", Ink.STRONG)]
    if answer.culprit is not None:
        both: Line = [(f"{answer.cause};", Ink.STRONG), (f" {answer.culprit}.", Ink.BAD)]
        line = both if span_length(both) <= cells else line
    if answer.worst is None:
        return line, None
    whole: Line = [*line, (f"  {answer.worst}.", Ink.MUTED)]
    return (whole, None) if span_length(whole) <= cells else (line, answer.worst)


def _show(name: str) -> str:
    return shown(name, NAME_CELLS)


def _inset(line: Line) -> Line:
    return [(" ", Ink.BLANK), *line]
