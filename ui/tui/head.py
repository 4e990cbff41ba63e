"""The top of the screen: what is open and how it plays, and the answer at the cursor."""

from typing import Any

from ui.tui.answer import Answer
from ui.tui.axis import decimals_of
from ui.tui.ink import Ink
from ui.tui.layout import Layout
from ui.tui.picture import Following, Picture
from ui.tui.text import Line, between, fit, instant, shown, span_length, together

__all__ = ["answer_line", "badge", "tab_line", "title_line"]

PRODUCT = "Chunkscope"
HARDWARE_CELLS = 24
TABS = ((1, "Replay"), (2, "Stalls"), (3, "Saturation"))


def badge(meta: dict[str, Any], *, hardware: bool) -> str:
    """Whether the numbers are measured, simulated or imported, and of what machine."""
    hardware_name = (meta.get("hardware") or {}).get("name") if hardware else None
    text = f"◇ {shown(str(meta.get('provenance', 'unknown')), 12)}"
    return f"{text} · {shown(str(hardware_name), HARDWARE_CELLS)}" if hardware_name else text


def title_line(picture: Picture, place: Layout) -> Line:
    """Product, trace, provenance, the writer's state, play state, speed, cursor and end."""
    view, trace = picture.view, picture.source.timeline.trace
    decimals = max(decimals_of(view.span_ns, place.columns), 3)
    groups: list[Line] = [[(badge(trace.meta, hardware=place.wide), Ink.BAR)]]
    if picture.following.badge:
        ink = Ink.BAR_ACCENT if picture.following is Following.LIVE else Ink.BAR_STRONG
        groups.append([(picture.following.badge, ink)])
    groups.append([(f"{'▶' if picture.playing else '❙❙'} {picture.speed:g}×", Ink.BAR_STRONG)])
    times = f"{instant(view.cursor_ns, decimals)} / {instant(view.last_ns, decimals)} s "
    right = together([*groups, [(times, Ink.BAR)]], place.width - len(PRODUCT) - 2, ink=Ink.BAR)
    room = place.width - span_length(right) - len(PRODUCT) - 4
    name = shown(trace.path.name.removesuffix(".chunkscope"), room)
    left: Line = [(f" {PRODUCT}", Ink.BAR_STRONG), (f"  {name}", Ink.BAR)]
    return between(left, right, place.width, Ink.BAR)


def tab_line(width: int, shown_tab: str, also: str = "") -> Line:
    """The screens there are, by the digit that opens them."""
    left: Line = [(" ", Ink.BLANK)]
    left += [(f" {digit} {name} ", Ink.TAB if name == shown_tab else Ink.MUTED) for digit, name in TABS]
    return between([*left, (f"  {also}", Ink.MUTED)], [("? help ", Ink.MUTED)], width)


def answer_line(said: Answer, place: Layout) -> Line:
    """Effect, cause, and what comes next; on a narrow screen effect and cause in brief."""
    cause = said.cause if place.wide else said.brief
    left: Line = [(" ", Ink.BLANK), (said.effect, Ink.STRONG), (cause, Ink.BAD)]
    if place.wide:
        left.append((f" {said.then}", Ink.MUTED))
        return fit(left, place.width)
    return between(left, [(" ? help ", Ink.MUTED)], place.width)
