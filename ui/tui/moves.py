"""What the keys do to a picture. A move that cannot be made says why in the picture's message."""

import math

from profiler.ledger.parts import GapDetail
from ui import words
from ui.tui.picture import FOLLOW_NS, Following, Picture
from ui.tui.text import instant, shown
from ui.tui.view import Moment, View

__all__ = [
    "SPEEDS",
    "advance",
    "change_speed",
    "fit_trace",
    "gap_at_cursor",
    "go_to",
    "jump_to_stall",
    "next_match",
    "opening",
    "pan",
    "put_mark",
    "search",
    "select",
    "step",
    "to_edge",
    "toggle_play",
    "trace_grew",
    "visit",
    "zoom",
]

SPEEDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
MOST_MATCHES = 1_000
INPUT_CELLS = 24


def opening(picture: Picture) -> None:
    """Where a replay starts: all of the trace, at the chunk that cost the longest gap most."""
    timeline = picture.source.timeline
    worst = timeline.worst_gap()
    cursor_ns = timeline.start_ns
    if worst is not None:
        cursor_ns = worst.start_ns if worst.costliest is None else worst.costliest.start_ns
    picture.view = View.whole(timeline.start_ns, timeline.end_ns, max(cursor_ns, timeline.start_ns))


def toggle_play(picture: Picture) -> None:
    """Play or pause; from the start when the cursor stands at the end."""
    picture.playing = not picture.playing
    if picture.playing and picture.view.cursor_ns >= picture.view.last_ns and not _growing(picture):
        picture.view = picture.view.at(picture.view.first_ns)
    picture.at_end = False


def advance(picture: Picture, elapsed_s: float) -> bool:
    """Move the cursor by what played in so many seconds; whether anything moved."""
    if not picture.playing or elapsed_s <= 0:
        return False
    view = picture.view
    picture.view = view.at(view.cursor_ns + round(elapsed_s * picture.speed * 1e9))
    if picture.view.cursor_ns >= view.last_ns and not _growing(picture):
        picture.playing = False
    return True


def change_speed(picture: Picture, steps: int) -> None:
    """The next faster (1) or slower (-1) speed."""
    at = SPEEDS.index(picture.speed) + steps
    picture.speed = SPEEDS[min(max(at, 0), len(SPEEDS) - 1)]


def step(picture: Picture, direction: int) -> None:
    """The cursor to the start of the next (1) or previous (-1) forward."""
    t_ns = picture.view.cursor_ns
    start_ns = picture.source.ask(lambda timeline: timeline.forward_start(t_ns, direction))
    if start_ns is None:
        picture.message = "this is the last forward" if direction > 0 else "this is the first forward"
    else:
        _move(picture, picture.view.at(start_ns))


def jump_to_stall(picture: Picture, direction: int) -> None:
    """The cursor to the start of the next (1) or previous (-1) listed stall, and its lane selected."""
    t_ns = picture.view.cursor_ns
    stall = picture.source.ask(
        lambda timeline: timeline.next_stall(t_ns) if direction > 0 else timeline.previous_stall(t_ns)
    )
    if stall is None:
        picture.message = f"no stall {'after' if direction > 0 else 'before'} {instant(t_ns)} s"
        return
    picture.rid = stall["rid"]
    _move(picture, picture.view.at(stall["start_ns"]).showing(stall["start_ns"], stall["end_ns"]))


def zoom(picture: Picture, factor: float) -> None:
    """A range `factor` times as long."""
    picture.view = picture.view.zoomed(factor)
    picture.follow_ns = picture.view.span_ns


def pan(picture: Picture, share: float) -> None:
    """The range moved by a share of itself."""
    _move(picture, picture.view.panned(share))


def fit_trace(picture: Picture) -> None:
    """All of the trace, its chosen lanes, and the end of a growing one followed again."""
    picture.view = picture.view.fitted()
    picture.top = None
    if _growing(picture):
        picture.at_end = True
        picture.follow_ns = FOLLOW_NS
        picture.view = picture.view.following(picture.follow_ns)


def to_edge(picture: Picture, *, end: bool) -> None:
    """The cursor to the start or the end of the trace."""
    view = picture.view
    _move(picture, view.at(view.last_ns if end else view.first_ns))


def put_mark(picture: Picture) -> None:
    """The mark at the cursor; the axis then shows how far the cursor is from it."""
    picture.mark_ns = picture.view.cursor_ns


