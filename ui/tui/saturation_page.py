"""The Saturation screen as lines: a view composed for a terminal of some size."""

from collections.abc import Iterator

from ui import words
from ui.tui.frame import bar_line, key_bar, rule, too_small
from ui.tui.head import PRODUCT, badge, tab_line
from ui.tui.ink import Ink
from ui.tui.price_panel import MORE, price_panel
from ui.tui.saturation_answer import headline
from ui.tui.saturation_basis import basis_groups, price_groups
from ui.tui.saturation_charts import chart_basis, throughput_lines, time_lines, tokens_axis_line
from ui.tui.saturation_layout import SaturationLayout, saturation_layout
from ui.tui.saturation_view import SaturationView
from ui.tui.text import Line, between, cut, fit, shown, span_length, together, wrapped

__all__ = ["compose_saturation"]

FOOT_ROWS = 4
KEYS = (
    ("←→", "chunk"),
    ("p", "policy"),
    ("l", "limit"),
    ("↑↓", "move it"),
    ("0", "none"),
    ("Enter", "basis"),
    ("1", "replay"),
    ("q", "quit"),
)


def compose_saturation(
    view: SaturationView, width: int, height: int, *, prices_first: bool = False
) -> list[Line]:
    """`height` lines of `width` cells each."""
    place = saturation_layout(width, height, prices_first=prices_first)
    if place is None:
        lines: list[Line] = [too_small(width, height)]
    else:
        lines = [*_head(view, place), *_body(view, place), *_foot(view, place), _last(view, place)]
    return [fit(line, width) for line in (lines + [[]] * height)[:height]]


def _head(view: SaturationView, place: SaturationLayout) -> list[Line]:
    right = together(
        [[(badge(dict(view.meta), hardware=place.wide), Ink.BAR)], *_points(view)], 60, ink=Ink.BAR
    )
    name = shown(view.name, place.width - 70 if place.wide else 24)
    left: Line = [(f" {PRODUCT}", Ink.BAR_STRONG), (f"  {name}", Ink.BAR)]
    title = between(left, [*right, (" ", Ink.BAR)], place.width, Ink.BAR)
    tabs = tab_line(place.width, "Saturation")
    rows, cells = (2, place.width - 2) if place.wide else (1, place.width - 1)
    said = cut(wrapped(headline(view, brief=not place.wide), cells), rows, cells, MORE)
    above: list[Line] = [[]] * (rows - len(said))
    head = [title, tabs, *above, *([(" ", Ink.BLANK), *line] for line in said)]
    return [*head, rule(place.width)] if place.wide else head


def _points(view: SaturationView) -> Iterator[Line]:
    report = view.report
    if report is not None and report.found.num_points:
        sizes = words.plural(report.found.num_sizes, "size")
        yield [(f"{sizes}, {words.plural(report.found.num_points, 'forward')}", Ink.BAR)]
    if view.growing:
        yield [("still growing", Ink.BAR_ACCENT)]


def _body(view: SaturationView, place: SaturationLayout) -> list[Line]:
    rows = place.body_rows
    left = _charts(view, place.columns, rows) if place.left_cells else []
    right = price_panel(view, place.right_cells, rows, wide=place.wide) if place.right_cells else []
    if not left or not right:
        return [[(" ", Ink.BLANK), *line] for line in left or right]
    return [
        [(" ", Ink.BLANK), *fit(chart, place.left_cells), (" │ ", Ink.RULE), *fit(prices, place.right_cells)]
        for chart, prices in zip(left, right, strict=True)
    ]


def _charts(view: SaturationView, columns: int, rows: int) -> list[Line]:
    """Two heads, and a line of tokens below; the forward time gets a little less of what is left."""
    charts = rows - 3
    upper = (charts + 1) // 2
    return [
        [("Throughput, tok/s", Ink.STRONG), *chart_basis(view)],
        *throughput_lines(view, columns, upper),
        [("Forward time, ms (log)", Ink.STRONG)],
        *time_lines(view, columns, charts - upper),
        tokens_axis_line(view, columns),
    ]


def _foot(view: SaturationView, place: SaturationLayout) -> list[Line]:
    """What the point rests on."""
    rows = FOOT_ROWS if place.wide else 1
    said = _packed(basis_groups(view), place.width - 2)
    if len(said) > rows:
        said = [*said[: rows - 1], said[-1]]
    said += price_groups(view)[: rows - len(said)]
    head: list[Line] = [[("What the point rests on", Ink.STRONG)]] if place.wide else []
    empty: Line = []
    lines = [*head, *said, *([empty] * (rows - len(said)))]
    return [rule(place.width), *([(" ", Ink.BLANK), *line] for line in lines)]


def _packed(groups: list[Line], cells: int) -> list[Line]:
    """As many groups to a line as fit, in their order."""
    lines: list[Line] = []
    for group in groups:
        joined: Line = [*lines[-1], ("   ", Ink.BLANK), *group] if lines else group
        if lines and span_length(joined) <= cells:
            lines[-1] = joined
        else:
            lines.append(group)
    return lines


def _last(view: SaturationView, place: SaturationLayout) -> Line:
    if view.message:
        return bar_line(view.message, place.width)
    return key_bar((("u", "update"), *KEYS) if view.growing else KEYS, place.width)
