"""The bottom of the screen: the trace's numbers, the legend, the whole trace with its stalls, the keys."""

from collections.abc import Iterator

from profiler.timeline.kpis import Kpis
from ui import words
from ui.tui.axis import tick_cells
from ui.tui.cells import Cells, blank
from ui.tui.frame import key_bar
from ui.tui.glyphs import Marks
from ui.tui.ink import Ink
from ui.tui.layout import Layout
from ui.tui.picture import Picture
from ui.tui.stall_index import StallIndex
from ui.tui.text import Line, fit, together

__all__ = ["key_line", "kpi_brief", "kpi_lines", "legend_line", "seek_brief", "seek_lines"]

HIDDEN = 5.0  # the longest gap is drawn as bad when it is this many times the median one

KEYS = (
    ("Space", "play"),
    ("←→", "step"),
    ("[ ]", "stall"),
    ("WS", "zoom"),
    ("AD", "pan"),
    ("f", "fit"),
    ("g", "go to"),
    ("m", "mark"),
    ("/", "search"),
    ("↑↓", "lane"),
    ("Enter", "gap"),
    ("q", "quit"),
)
BRIEF_KEYS = (
    ("Space", "play"),
    ("←→", "step"),
    ("]", "stall"),
    ("WASD", "view"),
    ("2", "stalls"),
    ("/", "find"),
    ("Enter", "state"),
    ("q", "quit"),
)

BRIEF_NAMES = {
    "TTFT longest": "TTFT ",
    "ITL longest": "ITL max ",
    "ITL p50": "p50 ",
    "ITL p99": "p99 ",
    "output": "out ",
    "budget fill": "fill ",
}


def kpi_lines(kpis: Kpis, place: Layout) -> list[Line]:
    """Names above, values below, in the order of all views."""
    share = (place.width - 2) // 8
    names: Line = [(" ", Ink.BLANK)]
    values: Line = [(" ", Ink.BLANK)]
    for name, value, ink in _kpis(kpis):
        names += fit([(name, Ink.MUTED)], share)
        values += fit([(value, ink)], share)
    return [fit(names, place.width), fit(values, place.width)]


def kpi_brief(kpis: Kpis, cells: int) -> Line:
    """The numbers on one line."""
    groups: Iterator[Line] = (
        [(BRIEF_NAMES[name], Ink.MUTED), (value, ink)]
        for name, value, ink in _kpis(kpis)
        if name in BRIEF_NAMES
    )
    return together(groups, cells)


def legend_line(marks: Marks, place: Layout) -> Line:
    """What the glyphs of the lanes mean."""
    entries = (
        (marks.decode, Ink.DECODE, "decode"),
        (f"{marks.chunk}1{marks.chunk}", Ink.CHUNK, "chunk"),
        (marks.stall * 2, Ink.STALL, "stall: others' prefill"),
        (marks.mixed * 2, Ink.MIXED, "mixed extra"),
        (marks.held * 2, Ink.HELD, "no KV"),
        (marks.queued * 2, Ink.QUEUED, "queued"),
        ("◆", Ink.GOOD, "first token"),
        ("▼", Ink.STRONG, "cursor"),
    )
    groups: Iterator[Line] = ([(glyph, ink), (f" {text}", Ink.MUTED)] for glyph, ink, text in entries)
    return [(" ", Ink.BLANK), *together(groups, place.width - 2, gap=3)]


def seek_lines(picture: Picture, place: Layout) -> list[Line]:
    """The whole trace: the cursor and the range in sight, the stalls, and the time."""
    columns = place.width - 2
    view = picture.view
    stalls = _stalls(picture, columns)
    ticks = tick_cells(view.first_ns, max(view.last_ns, view.first_ns + 1), columns)
    return [_inset(_seek(picture, columns)), _inset(stalls), _inset(ticks)]


def seek_brief(picture: Picture, place: Layout) -> Line:
    """The whole trace on one row: what lies before the cursor is a line, after it the stalls are seen."""
    columns = place.width - 2
    cells, stalls = _seek(picture, columns), _stalls(picture, columns)
    ahead = (cells.ink == Ink.RULE) & (stalls.ink != Ink.BLANK)
    cells.glyph[ahead], cells.ink[ahead] = stalls.glyph[ahead], stalls.ink[ahead]
    return _inset(cells)


def key_line(place: Layout) -> Line:
    """The keys that there is room for."""
    keys = KEYS if place.wide else BRIEF_KEYS
    return key_bar(keys, place.width, 2 if place.wide else 1)


def _kpis(kpis: Kpis) -> list[tuple[str, str, Ink]]:
    longest, median = kpis.itl_s.max, kpis.itl_s.p50
    wall = longest is not None and median is not None and longest > HIDDEN * median
    use = None
    if kpis.kv_pages_peak is not None and kpis.kv_pages_total:
        use = kpis.kv_pages_peak / kpis.kv_pages_total
    return [
        ("TTFT longest", words.seconds(kpis.ttft_s.max), Ink.STRONG),
        ("ITL longest", words.seconds(longest), Ink.BAD if wall else Ink.STRONG),
        ("ITL p50", words.seconds(median), Ink.STRONG),
        ("ITL p99", words.seconds(kpis.itl_s.p99), Ink.STRONG),
        ("output", words.rate(kpis.output_tokens_per_s, "tok"), Ink.STRONG),
        ("queue max", words.seconds(kpis.queue_longest_s), Ink.STRONG),
        ("KV peak", _share(use), Ink.STRONG),
        ("budget fill", _share(kpis.budget_fill), Ink.STRONG),
    ]


def _share(value: float | None) -> str:
    return words.UNKNOWN if value is None else f"{value * 100:.0f} %"


def _seek(picture: Picture, columns: int) -> Cells:
    view = picture.view
    span_ns = max(view.last_ns - view.first_ns, 1)

    def column(t_ns: int) -> int:
        return min(max((t_ns - view.first_ns) * columns // span_ns, 0), columns - 1)

    cells = blank(columns)
    cells.write(0, "─" * columns, Ink.RULE)
    cells.write(0, "━" * column(view.cursor_ns), Ink.ACCENT)
    if not view.is_whole:
        cells.write(column(view.start_ns), "[", Ink.STRONG)
        cells.write(column(view.end_ns - 1), "]", Ink.STRONG)
    if picture.mark_ns is not None:
        cells.write(column(picture.mark_ns), "▽", Ink.WATCH)
    cells.write(column(view.cursor_ns), "●", Ink.STRONG)
    return cells


def _stalls(picture: Picture, columns: int) -> Cells:
    source, whole = picture.source, (picture.view.first_ns, picture.view.last_ns, columns)
    return source.keep(("stalls", *whole), lambda _: _stall_cells(source.stalls(), *whole, picture.marks))


def _stall_cells(stalls: StallIndex, start_ns: int, end_ns: int, columns: int, marks: Marks) -> Cells:
    cells = blank(columns)
    for mixed, glyph, ink in ((True, marks.mixed, Ink.MIXED), (False, marks.stall, Ink.STALL)):
        covered = stalls.covered(start_ns, end_ns, columns, mixed=mixed)
        cells.glyph[covered], cells.ink[covered] = glyph, ink
    return cells


def _inset(cells: Cells) -> Line:
    return [(" ", Ink.BLANK), *cells.spans(), (" ", Ink.BLANK)]
