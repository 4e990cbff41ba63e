"""What the Saturation screen rests on, in full: answer, advice, point, prices, model, roof and FLOPs."""

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from profiler.roofline_above import WHY_ABOVE, AboveReason
from ui import words
from ui.si_words import bandwidth, dtype_word, flop_rate
from ui.tui.ink import Ink
from ui.tui.saturation_answer import headline
from ui.tui.saturation_basis import model_basis, point_basis
from ui.tui.saturation_view import SaturationView
from ui.tui.text import Line

if TYPE_CHECKING:
    from profiler.saturation_board import SaturationBoard

__all__ = ["basis_page"]

NAME_CELLS = 15


def basis_page(view: SaturationView, cells: int) -> list[Line]:
    """Names and what is known of them, wrapped to so many cells."""
    from profiler import advice_words  # loads scipy, as the advice did

    said = "".join(text for text, _ in headline(view, brief=False))
    parts: list[tuple[str, Iterable[tuple[str, str]]]] = [(said, ())]
    if view.advice is not None:
        parts.append((advice_words.answer(view.advice), [("", s) for s in advice_words.reasons(view.advice)]))
    parts.append(("What the point rests on", point_basis(view)))
    if view.advice is not None:
        parts.append(("What the prices rest on", advice_words.basis(view.advice)))
    if view.board is not None:
        parts.append(("Model of a forward", model_basis(view.board)))
        parts.append(("Roof and FLOPs", [*_roof(view.board), *_conventions(view.board)]))
    lines: list[Line] = []
    for title, told in parts:
        lines += [[]] if lines else []
        lines += [[(line, Ink.STRONG)] for line in textwrap.wrap(title, cells)]
        for name, text in told:
            lines += _wrapped(name, text, cells)
    return lines


def _wrapped(name: str, text: str, cells: int) -> Iterator[Line]:
    """The name once, and the text beside it; a sentence without a name takes the whole width."""
    room = NAME_CELLS if name else 0
    for i, line in enumerate(textwrap.wrap(text, max(cells - room, 1), break_on_hyphens=False)):
        yield [(f"{'' if i else name:<{room}}", Ink.MUTED), (line, Ink.TEXT)]


def _roof(board: "SaturationBoard") -> Iterator[tuple[str, str]]:
    """What the roof rests on, and how many points lie above it for what reason."""
    chosen = board.roofs.chosen
    if chosen is None:
        yield "roof", board.lacking.get("roof", words.UNKNOWN)
        return
    roof = chosen.roof
    rates = f"{flop_rate(roof.flops_per_s)}, {roof.traffic} {bandwidth(roof.bytes_per_s)}"
    yield "roof", f"{dtype_word(roof.dtype)} {rates}: {words.name(chosen.words)}"
    for noun, above in (("forward", board.forwards_above), ("operator", board.operators_above)):
        for reason, number in Counter(above["reason"].to_list()).most_common():
            yield "above it", f"{words.plural(number, noun)}, {reason}: {WHY_ABOVE[AboveReason(reason)]}"


def _conventions(board: "SaturationBoard") -> Iterator[tuple[str, str]]:
    """FLOPs of all forwards counted in three ways."""
    told = board.conventions
    for name, label in (("exact", "exact"), ("sglang", "as SGLang does"), ("naive", "2 · params · T")):
        total, ratio = told.total[name], told.ratio(name)
        times = "" if ratio is None or name == "exact" else f", {ratio:.3f} of the exact count"
        yield label, words.UNKNOWN if total is None else f"{flop_rate(total).removesuffix('/s')}{times}"
