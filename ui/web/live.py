"""Follows growing traces for a page that asks now and then, within a bounded share of the time."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from flask import Flask, Response, jsonify

from profiler.timeline.timeline import Timeline
from ui.web.places import gap_place, worst_place
from ui.web.runs import Run, Status, compared, status

__all__ = ["Follower", "band", "register_live"]

_LEAST_S = 0.9  # between two refreshes, for a page that asks each second
_WORDS = {
    Status.LIVE: "live",
    Status.ENDED: "ended",
    Status.DIED: "writer died: what it recorded is shown",
}
_SHARE = 10  # a refresh may take a tenth of the time


class Follower:
    """Refreshes live runs when asked, at most each second and for at most a tenth of the time."""

    def __init__(self, runs: Sequence[Run], clock: Callable[[], float] = time.monotonic) -> None:
        self._runs = runs
        self._clock = clock
        self._next_s = clock()
        self.version = 0
        self.states = [status(run.timeline) for run in runs]  # as of the last poll

    def poll(self) -> None:
        """Read what has been written; the caller holds the lock of the timelines."""
        now_s = self._clock()
        if now_s < self._next_s:
            return
        grown = [_refresh(run.timeline) for run in self._runs if not run.timeline.trace.sealed]
        states = [status(run.timeline) for run in self._runs]
        if any(grown) or states != self.states:
            self.version += 1
        self.states = states
        self._next_s = now_s + max(_LEAST_S, _SHARE * (self._clock() - now_s))


def band(run: Run) -> dict[str, Any]:
    """What the page's script needs to know of a run before it draws: names, sizes, its worst gap."""
    timeline = run.timeline
    worst = timeline.worst_gap()
    return {
        "key": run.index,
        "title": run.heading,
        "options": run.options,
        "startNs": 0,
        "endNs": timeline.end_ns - timeline.start_ns,
        "budgetTokens": timeline.chunk_budget_tokens,
        "maxTokens": timeline.largest_forward_tokens,
        "worst": None if worst is None else {"run": run.index, **gap_place(timeline, worst)},
    }


def register_live(server: Flask, runs: Sequence[Run], follower: Follower, lock: threading.Lock) -> None:
    """Add GET /api/live: {"version", "bands", "worst", "words", "live"} after a poll of the traces."""

    def live() -> Response:
        with lock:
            follower.poll()
            states = follower.states
            bands = [band(run) for run in compared(runs)]
            worst = worst_place(runs)
        response = jsonify(
            {
                "version": follower.version,
                "bands": bands,
                "worst": worst,
                "words": _in_words(runs, states),
                "live": Status.LIVE in states,
            }
        )
        response.headers["Cache-Control"] = "no-store"
        return response

    server.add_url_rule("/api/live", view_func=live)


def _refresh(timeline: Timeline) -> bool:
    """Read what is new; once more where the writer has gone, as it may have ended the trace in between."""
    grown = timeline.refresh()
    return (not timeline.trace.live and timeline.refresh()) or grown


def _in_words(runs: Sequence[Run], states: Sequence[Status]) -> str:
    """How the writers fare: one word for all, or each run's."""
    if len(set(states)) == 1:
        return _WORDS[states[0]]
    return ", ".join(f"{run.letter} {state}" for run, state in zip(runs, states, strict=True))