def go_to(picture: Picture, text: str) -> None:
    """The cursor to a moment in seconds or to the start of a forward, `#48`."""
    text = text.strip()
    if text.startswith("#"):
        _go_to_forward(picture, text[1:])
        return
    view = picture.view
    try:
        seconds = float(text.removesuffix("s").replace(",", ""))
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        picture.message = f"{shown(text, INPUT_CELLS)!r} is no moment: give seconds, or #number of a forward"
    elif not view.first_ns <= round(seconds * 1e9) <= view.last_ns:
        picture.message = (
            f"{seconds:g} s is outside the trace: give {instant(view.first_ns)} to {instant(view.last_ns)}"
        )
    else:
        _move(picture, view.at(round(seconds * 1e9)))


def search(picture: Picture, text: str) -> None:
    """Select the first request whose name holds the text; `#48` goes to that forward."""
    text = text.strip()
    if text.startswith("#"):
        _go_to_forward(picture, text[1:])
        return
    found = picture.source.ask(lambda timeline: timeline.search(text, MOST_MATCHES)) if text else []
    if not found:
        picture.message = f"no request's name holds {shown(text, INPUT_CELLS)!r}: r lists them"
        return
    picture.matches = tuple(ref.rid for ref in found)
    select(picture, found[0].rid)
    if len(found) > 1:
        picture.message = f"{words.count(len(found))} requests match: n goes to the next"


def next_match(picture: Picture) -> None:
    """Select the next request that the last search found."""
    if not picture.matches:
        picture.message = "nothing searched for yet: / searches"
        return
    picture.matches = (*picture.matches[1:], picture.matches[0])
    select(picture, picture.matches[0])


def select(picture: Picture, rid: int) -> None:
    """Select a request's lane, and go to its longest gap, or else to its arrival."""
    picture.rid = rid
    gap = picture.source.ask(lambda timeline: timeline.longest_gap(rid))
    if gap is not None:
        start_ns = gap.start_ns if gap.costliest is None else max(gap.costliest.start_ns, gap.start_ns)
        _move(picture, picture.view.at(start_ns).showing(gap.start_ns, gap.end_ns))
        return
    arrival_ns = picture.source.ask(lambda timeline: timeline.ref(rid)).arrival_ns
    if arrival_ns is not None:
        _move(picture, picture.view.at(arrival_ns))


def visit(picture: Picture, moment: Moment) -> None:
    """The cursor to a moment of a request's wait, its lane selected and the wait in sight."""
    picture.playing = False
    picture.rid = moment.rid
    _move(picture, picture.view.at(moment.at_ns).showing(moment.start_ns, moment.end_ns))


def gap_at_cursor(picture: Picture) -> GapDetail | None:
    """The gap of the selected request that holds the cursor; that of the longest stall there if none is."""
    t_ns = picture.view.cursor_ns
    rid = picture.rid
    if rid is None:
        silent = picture.source.stalls().at(t_ns)
        if not silent:
            picture.message = f"nobody stalls at {instant(t_ns)} s: select a lane with ↑ or ↓"
            return None
        rid = picture.rid = silent[0]["rid"]
    found = rid
    gap = picture.source.ask(lambda timeline: timeline.gap_at(found, t_ns))
    if gap is None:
        name = picture.source.ask(lambda timeline: timeline.ref(found)).name
        who = shown(name, INPUT_CELLS)
        picture.message = f"{who} has no gap at {instant(t_ns)} s: a gap lies between two tokens"
    return gap


def trace_grew(picture: Picture) -> None:
    """The picture of a trace that has grown; its end stays in sight unless the reader went elsewhere."""
    timeline = picture.source.timeline
    view = picture.view.grown(timeline.start_ns, timeline.end_ns)
    picture.view = view.following(picture.follow_ns) if picture.at_end else view


def _go_to_forward(picture: Picture, digits: str) -> None:
    start_ns = None
    if digits.isascii() and digits.isdecimal() and len(digits) <= 10:
        start_ns = picture.source.ask(lambda timeline: timeline.start_of_forward(int(digits)))
    if start_ns is None:
        picture.message = f"no forward #{shown(digits, INPUT_CELLS)} in this trace"
    else:
        _move(picture, picture.view.at(start_ns))


def _move(picture: Picture, view: View) -> None:
    picture.view = view
    picture.at_end = False


def _growing(picture: Picture) -> bool:
    return picture.following is Following.LIVE
