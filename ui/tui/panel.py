"""The scheduler's state at the cursor: in full beside the chart, or in three lines below it."""

from collections.abc import Iterator

from profiler.scheduler_state import HalfDone, SchedulerState
from ui import words
from ui.state_words import state_lines
from ui.tui.ink import Ink
from ui.tui.text import Line, between, clip, isolated, shown, span_length, together

__all__ = ["brief_lines", "panel_lines", "progress_line"]

NAME_CELLS = 16
NOTHING_STOPPED = (words.UNKNOWN, "queue empty")
SWATCHES = {"locked": Ink.LOCKED, "private": Ink.PRIVATE, "evictable": Ink.EVICTABLE, "free": Ink.FREE}


def panel_lines(state: SchedulerState, cells: int, rows: int | None = None) -> list[Line]:
    """The lines that all views say of a state, the half-done prompt as a bar, and free rows between groups.

    With `rows` at most so many: first the free ones go, then the names of who waits, then the prompt rows.
    """
    said = [(label, _block(state, label, value, cells)) for label, value in state_lines(state)]
    if rows is not None:
        _spare(said, rows)
    lines: list[Line] = []
    heads: list[int] = []
    for label, block in said:
        if label[:1].isupper():
            heads.append(len(lines))
        lines += block
    free = len(heads) if rows is None else max(rows - len(lines), 0)
    for at in reversed(heads[1 : 1 + free]):
        lines.insert(at, [])
    return lines if rows is None else lines[:rows]


def progress_line(half_done: HalfDone, cells: int) -> Line:
    """How far the half-done prompt is: done, in the forward at the cursor, and to come."""
    prompt = half_done.prompt_tokens
    if not prompt:
        return [(clip(f"of {words.UNKNOWN}", cells), Ink.MUTED)]
    done = half_done.prefix_len * cells // prompt
    end = min(max(half_done.extend_end * cells // prompt, done + 1), cells)
    return [
        ("█" * done, Ink.BAR_CHUNK),
        ("▓" * (end - done), Ink.PREFILL),
        ("·" * (cells - end), Ink.MUTED),
    ]


def brief_lines(state: SchedulerState, cells: int) -> list[Line]:
    """The forward and the half-done request; then what stopped admission, who waits, and the pool."""
    return [together(_forward_groups(state), cells), together(_admission_groups(state), cells)]


def _spare(said: list[tuple[str, list[Line]]], rows: int) -> None:
    """Drop particulars, the last first, until the rest fits."""
    particulars = [at for at, (label, _) in enumerate(said) if label.startswith("  ")]
    while particulars and sum(len(block) for _, block in said) > rows:
        del said[particulars.pop()]


def _block(state: SchedulerState, label: str, value: str, cells: int) -> list[Line]:
    lines = _panel_line(label, value, cells)
    if label == "of prompt" and state.half_done is not None:
        lines.append(progress_line(state.half_done, cells))
    return lines


def _panel_line(label: str, value: str, cells: int) -> list[Line]:
    """A line; two where label and value do not fit on one."""
    heads = label[:1].isupper()
    left: Line = [(isolated(clip(label, cells)), Ink.STRONG if heads else Ink.MUTED)]
    if label in SWATCHES:
        left.insert(0, ("█ ", SWATCHES[label]))
    right: Line = [(isolated(clip(value, cells)), _value_ink(label, value, heads))]
    if span_length(left) + span_length(right) < cells:
        return [between(left, right, cells)]
    return [left, between([], right, cells)]


def _value_ink(label: str, value: str, heads: bool) -> Ink:
    if label == "stopped by" and value not in NOTHING_STOPPED:
        return Ink.WATCH
    if label.startswith("Forward "):
        return Ink.PREFILL
    return Ink.STRONG if heads else Ink.TEXT


def _forward_groups(state: SchedulerState) -> Iterator[Line]:
    forward, half_done = state.forward, state.half_done
    if forward is None:
        yield [("no forward yet", Ink.MUTED)]
        return
    took = words.seconds((forward.end_ns - forward.start_ns) / 1e9)
    place = "fwd" if state.on_device is None else "on device"
    yield [
        (f"{place} {forward.forward_id} ", Ink.STRONG),
        (f"{forward.mode or words.UNKNOWN} {took}", Ink.TEXT),
    ]
    if state.planned_next is not None:
        yield [(f"next {state.planned_next.forward_id}", Ink.TEXT)]
    yield [(f"{words.count(forward.extend_tokens)}+{words.count(forward.decode_tokens)} tok", Ink.TEXT)]
    if half_done is not None:
        span = f"[{half_done.prefix_len:,}, {half_done.extend_end:,})"
        name = shown(half_done.name, NAME_CELLS)
        yield [(f"{name} {span} of {words.count(half_done.prompt_tokens)}", Ink.TEXT)]
    yield [(f"middle {words.count(state.inflight_middle_chunks)}", Ink.TEXT)]


def _admission_groups(state: SchedulerState) -> Iterator[Line]:
    reason = words.UNKNOWN if state.stop_reason is None else state.stop_reason.lower().replace("_", " ")
    yield [("stop ", Ink.MUTED), (reason, Ink.TEXT if reason in NOTHING_STOPPED else Ink.WATCH)]
    yield [(f"running {len(state.running)}", Ink.TEXT)]
    yield [(f"waiting {len(state.waiting)}", Ink.TEXT)]
    if state.kv is not None:
        yield [(f"private {words.count(state.kv.private)}", Ink.TEXT)]
        yield [(f"evictable {words.count(state.kv.evictable)}", Ink.TEXT)]
