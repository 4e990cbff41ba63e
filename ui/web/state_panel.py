"""The panel of the scheduler's state at the cursor, and its transport."""

from collections.abc import Sequence

from dash import html

from ui.web.attributes import aria, data
from ui.web.runs import Run

__all__ = ["state_panel"]


def state_panel(runs: Sequence[Run]) -> html.Section:
    """The panel as it stands before the first answer; the page's script fills it and works its buttons."""
    follow = [
        html.Button(run.letter, title=f"follow {run.heading}", **data(act="run", run=run.index))
        for run in runs
    ]
    return html.Section(
        [
            html.Div(
                [html.H3("Scheduler at the cursor"), html.Output("–", id="cursor-time")], className="head"
            ),
            html.Div(_transport(), className="transport", role="group", **aria(label="Play the cursor")),
            html.P(id="state-note", className="small", role="status"),
            html.Div(follow, className="follow", role="group", **aria(label="Run that the state is of")),
            html.Table(
                [html.Caption("Scheduler state", className="sr-only"), html.Tbody(id="state-lines")],
                className="state",
            ),
        ],
        id="state-panel",
        **aria(label="Scheduler's state at the cursor"),
    )


def _transport() -> list[html.Button | html.Output]:
    buttons = (
        ("stall-back", "«", "previous stall", "["),
        ("step-back", "‹", "previous forward", "←"),
        ("play", "▶", "play", "Space"),
        ("step-on", "›", "next forward", "→"),
        ("stall-on", "»", "next stall", "]"),
        ("slower", "−", "slower", ","),
        ("faster", "+", "faster", "."),
    )
    drawn: list[html.Button | html.Output] = [
        html.Button(
            glyph,
            id=f"do-{act}",
            title=f"{words} ({key})",
            **data(act=act),
            **aria(label=words, keyshortcuts=key),
        )
        for act, glyph, words, key in buttons
    ]
    return [*drawn, html.Output("1×", id="speed", title="seconds of the run in a second")]
