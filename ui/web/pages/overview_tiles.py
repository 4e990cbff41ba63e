"""The six tiles of the Overview page: a number that a user feels, and below it what it hides."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from dash import html
from dash.development.base_component import Component

from engine.batch import ForwardMode
from profiler.latency import Spread
from profiler.overview import Overview
from profiler.overview_waits import LongWait
from ui.si_words import percent
from ui.stall_words import names_words
from ui.web.metric_heads import named
from ui.web.names import shown
from ui.words import UNKNOWN, count, plural, rate, seconds

__all__ = ["tiles"]

_LATE_S = 0.2  # a wait for a token that a reader notices


class _Tile(NamedTuple):
    """A label, the key of its entry in `ui.metric_entries`, the value, the lines below, why there is none."""

    label: str
    entry: str
    value: Callable[[Overview], str]
    notes: Callable[[Overview], Sequence[str]]
    nothing: str


def tiles(told: Overview) -> list[Component]:
    """One after another, in the order in which they are read."""
    return [_tile(tile, told) for tile in _TILES]


def _tile(tile: _Tile, told: Overview) -> html.Div:
    value = tile.value(told)
    number, _, unit = value.rpartition(" ") if " " in value else (value, "", "")
    notes = (tile.nothing,) if value == UNKNOWN else tile.notes(told)
    late = tile.entry == "itl_longest" and (told.kpis.itl_s.max or 0.0) > _LATE_S
    return html.Div(
        [
            html.Dt(tile.label),
            html.Dd([html.B(number), html.Span(f" {unit}")], className="late" if late else None),
            *(html.Dd(note, className="note", title=note) for note in notes),
        ],
        **named(tile.entry),
    )


def _spread(spread: Spread) -> str:
    return f"p50 {seconds(spread.p50)} · p99 {seconds(spread.p99)}"


def _who(wait: LongWait | None) -> list[str]:
    if wait is None:
        return []
    prompt = "" if wait.prompt_tokens is None else f", prompt of {count(wait.prompt_tokens)}"
    return [f"{shown(wait.name)}{prompt}"]


def _in_queue(told: Overview) -> list[str]:
    if told.queued is None or not told.behind:
        return _who(told.queued)
    return [f"{shown(told.queued.name)}, behind {names_words(told.behind, shown, most=2)}"]


def _victims(told: Overview) -> list[str]:
    longest = told.report.longest
    return [] if longest is None else [names_words(longest.names, shown)]


def _output(told: Overview) -> list[str]:
    prompts = told.sums.extend_tokens
    into = [] if prompts is None else [f"{count(prompts)} prompt tokens in"]
    return [f"{plural(told.kpis.output_tokens, 'token')} out", *into]


def _peak(told: Overview) -> str:
    peak, total = told.kpis.kv_pages_peak, told.kpis.kv_pages_total
    if peak is None:
        return UNKNOWN
    return percent(peak / total) if total else plural(peak, "page")


def _pages(told: Overview) -> list[str]:
    total = told.kpis.kv_pages_total
    evicted, retracted = told.pool.evicted_pages, told.pool.retracted_reqs
    lost = [f"{count(evicted)} evicted"] if evicted is not None else []
    lost += [f"{count(retracted)} retracted"] if retracted is not None else []
    peak = [f"{count(told.kpis.kv_pages_peak)} of {plural(total, 'page')}"] if total else []
    return [*peak, *([" · ".join(lost)] if lost else [])]


def _prefills(told: Overview) -> list[str]:
    modes = told.sums.forwards_by_mode
    prefills = sum(modes.get(mode.name, 0) for mode in (ForwardMode.EXTEND, ForwardMode.MIXED))
    largest = told.kpis.largest_forward_tokens
    return [f"{plural(prefills, 'prefill forward')}", f"largest of {count(largest)} tokens"]


_TILES = (
    _Tile(
        "TTFT, longest",
        "ttft_longest",
        lambda told: seconds(told.kpis.ttft_s.max),
        lambda told: [_spread(told.kpis.ttft_s), *_who(told.first_token)],
        "no first token is recorded",
    ),
    _Tile(
        "ITL, longest",
        "itl_longest",
        lambda told: seconds(told.kpis.itl_s.max),
        lambda told: [_spread(told.kpis.itl_s), *_victims(told)],
        "no gap is recorded",
    ),
    _Tile(
        "Output throughput",
        "output_rate",
        lambda told: rate(told.kpis.output_tokens_per_s),
        _output,
        "no token is recorded",
    ),
    _Tile(
        "Queue, longest wait",
        "queue_longest",
        lambda told: seconds(told.kpis.queue_longest_s),
        lambda told: ["to the first chunk", *_in_queue(told)],
        "no arrival is recorded",
    ),
    _Tile("KV pages, peak use", "kv_pages_peak", _peak, _pages, "no pages are recorded"),
    _Tile(
        "Budget fill, prefill forwards",
        "budget_fill",
        lambda told: percent(told.kpis.budget_fill),
        _prefills,
        "no chunk budget is recorded",
    ),
)
