"""What stands around every page: top bar, notices, the side panel, dialogs."""

from collections.abc import Mapping, Sequence

from dash import dcc, html
from dash.development.base_component import Component

from ui.web.attributes import aria, data
from ui.web.keys import help_dialog
from ui.web.runs import Run, badge, compared
from ui.web.state_panel import state_panel

__all__ = ["notices", "shell"]


def shell(runs: Sequence[Run], pages: Mapping[str, str]) -> Component:
    """The frame that a router fills; `pages` are titles by path. The page's script works its buttons."""
    return html.Div(
        [
            *(dcc.Store(id=name) for name in ("route", "view", "choice")),
            _top_bar(runs, pages),
            html.Div(id="notices", role="status"),
            html.Div([html.Div(_loading(), id="page"), _side(runs)], className="stage"),
            help_dialog(),
            _search(),
        ],
        id="shell",
    )


def notices(lines: Sequence[str]) -> list[Component]:
    """One line for each thing that could not be shown as asked."""
    return [html.P(line) for line in lines]


def _top_bar(runs: Sequence[Run], pages: Mapping[str, str]) -> Component:
    links = [html.A(title, href=path, **data(page=path)) for path, title in pages.items()]
    names = " · ".join(run.title for run in runs)
    count = f"{len(runs)} runs" if len(runs) > 1 else runs[0].title
    return html.Header(
        [
            html.Strong("Chunkscope", className="product"),
            html.Nav(links, **aria(label="Pages")),
            html.Span(count, className="trace-name", title=names),
            html.Span(
                [html.Span("◇ ", className="diamond"), html.Span(badge(runs), className="label")],
                className="badge",
                title="where the numbers come from",
            ),
            html.Span(id="live-badge", className="badge live", hidden=True, role="status"),
            html.Button(
                ["▸ ", html.Output("–", id="chip-time")],
                id="chip",
                title="cursor: open or close the scheduler's state",
                **data(act="drawer"),
                **aria(controls="side", expanded="false"),
            ),
            _key_button("theme", "t", "theme"),
            _key_button("search", "/", "search"),
            _key_button("help", "?", "keys"),
            html.Button(
                "copy link", title="copy the address of this view", className="plain", **data(act="copy")
            ),
        ],
        className="top",
    )


def _key_button(act: str, key: str, words: str) -> Component:
    return html.Button(
        [html.Kbd(key), f" {words}"], className="plain", **data(act=act), **aria(keyshortcuts=key)
    )


def _side(runs: Sequence[Run]) -> Component:
    return html.Aside(
        [
            html.Button("Close", className="only-drawer", **data(act="drawer")),
            html.Section(id="gap-panel", **aria(live="polite", label="Selected gap")),
            html.Section(id="sums-panel", **aria(live="polite", label="Sums of the selection")),
            state_panel(compared(runs)),
        ],
        id="side",
        **aria(label="Details"),
    )


def _search() -> Component:
    return html.Dialog(
        [
            html.Label("Request name, or #forward", htmlFor="search-text"),
            dcc.Input(id="search-text", type="text", autoComplete="off", spellCheck=False, maxLength=200),
            html.Ol(id="search-found", **aria(label="Found requests")),
            html.P(id="search-note", className="muted small", role="status"),
        ],
        id="search",
        **aria(label="Search"),
    )


def _loading() -> Component:
    return html.Main(
        html.P([html.Span(className="busy"), "Reading the trace"], role="status"), className="loading"
    )
