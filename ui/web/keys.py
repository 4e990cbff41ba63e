"""What each key does on each page, and the dialog that says so."""

from collections.abc import Iterable

from dash import html

from ui.web.attributes import aria, data

__all__ = ["help_dialog", "key_hints"]

_Group = tuple[str, str, tuple[tuple[str, str], ...]]  # the pages' names, the title, keys with what they do

_OVERVIEW, _COMPARE, _STALLS, _SATURATION = "overview", "compare", "stalls", "saturation"
_ALL = "overview compare stalls saturation trace"
_KEYS: tuple[_Group, ...] = (
    (
        _OVERVIEW,
        "Stalls and runs",
        (
            ("↑ ↓", "the next, the previous of the worst stalls; also [ and ]"),
            ("Enter", "the ledger of the chosen stall; on a link: where it leads"),
            ("1…6", "another run, where there are several"),
        ),
    ),
    (
        _STALLS,
        "Stalls",
        (
            ("↑ ↓", "in a list: the next, the previous row"),
            ("Enter", "on a row: its ledger; on a chunk: to its forward"),
            ("[ ]", "previous, next stall"),
        ),
    ),
    (
        _COMPARE,
        "Time axis",
        (
            ("W S", "zoom in, out; hold for more"),
            ("A D", "pan left, right"),
            ("f", "fit all, or the selection"),
            ("drag", "select an interval and sum it"),
            ("m", "select the gap, or the range in view"),
            ("shift+drag wheel", "pan; ctrl+wheel zooms at the pointer"),
            ("Esc", "clear the selection, the gap"),
        ),
    ),
    (
        _COMPARE,
        "Cursor",
        (
            ("Space", "play, pause"),
            ("← →", "previous, next forward"),
            ("[ ]", "previous, next stall"),
            (", .", "slower, faster; also - and +"),
            ("1…6", "the run that the state panel follows"),
        ),
    ),
    (
        _SATURATION,
        "Limits and choices",
        (
            ("l", "to the sliders: what you accept"),
            ("← →", "on a slider: a stop lower, higher; on run, policy, roof: another one"),
            ("Home End", "on a slider: its first, its last stop"),
            ("Tab", "the next slider, choice, table"),
        ),
    ),
    (
        _SATURATION,
        "Tables and charts",
        (
            ("Enter", "on the name of a table: open, close it"),
            ("↑ ↓", "in a table: scroll"),
            ("drag", "in a chart: zoom in; a double click shows all"),
        ),
    ),
    (
        _ALL,
        "Page",
        (
            ("/", "search a request or #forward"),
            ("Enter", "open, close the details where the window is narrow"),
            ("t", "light, dark"),
            ("?", "these keys"),
        ),
    ),
)
_HINTS = (
    ("W S", "zoom"),
    ("A D", "pan"),
    ("f", "fit"),
    ("m", "mark"),
    ("[ ]", "previous, next stall"),
    ("← →", "step"),
    ("Space", "play"),
)


def help_dialog() -> html.Dialog:
    """The dialog that `?` opens; the style sheet leaves out what belongs to other pages."""
    groups = [
        html.Section([html.H3(title), html.Table(html.Tbody(_rows(keys)))], **data(pages=pages))
        for pages, title, keys in _KEYS
    ]
    return html.Dialog(
        [
            html.H2("Keys"),
            html.Div(groups, className="groups"),
            html.Form(html.Button("Close"), method="dialog"),
        ],
        id="help",
        **aria(label="Keys"),
    )


def key_hints() -> html.Ul:
    """The keys of the timeline, in one line."""
    return html.Ul([html.Li([*_caps(keys), html.Span(text)]) for keys, text in _HINTS], className="hints")


def _rows(keys: Iterable[tuple[str, str]]) -> list[html.Tr]:
    return [html.Tr([html.Th(_caps(caps), scope="row"), html.Td(text)]) for caps, text in keys]


def _caps(keys: str) -> list[html.Kbd]:
    return [html.Kbd(key) for key in keys.split()]
