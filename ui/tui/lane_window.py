"""Which requests' lanes are on screen, and which of them is selected.

Where there are more than rows the trace chooses whom to show, until the reader moves below the last one: from
then on the lanes are a list by arrival that scrolls.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from profiler.timeline.tiles import LaneRef
from ui.tui.picture import Picture

__all__ = ["LaneWindow", "lane_window", "move_selection", "reveal"]

LONGEST_LIST = 2_000


@dataclass(frozen=True, slots=True)
class LaneWindow:
    """The lanes shown, and how many requests lie before and after them."""

    refs: Sequence[LaneRef]
    above: int
    below: int


def lane_window(picture: Picture, rows: int) -> LaneWindow:
    """The lanes for so many rows, one of which is kept for the others' count where there are others."""
    view, source = picture.view, picture.source
    if picture.top is None:
        refs, total = source.lane_refs(view.start_ns, view.end_ns, rows - 1)
        if total == rows:
            refs, total = source.lane_refs(view.start_ns, view.end_ns, rows)
        return LaneWindow(refs, 0, total - len(refs))
    rids, total = source.lane_rids(view.start_ns, view.end_ns, LONGEST_LIST)
    top = min(picture.top, max(total - (rows - 1), 0))
    shown = [source.ref(rid) for rid in rids[top : top + rows - 1]]
    return LaneWindow(shown, top, total - top - len(shown))


def move_selection(picture: Picture, rows: int, step: int) -> None:
    """Select the lane above (-1) or below (1); the first one when none on screen is selected."""
    window = lane_window(picture, rows)
    rids = [ref.rid for ref in window.refs]
    if not rids:
        return
    if picture.rid not in rids:
        picture.rid = rids[0]
        return
    at = rids.index(picture.rid) + step
    if 0 <= at < len(rids):
        picture.rid = rids[at]
    elif (window.below if step > 0 else window.above) > 0:
        _move_in_list(picture, rows, step)


def reveal(picture: Picture, rows: int) -> None:
    """Scroll so that the selected request's lane is on screen, where it has one in this range."""
    if picture.rid is None or any(ref.rid == picture.rid for ref in lane_window(picture, rows).refs):
        return
    rids = _listed(picture)
    if picture.rid in rids:
        picture.top = max(rids.index(picture.rid) - rows // 2, 0)


def _move_in_list(picture: Picture, rows: int, step: int) -> None:
    rids = _listed(picture)
    if picture.rid in rids and 0 <= (at := rids.index(picture.rid) + step) < len(rids):
        picture.rid = rids[at]
        picture.top = max(at - (rows - 2), 0) if step > 0 else at


def _listed(picture: Picture) -> list[int]:
    view = picture.view
    return picture.source.lane_rids(view.start_ns, view.end_ns, LONGEST_LIST)[0]
