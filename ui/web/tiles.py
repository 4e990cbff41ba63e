"""The routes under /api/timeline: what the canvas draws, as bytes or JSON, each for one run of the page.

Times are nanoseconds since the run's start, in queries and in answers. A bad query gets {"error": one line}.
"""

import secrets
import threading
from collections.abc import Sequence
from typing import Any

from flask import Blueprint, Flask, Response, jsonify, request

from profiler.ledger.parts import GapDetail
from profiler.timeline.tiles import LaneRef
from profiler.timeline.timeline import Timeline
from ui import words
from ui.web import captions, wire
from ui.web.tile_bytes import Arrays
from ui.web.tile_queries import BadQuery, NotThere, choice, text, whole, wholes

__all__ = ["register_tiles"]

PREFIX = "/api/timeline"

_ROUTES = ("tile", "minimap", "sums", "gap", "longest", "step", "stall", "search", "walls")
_MOST_COLUMNS = 4000
_MOST_LANES = 64
_MOST_FOUND = 50
_MOST_WALLS = 8


def register_tiles(server: Flask, timelines: Sequence[Timeline], lock: threading.Lock) -> None:
    """Add the routes; whoever reads or refreshes a timeline holds the lock meanwhile."""
    routes = _Routes(timelines, lock)
    blueprint = Blueprint("timeline", __name__, url_prefix=PREFIX)
    for name in _ROUTES:
        blueprint.add_url_rule(f"/<run>/{name}", name, getattr(routes, name))
    blueprint.add_url_rule("/<path:rest>", "unknown", _unknown)
    blueprint.register_error_handler(BadQuery, lambda error: _refusal(error, 400))
    blueprint.register_error_handler(NotThere, lambda error: _refusal(error, 404))
    server.register_blueprint(blueprint)


class _Routes:
    """One method a route; each takes the run as its URL spells it."""

    def __init__(self, timelines: Sequence[Timeline], lock: threading.Lock) -> None:
        self._timelines = timelines
        self._lock = lock
        self._process = secrets.token_hex(4)  # another process may serve another trace at the same URL

    def tile(self, run: str) -> Response:
        """Strip, counters and lanes of a window: all that one band of the picture needs."""
        timeline = self._timeline(run)
        query = request.args
        columns, lanes = _columns(), whole(query, "lanes", 14, least=0, most=_MOST_LANES)
        kept = wholes(query, "keep", _MOST_LANES)
        with self._lock:
            t0, t1 = _window(timeline, "t0", "t1")
            shown = _window(timeline, "lanes_t0", "lanes_t1") if "lanes_t0" in query else (t0, t1)
            version = self._version(run, timeline)
            if _is_kept(version):
                return _cached(Response(status=304), version)
            body = _band(timeline, (t0, t1), columns, _lane_refs(timeline, shown, lanes, kept))
        return _cached(Response(body, mimetype="application/octet-stream"), version)

    def minimap(self, run: str) -> Response:
        """The strip of the whole trace."""
        timeline, columns = self._timeline(run), _columns()
        with self._lock:
            version = self._version(run, timeline)
            if _is_kept(version):
                return _cached(Response(status=304), version)
            start_ns, arrays = timeline.start_ns, Arrays()
            strip = timeline.strip(start_ns, max(timeline.end_ns, start_ns + 1), columns)
            body = arrays.pack({"strip": wire.columns(strip, start_ns, arrays)})
        return _cached(Response(body, mimetype="application/octet-stream"), version)

    def sums(self, run: str) -> Response:
        """Exact sums over a window, and the line that says them."""
        timeline = self._timeline(run)
        with self._lock:
            sums = timeline.sums(*_window(timeline, "t0", "t1"))
        return _json(wire.plain(sums, timeline.start_ns) | {"text": captions.sums(sums)})

    def gap(self, run: str) -> Response:
        """A gap of a request, by the token that ends it or by an instant in it, and what filled it."""
        timeline, query = self._timeline(run), request.args
        rid = whole(query, "rid", least=0)
        if "tok" in query:
            token = whole(query, "tok", least=0)
            with self._lock:
                gap = timeline.gap(rid, token)
            missing = f"request {rid} has no gap before token {token}: give rid and tok of a gap of this run"
        else:
            t_ns = whole(query, "t") + timeline.start_ns
            with self._lock:
                gap = timeline.gap_at(rid, t_ns)
            missing = f"request {rid} has no gap at that time: give an instant between two of its tokens"
        if gap is None:
            raise NotThere(missing)
        return _json(_gap(gap, timeline))

    def longest(self, run: str) -> Response:
        """The longest gap of the request that is named like one of run `like`; null where it has none."""
        timeline, query = self._timeline(run), request.args
        other, rid = self._timeline(query.get("like", run)), whole(query, "rid", least=0)
        with self._lock:
            here = timeline.request_by_name(other.ref(rid).name)
            gap = None if here is None else timeline.longest_gap(here)
        return _json(None if gap is None else _gap(gap, timeline))

    def step(self, run: str) -> Response:
        """When the next or the previous forward starts; null where there is none."""
        timeline = self._timeline(run)
        t_ns, by = whole(request.args, "t"), choice(request.args, "by", (-1, 1))
        with self._lock:
            found = timeline.forward_start(t_ns + timeline.start_ns, by)
        return _json({"t": None if found is None else found - timeline.start_ns})

    def stall(self, run: str) -> Response:
        """The next or the previous listed stall; null where there is none."""
        timeline = self._timeline(run)
        t_ns, by = whole(request.args, "t") + timeline.start_ns, choice(request.args, "by", (-1, 1))
        with self._lock:
            row = timeline.next_stall(t_ns) if by > 0 else timeline.previous_stall(t_ns)
        if row is None:
            return _json(None)
        times = wire.plain({"start_ns": row["start_ns"], "end_ns": row["end_ns"]}, timeline.start_ns)
        return _json({"rid": row["rid"], "tok": row["token_index"], **times})

    def search(self, run: str) -> Response:
        """Requests whose name holds the text."""
        timeline, wanted = self._timeline(run), text(request.args, "q", 200)
        with self._lock:
            found = timeline.search(wanted, _MOST_FOUND) if wanted else []
        return _json([wire.request(ref, timeline.start_ns) for ref in found])

    def walls(self, run: str) -> Response:
        """The longest silences that requests share, in words."""
        timeline = self._timeline(run)
        with self._lock:
            walls = captions.walls(timeline, _MOST_WALLS)
        return _json(wire.plain(walls, timeline.start_ns))

    def _timeline(self, run: str) -> Timeline:
        if run.isascii() and run.isdecimal() and len(run) < 4 and int(run) < len(self._timelines):
            return self._timelines[int(run)]
        raise NotThere(
            f"no run {words.name(run)[:40]}: runs of this page are 0 to {len(self._timelines) - 1}"
        )

    def _version(self, run: str, timeline: Timeline) -> str | None:
        if timeline.trace.live:
            return None
        return f"{self._process}-{run}-{timeline.num_forwards}-{timeline.end_ns}"


