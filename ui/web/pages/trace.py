"""Trace: what a trace says of itself, where each column comes from, whether the scheduler's rules hold."""

import threading
from collections.abc import Sequence

import dash
from dash import Input, Output, dcc, html
from dash.development.base_component import Component

from profiler.timeline.timeline import Timeline
from ui.web.attributes import aria
from ui.web.checks import Checks
from ui.web.metric_heads import head, name_head, named
from ui.web.rule_table import rule_table
from ui.web.runs import Run, make_runs
from ui.web.trace_facts import STATES, TableFacts, facts, table_facts
from ui.words import UNKNOWN, binary_bytes, count, plural

__all__ = ["headline", "layout", "register"]

_TICK_MS = 400
_MAY_BE_EMPTY = ("events", "kernels")  # nothing happened to a request, no forward was watched
_GLYPHS = {"measured": "●", "derived": "◐", "missing": "○", "not told": "·"}


def layout(timelines: Sequence[Timeline], theme: str, run: int = 0) -> Component:
    """The page of one run, with the others to choose from."""
    runs = make_runs(timelines)
    choice = dcc.RadioItems(
        id="trace-run",
        options=[{"label": each.heading, "value": each.index} for each in runs],
        value=run,
        className="choice",
        inline=True,
    )
    return html.Main(
        [
            html.Div(choice, hidden=len(runs) == 1, className="choose"),
            html.H1(id="trace-said"),
            html.Div(
                [
                    html.Section(id="trace-facts"),
                    html.Section(id="trace-tables"),
                    html.Section(
                        [html.H2("The scheduler's rules", **named("rules")), html.Div(id="trace-checks")]
                    ),
                ],
                className="columns",
            ),
            dcc.Interval(id="trace-tick", interval=_TICK_MS),
        ],
        className="trace",
    )


def register(app: dash.Dash, timelines: Sequence[Timeline], lock: threading.Lock, checks: Checks) -> None:
    """Show the chosen run, and hold the rules against it in the background; `lock` guards the timelines."""

    @app.callback(
        Output("trace-said", "children"),
        Output("trace-facts", "children"),
        Output("trace-tables", "children"),
        Input("trace-run", "value"),
    )
    def choose(index: int) -> tuple[str, list[Component], list[Component]]:
        with lock:
            run = make_runs(timelines)[index]
            tables = table_facts(run.timeline)
            return headline(run, tables), _facts(run), [*_tables(tables), *_provenance(tables)]

    @app.callback(
        Output("trace-checks", "children"),
        Output("trace-tick", "disabled"),
        Input("trace-tick", "n_intervals"),
        Input("trace-run", "value"),
    )
    def tick(ticks: int | None, index: int) -> tuple[Component, bool]:
        check = checks.ask(timelines[index])
        return rule_table(check), check.done


def headline(run: Run, tables: Sequence[TableFacts]) -> str:
    """What the numbers rest on, in a few words."""
    source = run.timeline.trace.meta.get("provenance") or "of unknown provenance"
    empty = [table.name for table in tables if not table.rows and table.name not in _MAY_BE_EMPTY]
    lacks = f"; empty table{'' if len(empty) == 1 else 's'}: {', '.join(empty)}" if empty else ""
    return f"{run.heading}: {source}, {plural(run.timeline.num_forwards, 'forward')}{lacks}."


def _facts(run: Run) -> list[Component]:
    groups = [
        html.Section(
            [html.H3(title), html.Table(html.Tbody([_fact(*row) for row in rows]))], className="group"
        )
        for title, rows in facts(run.timeline)
        if rows
    ]
    return [html.H2("What it says of itself", **named("trace_facts")), *groups]


def _fact(name: str, value: str) -> html.Tr:
    return html.Tr([html.Th(name, scope="row"), html.Td(value)])


def _tables(tables: Sequence[TableFacts]) -> list[Component]:
    rows = [
        html.Tr(
            [
                html.Th(table.name, scope="row"),
                html.Td(count(table.rows), className=None if table.rows else "absent"),
                html.Td(binary_bytes(table.size_bytes) if table.size_bytes else UNKNOWN),
            ]
        )
        for table in tables
    ]
    heads = [name_head("table"), head("table_rows", "rows"), head("table_bytes", "on disk")]
    table = html.Table([html.Thead(html.Tr(heads)), html.Tbody(rows)], className="numbers")
    return [html.H2("Tables"), table]


def _provenance(tables: Sequence[TableFacts]) -> list[Component]:
    key = [html.Span(f"{_GLYPHS[state]} {state}", className=f"state {state.split()[0]}") for state in STATES]
    return [
        html.H2("Where each column comes from", **named("column_states")),
        html.P(key, className="key"),
        *(
            html.Details(
                [html.Summary([html.B(table.name), f" {_summary(table)}"]), _columns(table)],
                open=table.name == "forwards",
            )
            for table in tables
        ),
    ]


def _summary(table: TableFacts) -> str:
    return ", ".join(f"{count(number)} {state}" for state in STATES if (number := table.states[state]))


def _columns(table: TableFacts) -> Component:
    return html.Ul(
        [
            html.Li(
                [html.Span(_GLYPHS[state], title=state, role="img", **aria(label=state)), f" {column}"],
                className=f"state {state.split()[0]}",
            )
            for column, state in table.columns.items()
        ],
        className="columns-of",
    )
