"""What part of a trace is on screen, and where the cursor stands; all moves return a new view."""

from dataclasses import dataclass, replace

__all__ = ["SHORTEST_NS", "Moment", "View"]

SHORTEST_NS = 100_000
"""The least time a view shows."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of a request's wait between two tokens."""

    rid: int
    at_ns: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class View:
    """The visible range [start_ns, end_ns) of a trace that spans [first_ns, last_ns], and the cursor."""

    start_ns: int
    end_ns: int
    cursor_ns: int
    first_ns: int
    last_ns: int

    @classmethod
    def whole(cls, first_ns: int, last_ns: int, cursor_ns: int | None = None) -> "View":
        """All of the trace."""
        end_ns = max(last_ns, first_ns + SHORTEST_NS)
        return cls(first_ns, end_ns, first_ns if cursor_ns is None else cursor_ns, first_ns, last_ns)

    @property
    def span_ns(self) -> int:
        """Length of the visible range."""
        return self.end_ns - self.start_ns

    @property
    def is_whole(self) -> bool:
        """Whether nothing of the trace lies outside."""
        return self.start_ns <= self.first_ns and self.end_ns >= self.last_ns

    def fitted(self) -> "View":
        """All of the trace, with the cursor where it was."""
        return View.whole(self.first_ns, self.last_ns, self.cursor_ns)

    def zoomed(self, factor: float) -> "View":
        """A range `factor` times as long; the cursor, or else the middle, keeps its place on screen."""
        longest = max(self.last_ns - self.first_ns, SHORTEST_NS)
        span_ns = min(max(round(self.span_ns * factor), SHORTEST_NS), longest)
        held = self.cursor_ns if self.start_ns <= self.cursor_ns < self.end_ns else self._middle_ns
        share = (held - self.start_ns) / self.span_ns
        return self._from(held - round(share * span_ns), span_ns)

    def panned(self, share: float) -> "View":
        """Moved by a share of the visible range; later for a positive one."""
        return self._from(self.start_ns + round(share * self.span_ns), self.span_ns)

    def at(self, t_ns: int) -> "View":
        """The cursor at `t_ns`, held inside the trace; the range moves when that is out of sight."""
        t_ns = min(max(t_ns, self.first_ns), self.last_ns)
        view = replace(self, cursor_ns=t_ns)
        if self.start_ns <= t_ns < self.end_ns:
            return view
        return view._from(t_ns - self.span_ns // 3, self.span_ns)

    def showing(self, start_ns: int, end_ns: int) -> "View":
        """A range that holds the interval, three times as long unless it is in sight already."""
        if self.start_ns <= start_ns and end_ns <= self.end_ns:
            return self
        span_ns = max(self.span_ns, 3 * (end_ns - start_ns))
        return self._from((start_ns + end_ns - span_ns) // 2, min(span_ns, self.last_ns - self.first_ns))

    def grown(self, first_ns: int, last_ns: int) -> "View":
        """The same range of a trace that now spans [first_ns, last_ns]."""
        return replace(self, first_ns=first_ns, last_ns=last_ns)

    def following(self, most_ns: int) -> "View":
        """The cursor at the end of the trace, and at most the last `most_ns` in sight."""
        whole = View.whole(self.first_ns, self.last_ns, self.last_ns)
        return replace(whole, start_ns=max(whole.start_ns, whole.end_ns - most_ns))

    def column(self, t_ns: int, columns: int) -> int | None:
        """The column of `columns` that shows a moment; the end of the trace is in the last one."""
        inside = self.start_ns <= t_ns <= self.end_ns
        return self.nearest_column(t_ns, columns) if inside else None

    def nearest_column(self, t_ns: int, columns: int) -> int:
        """The column of `columns` that shows a moment, or the one at the edge where it is out of sight."""
        inside = min(max(t_ns, self.start_ns), self.end_ns)
        return min((inside - self.start_ns) * columns // self.span_ns, columns - 1)

    @property
    def _middle_ns(self) -> int:
        return (self.start_ns + self.end_ns) // 2

    def _from(self, start_ns: int, span_ns: int) -> "View":
        """A range of so many nanoseconds, as near to `start_ns` as the trace allows."""
        span_ns = max(span_ns, SHORTEST_NS)
        start_ns = max(min(start_ns, self.last_ns - span_ns), self.first_ns)
        return replace(self, start_ns=start_ns, end_ns=start_ns + span_ns)
