"""What must hold of a scheduler's requests between two rounds."""

from engine.engine import Engine
from engine.request import Request
from profiler.invariants.live.broken import NOWHERE, Place, hold

__all__ = ["hold_scheduler"]


def hold_scheduler(engine: Engine, place: Place = NOWHERE) -> None:
    """Who waits, runs or is half done is one of these and holds KV accordingly; counters keep their bounds.

    Raises InvariantError; `place` is only told in it.
    """
    scheduler = engine.scheduler
    half_done = [] if scheduler.chunked_req is None else [scheduler.chunked_req]
    places: dict[int, str] = {}
    for where, requests in (
        ("waiting", list(scheduler.waiting)),
        ("running", [r for r in scheduler.running if not r.finished]),
        ("half done", half_done),
    ):
        for request in requests:
            told = places.setdefault(request.rid, where)
            hold("one_place", told == where, _at(request, place), where=where, also=told)
            hold("live", request.rid in engine.requests, _at(request, place), where=where)
            holds_kv = request.row is not None
            hold(
                "kv_of_the_running",
                holds_kv == (where != "waiting"),
                _at(request, place),
                where=where,
                kv_tokens=request.kv_len,
            )
    tokens = sum(len(request.tokens) for request in scheduler.waiting)
    pending = scheduler.waiting.pending_tokens
    hold("pending_counted", pending == tokens, place, pending_tokens=pending, counted=tokens)
    _hold_counters(engine, place)
    for request in engine.requests.values():
        _hold_cursor(request, engine.cache.page_size, place)


def _hold_counters(engine: Engine, place: Place) -> None:
    """Once a result is processed at most one middle chunk is in flight, and none in the plain loop."""
    most = 0 if engine.config.disable_overlap_schedule else 1
    in_flight = [request for request in engine.requests.values() if request.inflight_middle_chunks]
    for request in in_flight:
        chunks = request.inflight_middle_chunks
        hold(
            "inflight_bounds",
            0 <= chunks <= most,
            _at(request, place),
            inflight_middle_chunks=chunks,
            at_most=most,
        )
    hold("inflight_requests", len(in_flight) <= 1, place, requests=len(in_flight), at_most=1)


def _hold_cursor(request: Request, page_size: int, place: Place) -> None:
    """A row's tree part is whole pages of what it has KV for, which is no more than its tokens.

    Under overlap a decode in flight has a slot for a token that is not known yet.
    """
    hold(
        "cursor_within",
        0 <= request.protected_len <= request.kv_len <= len(request.tokens) + 1
        and request.protected_len % page_size == 0
        and 0 <= request.prefix_len <= len(request.tokens),
        _at(request, place),
        prefix_len=request.prefix_len,
        protected_len=request.protected_len,
        kv_len=request.kv_len,
        tokens=len(request.tokens),
    )


def _at(request: Request, place: Place) -> Place:
    return Place(place.forward_id, request.name, request.attempt)
