"""The Stalls page's table of first tokens: what each request waited for before its first one."""

from collections.abc import Iterable, Mapping, Sequence

from dash import html
from dash.development.base_component import Component

from engine.batch import StopReason
from profiler.ledger.ttft import read_ttft
from profiler.ledger.ttft_lines import TtftLine, ttft_lines
from profiler.ledger.ttft_parts import TtftKind, TtftLedger, TtftTotals
from profiler.ledger.ttft_source import TtftSource
from profiler.ledger.ttft_totals import sum_ttft
from traces.reader import open_trace
from ui.stall_words import names_words
from ui.web.attributes import data
from ui.web.instants import instant_link
from ui.web.ledger_table import even_ms
from ui.web.metric_heads import head, name_head
from ui.web.names import shown
from ui.web.pages.stalls_rows import MOST_ROWS, more_rows, rows_table
from ui.web.runs import Run
from ui.words import UNKNOWN, plural, seconds

__all__ = ["TTFT_PARTS", "TtftOf", "ttft_parts"]

TTFT_PARTS = {"ttft": "children", "ttft-note": "children", "ttft-section": "hidden"}
"""Every part of the page about first tokens, and the property that holds it."""

_COLUMNS: Mapping[str, tuple[str, tuple[TtftKind, ...]]] = {  # swatch and kinds; every kind is in one
    "queue": ("queued", (TtftKind.QUEUED,)),
    "blocked": ("queued", (TtftKind.BLOCKED,)),
    "interval": ("deferred", (TtftKind.DEFERRED,)),
    "others' prefill": ("stall", (TtftKind.OTHERS_PREFILL, TtftKind.OTHERS_MIXED)),
    "others' decodes": ("others-decodes", (TtftKind.OTHERS_DECODE,)),
    "retracted": ("held", (TtftKind.RETRACTED,)),
    "own chunks": ("prefill", (TtftKind.OWN_CHUNKS,)),
    "own decodes": ("decode", (TtftKind.OWN_DECODE,)),
    "host": ("host", (TtftKind.PLAN, TtftKind.LAUNCH, TtftKind.RESULT, TtftKind.WAIT)),
    "idle": ("idle", (TtftKind.IDLE,)),
    "not told": ("untold", (TtftKind.UNTOLD,)),
}
_ALWAYS = ("queue", "blocked", "others' prefill", "own chunks", "host")
_BUDGETS = (StopReason.TOTAL, StopReason.CURRENT, StopReason.INPUT, StopReason.CHUNK)


