"""The routes of the time cursor: the scheduler's state at it, and where a request or a forward takes it.

Times are nanoseconds since the run's start. A bad query gets {"error": one line}.
"""

import threading
from collections.abc import Sequence
from typing import Any

from flask import Blueprint, Flask, Response, jsonify, request

from profiler.timeline.timeline import Timeline
from ui.metric_entries import explained, state_entry
from ui.state_words import state_lines
from ui.web.places import gap_place
from ui.web.tile_queries import BadQuery, NotThere, whole

__all__ = ["register_cursor"]


def register_cursor(server: Flask, timelines: Sequence[Timeline], lock: threading.Lock) -> None:
    """Add GET /api/state/<run>?t= and GET /api/jump/<run>?rid= or ?forward= ."""
    blueprint = Blueprint("cursor", __name__, url_prefix="/api")

    @blueprint.get("/state/<int:run>")
    def state(run: int) -> Response:
        """{"t", "lines": [[label, value, what it is and where that is defined], ...]}: the panel's lines."""
        timeline, t_ns = _timeline(timelines, run), whole(request.args, "t")
        with lock:
            found = timeline.state_at(timeline.start_ns + t_ns)
        lines = [(label, value, explained(state_entry(label))) for label, value in state_lines(found)]
        return _fresh({"t": t_ns, "lines": lines})

    @blueprint.get("/jump/<int:run>")
    def jump(run: int) -> Response:
        """{"t"} of a forward; {"rid", "tok", "start", "end", "t"} of a request's longest gap; or null."""
        timeline = _timeline(timelines, run)
        with lock:
            if "forward" in request.args:
                start_ns = timeline.start_of_forward(whole(request.args, "forward", least=0))
                return _fresh(None if start_ns is None else {"t": start_ns - timeline.start_ns})
            gap = timeline.longest_gap(whole(request.args, "rid", least=0))
        return _fresh(None if gap is None else gap_place(timeline, gap))

    @blueprint.errorhandler(BadQuery)
    @blueprint.errorhandler(NotThere)
    def refused(error: Exception) -> tuple[Response, int]:
        return jsonify({"error": str(error)}), 400 if isinstance(error, BadQuery) else 404

    server.register_blueprint(blueprint)


def _timeline(timelines: Sequence[Timeline], run: int) -> Timeline:
    if run >= len(timelines):
        raise NotThere(f"no run {run}: runs of this page are 0 to {len(timelines) - 1}")
    return timelines[run]


def _fresh(answer: Any) -> Response:
    response = jsonify(answer)
    response.headers["Cache-Control"] = "no-store"
    return response
