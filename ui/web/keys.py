"""What each key does, and the dialog that says so."""

from collections.abc import Iterable

from dash import html

from ui.web.attributes import aria

__all__ = ["help_dialog", "key_hints"]

_KEYS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
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
        "Page",
        (
            ("/", "search a request or #forward"),
            ("Enter", "open, close the details where the window is narrow"),
            ("l", "to the limits of the Saturation page"),
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
    """The dialog that `?` opens."""
    groups = [html.Section([html.H3(title), html.Table(html.Tbody(_rows(keys)))]) for title, keys in _KEYS]
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