def _window(timeline: Timeline, first: str, last: str) -> tuple[int, int]:
    """Interval of a query in times of the trace; the whole run where it names none."""
    length = max(timeline.end_ns - timeline.start_ns, 1)
    t0, t1 = whole(request.args, first, 0), whole(request.args, last, length)
    if t0 >= t1:
        raise BadQuery(f"{first}={t0} is not before {last}={t1}: give a window of at least 1 ns")
    return t0 + timeline.start_ns, t1 + timeline.start_ns


def _columns() -> int:
    return whole(request.args, "columns", 1000, least=1, most=_MOST_COLUMNS)


def _band(
    timeline: Timeline, window: tuple[int, int], columns: int, lanes: tuple[list[LaneRef], int]
) -> bytes:
    refs, total = lanes
    start_ns, arrays = timeline.start_ns, Arrays()
    header = {
        "t0": window[0] - start_ns,
        "t1": window[1] - start_ns,
        "strip": wire.columns(timeline.strip(*window, columns), start_ns, arrays),
        "counters": wire.columns(timeline.counters(*window, columns), start_ns, arrays),
        "lanes": [
            wire.lane_header(ref, timeline.lane(ref.rid, *window, columns), start_ns, arrays) for ref in refs
        ],
        "lanes_total": total,
    }
    return arrays.pack(header)


def _lane_refs(
    timeline: Timeline, shown: tuple[int, int], limit: int, kept: Sequence[int]
) -> tuple[list[LaneRef], int]:
    """Lanes of a window, those of `kept` among them; all lanes of a run that has no more than fit."""
    if timeline.num_requests <= limit:
        shown = (timeline.start_ns, timeline.end_ns + 1)
    refs, total = timeline.lane_refs(*shown, limit)
    absent = sorted(set(kept) - {ref.rid for ref in refs})
    refs = refs + [timeline.ref(rid) for rid in absent]
    return refs, max(total, len(refs))


def _gap(gap: GapDetail, timeline: Timeline) -> dict[str, Any]:
    label = None if gap.costliest is None else captions.arrow(gap.costliest)
    shown: dict[str, Any] = wire.plain(gap, timeline.start_ns)
    return shown | {"gap_ns": gap.gap_ns, "arrow": label}


def _json(answer: Any) -> Response:
    response = jsonify(answer)
    response.headers["Cache-Control"] = "no-store"
    return response


def _is_kept(version: str | None) -> bool:
    """Whether the browser that asks has the answer of this version."""
    return version is not None and request.if_none_match.contains(version)


def _cached(response: Response, version: str | None) -> Response:
    """Let a browser keep the answer for as long as the version is this one; never that of a live run."""
    if version is None:
        response.headers["Cache-Control"] = "no-store"
    else:
        response.headers["Cache-Control"] = "private, no-cache"
        response.set_etag(version)
    return response


def _refusal(error: Exception, status: int) -> tuple[Response, int]:
    return _json({"error": str(error)}), status


def _unknown(rest: str) -> tuple[Response, int]:
    return _refusal(
        NotThere(f"nothing at {PREFIX}/{words.name(rest)[:80]}: see the page's own requests"), 404
    )
