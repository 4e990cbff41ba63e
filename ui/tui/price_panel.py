"""The right half of the Saturation screen: price list, advice in words, and limits as sliders."""

import math
from collections.abc import Iterator

from ui import words
from ui.tui.ink import BAND, Ink
from ui.tui.limit_steps import LEAST_S, MOST_DECODES, MOST_S
from ui.tui.price_table import policy_words, price_lines, table_rows
from ui.tui.saturation_view import DECODES, KNOBS, SaturationView
from ui.tui.text import Line, between, cut, fit, together, wrapped

__all__ = ["MORE", "price_panel"]

MORE = "… Enter: more"
"""The end of words that there is no more room for."""

NAMES = {"itl_max_s": "ITL, longest", "itl_p99_s": "ITL p99", "ttft_p99_s": "TTFT p99", DECODES: "decodes"}
NAME_CELLS, VALUE_CELLS = 13, 9
LEAST_ADVICE = {True: 5, False: 2}  # rows, on a wide screen and on a compact one


def price_panel(view: SaturationView, cells: int, rows: int, *, wide: bool) -> list[Line]:
    """Exactly so many rows: prices, then as much of the advice as fits, then the limits."""
    gap: list[Line] = [[]] if wide else []
    limits = [*gap, *_titled("Limits", list(_sliders(view, cells)), wide)]
    if view.advice is None:
        why = view.lacking or view.progress
        lines = [_head(view, cells), *_wrapped(why, cells, Ink.BAD if view.lacking else Ink.MUTED)]
        return _filled(lines, limits, cells, rows)
    advice = [*gap, *_titled("Advice", list(_advice(view, cells, bullets=wide)), wide)]
    room = rows - 1 - len(limits)
    least = min(len(advice), LEAST_ADVICE[wide] + 2 * len(gap))
    prices = price_lines(view, cells, min(table_rows(view, cells), room - least))
    advice = cut(advice, room - len(prices), cells, MORE)
    return _filled([_head(view, cells), *prices, *advice], limits, cells, rows)


def _filled(lines: list[Line], last: list[Line], cells: int, rows: int) -> list[Line]:
    """The lines, free rows, and the last lines at the bottom."""
    free: list[Line] = [[]] * (rows - len(lines) - len(last))
    return [fit(line, cells) for line in [*lines, *free, *last]][:rows]


def _head(view: SaturationView, cells: int) -> Line:
    if view.advice is None:
        return [("Price list", Ink.STRONG)]
    prompt = words.count(view.advice.workload.longest_prompt)
    said = ("simulated", policy_words(view.policy), f"prompt {prompt}")
    groups: Iterator[Line] = ([(f"· {text}", Ink.MUTED)] for text in said)
    return [("Price list ", Ink.STRONG), *together(groups, cells - 11, 1)]


def _titled(title: str, lines: list[Line], wide: bool) -> list[Line]:
    return [[(title, Ink.STRONG)], *lines] if wide else lines


def _advice(view: SaturationView, cells: int, *, bullets: bool) -> Iterator[Line]:
    """What to take, then why; without bullets each sentence begins a line all the same."""
    from profiler import advice_words  # loads scipy, as the advice did

    assert view.advice is not None
    mark, room = ("• ", cells - 2) if bullets else ("", cells)
    found = Ink.BAD if view.advised is None else Ink.GOOD
    said = [(advice_words.answer(view.advice), found)]
    said += [(sentence, Ink.TEXT) for sentence in advice_words.reasons(view.advice)]
    for text, ink in said:
        for i, line in enumerate(_wrapped(text, room, ink)):
            yield [(mark if i == 0 else " " * len(mark), Ink.MUTED), *line]


def _sliders(view: SaturationView, cells: int) -> Iterator[Line]:
    track = cells - NAME_CELLS - VALUE_CELLS - 1
    for knob in KNOBS:
        chosen = knob == view.knob
        place, said = _place(view, knob)
        line: Line = [(f"{NAMES[knob]:<{NAME_CELLS}}", Ink.STRONG if chosen else Ink.MUTED)]
        if place is None:
            line.append(("─" * track, Ink.RULE))
        else:
            at = min(max(round(place * (track - 1)), 0), track - 1)
            line += [("━" * at, Ink.ACCENT), ("●", Ink.STRONG), ("─" * (track - 1 - at), Ink.RULE)]
        line = between(line, [(said, Ink.MUTED if place is None else Ink.STRONG)], cells)
        yield [(text, ink | BAND) for text, ink in line] if chosen else line


def _place(view: SaturationView, knob: str) -> tuple[float | None, str]:
    """Where on its track a knob stands, from 0 to 1 in logarithms, if it is set; and its value."""
    if knob == DECODES:
        if view.decodes is None:
            return None, "of trace"
        return math.log(view.decodes) / math.log(MOST_DECODES), words.count(view.decodes)
    limit_s: float | None = getattr(view.limits, knob)
    if limit_s is None:
        return None, "none"
    from profiler.advice_names import limit_words  # loads scipy, as the screen's thread does

    return math.log(limit_s / LEAST_S) / math.log(MOST_S / LEAST_S), limit_words(limit_s)


def _wrapped(text: str, cells: int, ink: Ink) -> Iterator[Line]:
    yield from wrapped([(text, ink)], cells)
