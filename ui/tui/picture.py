"""Everything that decides what the screen shows."""

from dataclasses import dataclass, field
from enum import Enum

from ui.tui.glyphs import UNICODE, Marks
from ui.tui.source import Source
from ui.tui.view import View

__all__ = ["FOLLOW_NS", "Following", "Picture"]

FOLLOW_NS = 10_000_000_000


class Following(Enum):
    """What is known of the writer of a followed trace, in the words of the title and in one line."""

    REPLAY = ("", "")
    LIVE = ("live", "")
    ENDED = ("ended", "the run has ended")
    UNREADABLE = ("unreadable", "the trace cannot be read on: showing what was read")
    DIED = ("writer died", "writer died: showing what was recorded")

    @property
    def badge(self) -> str:
        """For the title."""
        return self.value[0]

    @property
    def sentence(self) -> str:
        """For the status line, once."""
        return self.value[1]


@dataclass(slots=True)
class Picture:
    """The state of the replay screen.

    `top` is the first lane shown once the lanes were scrolled; `message` stands in place of the keys.
    """

    source: Source
    view: View
    playing: bool = False
    speed: float = 1.0
    mark_ns: int | None = None
    rid: int | None = None
    top: int | None = None
    message: str = ""
    following: Following = Following.REPLAY
    at_end: bool = False  # the cursor keeps to the end of a growing trace
    follow_ns: int = FOLLOW_NS  # of a growing trace, what is in sight while the cursor keeps to its end
    matches: tuple[int, ...] = ()  # requests that the last search found, the selected one first
    marks: Marks = field(default=UNICODE)