class TtftOf:
    """The slowest first tokens of each run, kept for as much of it as there is; traces are opened anew."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], tuple[TtftTotals, tuple[TtftLedger, ...]]] = {}

    def __call__(self, run: Run) -> tuple[TtftTotals, tuple[TtftLedger, ...]]:
        """Sums over all requests, and the ledgers of the slowest. TraceError if it cannot be read."""
        key = (str(run.timeline.path), run.timeline.num_forwards)
        if key not in self._kept:
            source = TtftSource.of(open_trace(run.timeline.path))
            totals = sum_ttft(source, MOST_ROWS)
            ledgers = (read_ttft(source, each.rid) for each in totals.worst)
            self._kept[key] = totals, tuple(ledger for ledger in ledgers if ledger is not None)
        return self._kept[key]


def ttft_parts(run: Run, totals: TtftTotals, ledgers: Sequence[TtftLedger]) -> dict[str, object]:
    """All parts for a run; without first tokens the section is hidden."""
    if not ledgers:
        return {"ttft": [], "ttft-note": "", "ttft-section": True}
    more = more_rows(totals.requests, "request", "with less")
    note = (
        f"{plural(totals.requests, 'request')}, {seconds(totals.waiting_ns / 1e9)} in sum, "
        f"the longest {seconds(ledgers[0].ttft_ns / 1e9)}"
    )
    return {"ttft": [_table(run, ledgers), *more], "ttft-note": note, "ttft-section": False}


def _table(run: Run, ledgers: Sequence[TtftLedger]) -> html.Table:
    columns = {
        words: kinds
        for words, (_, kinds) in _COLUMNS.items()
        if words in _ALWAYS or any(ledger.sum_ns(kinds) for ledger in ledgers)
    }
    heads = [
        name_head("request"),
        head("ttft_ledger", "TTFT"),
        head("ttft_ledger", "what it went to", className="words"),
        *(head("ttft_ledger", words) for words in columns),
        head("blocked_by", "blocked by which budget", className="words"),
    ]
    most_ns = ledgers[0].ttft_ns or 1
    rows = [_row(run, ledger, list(columns.values()), most_ns) for ledger in ledgers]
    return rows_table("What the time to each first token went to", heads, rows, "ttft")


def _row(run: Run, ledger: TtftLedger, columns: Iterable[tuple[TtftKind, ...]], most_ns: int) -> html.Tr:
    name = instant_link(
        shown(ledger.name), run, ledger.arrival_ns, ledger.first_token_ns, title="show it in Compare"
    )
    return html.Tr(
        [
            html.Th(name, scope="row"),
            html.Td(seconds(ledger.ttft_ns / 1e9), className="strong"),
            html.Td(_bar(ledger, most_ns), className="bar-cell"),
            *(_part(ledger.sum_ns(kinds), most_ns) for kinds in columns),
            html.Td(_blocked(ledger), className="words"),
        ],
        **data(ns=ledger.ttft_ns),
    )


def _part(part_ns: int, most_ns: int) -> html.Td:
    if not part_ns:
        return html.Td("0", className="muted", **data(ns=0))
    return html.Td(even_ms(part_ns, most_ns), **data(ns=part_ns))


def _bar(ledger: TtftLedger, most_ns: int) -> Component:
    """Its parts side by side, as long as the request waited."""
    sums = {words: (swatch, ledger.sum_ns(kinds)) for words, (swatch, kinds) in _COLUMNS.items()}
    pieces = [
        html.Span(
            className=f"bar {swatch}",
            style={"flexGrow": ns / ledger.ttft_ns},
            title=f"{words} {seconds(ns / 1e9)}",
        )
        for words, (swatch, ns) in sums.items()
        if ns
    ]
    return html.Div(pieces, className="causes", style={"width": f"{100 * ledger.ttft_ns / most_ns:.2f}%"})


def _blocked(ledger: TtftLedger) -> str:
    """Which budgets ended admission, most time first; at which requests before it; whose chunks had them."""
    lines = sorted((line for line in ttft_lines(ledger) if line.kind is TtftKind.BLOCKED), key=_longest)
    if not lines:
        return _under_way(ledger)
    told = [", ".join(dict.fromkeys(_budget(line.budget) for line in lines))]
    behind = dict.fromkeys(line.behind for line in lines if line.behind is not None)
    if behind:
        told.append(f"behind {names_words(tuple(behind), shown, 1)}")
    if ledger.holders:
        told.append(f"held by {names_words([each.name for each in ledger.holders], shown, 2)}")
    return ", ".join(told)


def _under_way(ledger: TtftLedger) -> str:
    """Of a request that the first round after its arrival admitted: whose chunks ran until then."""
    queued = (part for part in ledger.parts if part.kind is TtftKind.QUEUED)
    names = dict.fromkeys(part.chunk.name for part in queued if part.chunk is not None)
    return f"by none: {names_words(tuple(names), shown, 2)} ran as it arrived" if names else UNKNOWN


def _longest(line: TtftLine) -> int:
    return -line.part_ns


def _budget(reason: StopReason | None) -> str:
    if reason is None:
        return "not told by what"
    words = reason.name.lower().replace("_", " ")
    return f"{words} budget" if reason in _BUDGETS else words
