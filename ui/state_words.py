"""The scheduler's state in words: the same lines for the browser's panel and the terminal's."""

from collections.abc import Iterator, Sequence

from profiler.scheduler_state import Budget, ExtendRow, HalfDone, KvPages, SchedulerState
from ui.words import UNKNOWN, count, name, seconds

__all__ = ["state_lines"]

_SHOWN_WAITING = 4
_SHOWN_ROWS = 6


def state_lines(state: SchedulerState) -> list[tuple[str, str]]:
    """Label and value, line by line; a label alone heads the lines after it, up to the next one."""
    return [
        *_forward(state),
        *_extend_rows(state.extend_rows),
        *_half_done(state.half_done),
        *_budgets(state),
        *_requests(state),
        *_kv(state.kv),
    ]


def _forward(state: SchedulerState) -> Iterator[tuple[str, str]]:
    forward, planned_next = state.forward, state.planned_next
    if forward is None:
        yield "Forward", "none yet"
        return
    yield f"Forward {forward.forward_id}", forward.mode or UNKNOWN
    yield "at the cursor", _place(state)
    starts, lasts = forward.start_ns - state.origin_ns, forward.end_ns - forward.start_ns
    yield "starts", f"{seconds(starts / 1e9)}, lasts {seconds(lasts / 1e9)}"
    yield "tokens", f"{count(forward.extend_tokens)} + {count(forward.decode_tokens)} decode"
    if forward.evicted_pages:
        yield "evicted", f"{count(forward.evicted_pages)} pages"
    if forward.retracted_reqs:
        yield "retracted", count(forward.retracted_reqs)
    if planned_next is not None:
        yield "planned next", f"forward {planned_next.forward_id} {planned_next.mode or UNKNOWN}"


def _place(state: SchedulerState) -> str:
    """Where the forward shown is: on the device, or as the one planned last before or after it was there."""
    if state.on_device is not None or state.forward is None:
        return "on the device"
    return "planned, not begun" if state.t_ns < state.forward.start_ns else "ended, none runs"


def _extend_rows(rows: Sequence[ExtendRow]) -> Iterator[tuple[str, str]]:
    if not rows:
        return
    yield "Prompt rows", count(len(rows))
    for row in rows[:_SHOWN_ROWS]:
        role = UNKNOWN if row.role is None else row.role.lower()
        yield f"  {name(row.name)}", f"[{count(row.prefix_len)}, {count(row.extend_end)}) {role}"
    if len(rows) > _SHOWN_ROWS:
        yield f"  + {count(len(rows) - _SHOWN_ROWS)} more", ""


def _half_done(request: HalfDone | None) -> Iterator[tuple[str, str]]:
    if request is None:
        yield "Half-done request", "none"
        return
    yield "Half-done request", name(request.name)
    chunk = str(request.number) if request.of is None else f"{request.number}/{request.of}"
    yield "cursor", f"[{count(request.prefix_len)}, {count(request.extend_end)})"
    yield "of prompt", f"{count(request.prompt_tokens)}, chunk {chunk}"
    yield "inflight_middle_chunks", count(request.inflight_middle_chunks)


def _budgets(state: SchedulerState) -> Iterator[tuple[str, str]]:
    if not state.budgets:
        yield "Budgets", "no prefill was planned"
        return
    yield "Budgets", "before → after its plan"
    for budget in state.budgets:
        yield budget.name, _budget(budget)
    stopped = UNKNOWN if state.stop_reason is None else state.stop_reason.lower().replace("_", " ")
    yield "stopped by", stopped if state.blocked is None else f"{stopped}, at {name(state.blocked)}"


def _budget(budget: Budget) -> str:
    if budget.start_tokens is None and budget.end_tokens is None:
        return "off"
    return f"{count(budget.start_tokens)} → {count(budget.end_tokens)}"


def _requests(state: SchedulerState) -> Iterator[tuple[str, str]]:
    in_prefill = {row.rid for row in state.extend_rows}
    riding = sum(request.in_forward and request.rid not in in_prefill for request in state.running)
    yield "Running", f"{count(len(state.running))}, {count(riding)} in this forward"
    ending = sum(request.ending for request in state.running)
    if ending:
        yield "in their last forward", count(ending)
    tokens = [request.prompt_tokens for request in state.waiting]
    total = UNKNOWN if None in tokens else f"{sum(t for t in tokens if t is not None):,}"
    yield "Waiting", f"{count(len(state.waiting))}, {total} tokens"
    for request in state.waiting[:_SHOWN_WAITING]:
        waited = None if request.waited_ns is None else request.waited_ns / 1e9
        yield f"  {name(request.name)}", seconds(waited)
    if len(state.waiting) > _SHOWN_WAITING:
        yield "  and others", count(len(state.waiting) - _SHOWN_WAITING)


def _kv(kv: KvPages | None) -> Iterator[tuple[str, str]]:
    if kv is None:
        yield "KV pages", UNKNOWN
        return
    yield "KV pages", count(kv.total)
    for label, pages in (
        ("locked", kv.locked),
        ("private", kv.private),
        ("evictable", kv.evictable),
        ("free", kv.free),
    ):
        yield (
            label,
            count(pages) if not kv.total or pages is None else f"{pages:,}  {pages / kv.total * 100:.0f} %",
        )
