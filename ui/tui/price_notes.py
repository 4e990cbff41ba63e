"""What stands below the price list: what its crosses mean, and why the selected row has one."""

import textwrap
from collections.abc import Iterator

from profiler.price_rows import PriceRow
from ui import words
from ui.tui.ink import Ink
from ui.tui.saturation_view import SaturationView
from ui.tui.text import Line, clip, together

__all__ = ["CROSS", "note_lines"]

CROSS = "✕"
LEAST_MARGIN = 0.005  # a share that rounds to 0 %
WIDE_CELLS = 60  # from which there is room for whole sentences


def note_lines(view: SaturationView, cells: int, left_out: int) -> list[Line]:
    """Sentences where there is room for them, else one line; `left_out` rows are out of sight."""
    more = f"{left_out} more: ←→"
    broken = None if view.row is None else _broken(view, view.row, brief=cells < WIDE_CELLS)
    if cells < WIDE_CELLS:
        note = clip(broken or _cross(view.largest_margin, brief=True), cells)
        notes = [note, *([more] if left_out else [])]
        groups: Iterator[Line] = ([(note, Ink.MUTED)] for note in notes)
        return [together(groups, cells, 1)]
    said = [*([more] if left_out else []), _cross(view.largest_margin, brief=False)]
    said.append("of best: a long prompt's throughput")
    told = ["; ".join(said), *([broken] if broken else [])]
    return [[(line, Ink.MUTED)] for text in told for line in textwrap.wrap(text, cells)]


def _cross(margin: float, *, brief: bool) -> str:
    """What a cross means; margins are counted as the choice counts them."""
    if margin < LEAST_MARGIN:
        return f"{CROSS} breaks a limit"
    if brief:
        return f"{CROSS} breaks a limit with +{margin * 100:.0f} %"
    return (
        f"{CROSS} breaks a limit, with up to {margin * 100:.0f} % added, as measured forwards miss the model"
    )


def _broken(view: SaturationView, row: PriceRow, *, brief: bool) -> str | None:
    """Why a row has its cross: its number with the margin, against the limit; None without a cross.

    Of several limits the one that the arrows move.
    """
    from profiler.advice_names import LIMIT_WORDS, limit_words, margin_words  # loads scipy, as the advice did

    broken = [name for name in LIMIT_WORDS if name in view.broken(row)]
    name = view.knob if view.knob in broken else next(iter(broken), None)
    if name is None or view.advice is None:
        return None
    margin, raised_s = view.advice.margins.of(row, name), view.advice.margins.value(row, name)
    margin = margin if margin >= LEAST_MARGIN else 0.0
    raised, limit = words.seconds(raised_s), limit_words(getattr(view.limits, name))
    if brief:
        added = f" (+{margin * 100:.0f} %)" if margin else ""
        return f"{CROSS} {LIMIT_WORDS[name]} {raised}{added} over {limit}"
    chunk = row.options.chunk_tokens
    size = "whole prompts" if chunk is None else words.count(chunk)
    return f"{CROSS} {size}: {LIMIT_WORDS[name]} {raised}{margin_words(margin)}, over {limit}"
