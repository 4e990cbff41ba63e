"""What an address asks to see, read strictly: a bad value is named in one line, and its default shown.

Times are nanoseconds since the start of a run. The script on the page writes the same parameters back.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import parse_qsl

from profiler.ledger.parts import GapDetail
from ui.web.limit_query import Wanted, read_wanted
from ui.web.places import culprit_ns, worst_gap
from ui.web.runs import Run, compared
from ui.web.tile_queries import BadQuery, whole
from ui.words import name

__all__ = ["ROOFS", "THEMES", "SaturationView", "View", "read_saturation", "read_theme", "read_view"]

THEMES = ("light", "dark")
ROOFS = ("forwards", "operators")
POLICIES = ("prefill-first", "mixed", "interval")
_MOST_FIELDS = 32
_SHOWN = 40  # characters of a bad value that a notice repeats
_VISIBLE = 0.02  # of the time axis
_AROUND = 12  # times a gap's length
_LEAST_AROUND_NS = 1_000_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class View:
    """The range, cursor, run, gap and selection that a page shows."""

    t0: int
    t1: int
    t: int
    run: int
    gap: GapDetail | None  # of `run`
    selection: tuple[int, int] | None

    def as_json(self) -> dict[str, int | list[int] | None]:
        """What the script of the page starts from."""
        return {
            "t0": self.t0,
            "t1": self.t1,
            "t": self.t,
            "run": self.run,
            "rid": None if self.gap is None else self.gap.rid,
            "tok": None if self.gap is None else self.gap.token_index,
            "sel": self.selection and list(self.selection),
        }


def read_view(search: str, runs: Sequence[Run]) -> tuple[View, list[str]]:
    """The view that a query string asks for, and one line for each value that could not be used.

    Without a gap in it the longest one is chosen. Without a range all is shown, or the surroundings of a gap
    too narrow to see in it; without a cursor that is set where the gap's costliest chunk starts.
    """
    notices: list[str] = []

    def attempt(read: Callable[[], T], default: Callable[[], T]) -> T:
        try:
            return read()
        except BadQuery as error:
            notices.append(f"{error}. The default is shown instead.")
            return default()

    query = attempt(lambda: _fields(search), dict[str, str])
    attempt(lambda: _check_theme(query), lambda: None)
    end_ns = _longest_ns(runs)
    run, gap = attempt(lambda: _gap(query, runs), lambda: worst_gap(runs))
    default = _default_range(runs[run], gap, end_ns)
    t0, t1 = attempt(lambda: _range(query, end_ns, default), lambda: default)
    selection = attempt(lambda: _selection(query, end_ns), lambda: None)
    t = attempt(lambda: _cursor(query, end_ns), lambda: None)
    if t is None:
        t = 0 if gap is None else culprit_ns(runs[run].timeline, gap)
    return View(t0, t1, t, run, gap, selection), notices


@dataclass(frozen=True, slots=True)
class SaturationView:
    """What the Saturation page is asked to show; None is for the page to choose."""

    run: int | None = None
    wanted: Wanted = field(default_factory=Wanted)
    roof: str = ROOFS[0]
    policy: str | None = None


def read_saturation(search: str, num_runs: int) -> tuple[SaturationView, list[str]]:
    """What a query string asks of the Saturation page, and one line for each value that could not be used."""
    notices: list[str] = []

    def attempt(read: Callable[[], T], default: T) -> T:
        try:
            return read()
        except BadQuery as error:
            notices.append(f"{error}. The default is shown instead.")
            return default

    query: dict[str, str] = attempt(lambda: _fields(search), dict[str, str]())
    wanted, wrong = read_wanted(query)
    notices += [f"{error}. The default is shown instead." for error in wrong]
    view = SaturationView(
        attempt(lambda: whole(query, "sat", least=0, most=num_runs - 1) if "sat" in query else None, None),
        wanted,
        attempt(lambda: _one_of(query, "roof", ROOFS), None) or ROOFS[0],
        attempt(lambda: _one_of(query, "policy", POLICIES), None),
    )
    return view, notices


def read_theme(search: str) -> str | None:
    """The theme that a query string names, None where it names none that is known."""
    try:
        theme = _fields(search).get("theme")
    except BadQuery:
        return None
    return theme if theme in THEMES else None


def _check_theme(query: Mapping[str, str]) -> None:
    theme = query.get("theme", THEMES[0])
    if theme not in THEMES:
        raise BadQuery(f"theme={name(theme[:_SHOWN])} is no theme: give {' or '.join(THEMES)}")


def _one_of(query: Mapping[str, str], key: str, allowed: Sequence[str]) -> str | None:
    value = query.get(key)
    if value is not None and value not in allowed:
        raise BadQuery(f"{key}={name(value[:_SHOWN])} is none of {', '.join(allowed)}")
    return value


def _fields(search: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(search.removeprefix("?"), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        raise BadQuery(f"The address has more than {_MOST_FIELDS} parameters: leave some out") from None


def _longest_ns(runs: Sequence[Run]) -> int:
    return max(1, *(run.timeline.end_ns - run.timeline.start_ns for run in compared(runs)))


def _default_range(run: Run, gap: GapDetail | None, end_ns: int) -> tuple[int, int]:
    """All; of a run that has ended, where its gap can be seen."""
    if gap is None or gap.gap_ns >= _VISIBLE * end_ns or run.timeline.trace.live:
        return 0, end_ns
    around_ns = max(_LEAST_AROUND_NS, _AROUND * gap.gap_ns)
    middle_ns = (gap.start_ns + gap.end_ns) // 2 - run.timeline.start_ns
    t0 = max(0, middle_ns - around_ns // 2)
    return t0, min(end_ns, t0 + around_ns)


def _range(query: Mapping[str, str], end_ns: int, default: tuple[int, int]) -> tuple[int, int]:
    if "t0" not in query and "t1" not in query:
        return default
    t0, t1 = whole(query, "t0", 0), whole(query, "t1", end_ns)
    if t0 >= t1:
        raise BadQuery(f"t0={t0} is not before t1={t1}: give a range of nanoseconds")
    if t0 >= end_ns or t1 <= 0:
        raise BadQuery(f"t0={t0}, t1={t1} lies outside the runs, which end at {end_ns}: give a range within")
    return t0, t1


def _cursor(query: Mapping[str, str], end_ns: int) -> int | None:
    return whole(query, "t", least=0, most=end_ns) if "t" in query else None


def _selection(query: Mapping[str, str], end_ns: int) -> tuple[int, int] | None:
    if "sel" not in query:
        return None
    first, dash, last = query["sel"].partition("-")
    if not dash:
        raise BadQuery("sel is no interval: give two whole numbers, as in sel=0-1000")
    ends = {"sel's start": first, "sel's end": last}
    start_ns, stop_ns = (whole(ends, key, least=0, most=end_ns) for key in ends)
    if start_ns >= stop_ns:
        raise BadQuery(f"sel={start_ns}-{stop_ns} is empty: give its start before its end")
    return start_ns, stop_ns


def _gap(query: Mapping[str, str], runs: Sequence[Run]) -> tuple[int, GapDetail | None]:
    chosen = whole(query, "run", least=0, most=len(runs) - 1) if "run" in query else None
    if "rid" not in query and "tok" not in query:
        return worst_gap(runs) if chosen is None else (chosen, runs[chosen].timeline.worst_gap())
    run = runs[chosen or 0]
    rid, token_index = whole(query, "rid", least=0), whole(query, "tok", least=0)
    gap = run.timeline.gap(rid, token_index)
    if gap is None:
        raise BadQuery(
            f"rid={rid}, tok={token_index} is no gap of run {run.letter}: choose one in the picture"
        )
    return run.index, gap
