"""The table of a comparison: one row a run, the longest gap before the percentiles that can hide it."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from dash import html

from profiler.sentences import hidden_wall
from profiler.timeline.kpis import Kpis
from ui.web.attributes import data
from ui.web.metric_heads import head, name_head
from ui.web.runs import Run
from ui.words import UNKNOWN, count, memory, rate, seconds

__all__ = ["kpi_table", "p99_note"]

_LATE_S = 0.2  # a gap that a reader notices


@dataclass(frozen=True, slots=True)
class _Column:
    """A head, the key of its entry in `ui.metric_entries`, and what a run has under it."""

    head: str
    entry: str
    value: Callable[[Kpis], float | int | None]
    text: Callable[[Kpis], str]
    best: Callable[..., float] | None = None  # min or max of the runs, drawn bold
    late: Callable[[Kpis], bool] = lambda kpis: False  # drawn in the colour of lost time


_COLUMNS = (
    _Column(
        "longest ITL",
        "itl_longest",
        lambda kpis: kpis.itl_s.max,
        lambda kpis: seconds(kpis.itl_s.max),
        min,
        lambda kpis: (kpis.itl_s.max or 0) > _LATE_S,
    ),
    _Column(
        "ITL > 200 ms",
        "itl_over_200ms",
        lambda kpis: kpis.itl_over_200ms if kpis.gaps else None,
        lambda kpis: f"{count(kpis.itl_over_200ms)} / {count(kpis.gaps)}",
        min,
        lambda kpis: kpis.itl_over_200ms > 0,
    ),
    _Column(
        "ITL p50",
        "itl_p50",
        lambda kpis: kpis.itl_s.p50,
        lambda kpis: seconds(kpis.itl_s.p50),
    ),
    _Column(
        "ITL p99",
        "itl_p99",
        lambda kpis: kpis.itl_s.p99,
        lambda kpis: seconds(kpis.itl_s.p99),
    ),
    _Column(
        "TTFT longest",
        "ttft_longest",
        lambda kpis: kpis.ttft_s.max,
        lambda kpis: seconds(kpis.ttft_s.max),
        min,
    ),
    _Column(
        "longest queue",
        "queue_longest",
        lambda kpis: kpis.queue_longest_s,
        lambda kpis: seconds(kpis.queue_longest_s),
        min,
    ),
    _Column(
        "output",
        "output_rate",
        lambda kpis: kpis.output_tokens_per_s,
        lambda kpis: rate(kpis.output_tokens_per_s),
        max,
    ),
    _Column(
        "largest forward",
        "largest_forward",
        lambda kpis: kpis.largest_forward_tokens,
        lambda kpis: f"{count(kpis.largest_forward_tokens)} tokens",
        min,
    ),
    _Column(
        "peak of one forward",
        "activation_peak",
        lambda kpis: kpis.activation_peak_bytes,
        lambda kpis: memory(kpis.activation_peak_bytes),
        min,
    ),
)


def kpi_table(runs: Sequence[Run]) -> html.Table:
    """One row a run; the best value of a column is bold, a noticeable wait has the colour of lost time."""
    kpis = [run.timeline.kpis for run in runs]
    hidden = any(_hidden(run, each) for run, each in zip(runs, kpis, strict=True))
    heads = [name_head("run"), *(_head(column, hidden) for column in _COLUMNS)]
    return html.Table(
        [
            html.Caption("Each run's latency, output and memory", className="sr-only"),
            html.Thead(html.Tr(heads)),
            html.Tbody([_row(run, each, kpis) for run, each in zip(runs, kpis, strict=True)]),
        ],
        className="kpis",
    )


def p99_note(runs: Sequence[Run]) -> str | None:
    """Says of the run where it is most so that the 99th percentile hides its longest gap."""
    notes = {note: _ratio(run.timeline.kpis) for run in runs if (note := _hidden(run, run.timeline.kpis))}
    return max(notes, key=lambda note: notes[note], default=None)


def _hidden(run: Run, kpis: Kpis) -> str | None:
    return hidden_wall(run.letter, {"itl_s": asdict(kpis.itl_s)})


def _ratio(kpis: Kpis) -> float:
    return (kpis.itl_s.max or 0) / (kpis.itl_s.p99 or 1)


def _head(column: _Column, hidden: bool) -> html.Th:
    mark = hidden and column.head == "ITL p99"
    warning = html.Span(" ▲", className="mark", title="read the longest ITL first") if mark else ""
    return head(column.entry, [column.head, warning], tabIndex=0)


def _row(run: Run, kpis: Kpis, all_kpis: Sequence[Kpis]) -> html.Tr:
    name = html.Button(
        [html.B(run.letter), f" {run.title}"],
        className="plain",
        title=f"to the longest gap of {run.letter}; {run.options}",
        **data(act="worst-of", run=run.index),
    )
    return html.Tr([html.Th(name, scope="row"), *(_cell(column, kpis, all_kpis) for column in _COLUMNS)])


def _cell(column: _Column, kpis: Kpis, all_kpis: Sequence[Kpis]) -> html.Td:
    value = column.value(kpis)
    if value is None:
        return html.Td(UNKNOWN, className="muted", title="the trace does not hold what this needs")
    known = [each for each in map(column.value, all_kpis) if each is not None]
    best = column.best is not None and len(set(known)) > 1 and value == column.best(known)
    names = [*(["late"] if column.late(kpis) else []), *(["best"] if best else [])]
    return html.Td(column.text(kpis), className=" ".join(names) or None)
