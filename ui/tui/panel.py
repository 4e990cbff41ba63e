"""The scheduler's state at the cursor: in full beside the chart, or in three lines below it."""

from profiler.replay import HalfDone, SchedulerState
from ui import words
from ui.state_words import state_lines
from ui.tui.ink import Ink
from ui.tui.text import Line, between, clip, isolated, shown, span_length

__all__ = ["brief_lines", "panel_lines", "progress_line"]

NAME_CELLS = 16
NOTHING_STOPPED = (words.UNKNOWN, "queue empty")
SWATCHES = {"locked": Ink.LOCKED, "private": Ink.PRIVATE, "evictable": Ink.EVICTABLE, "free": Ink.FREE}


def panel_lines(state: SchedulerState, cells: int, rows: int | None = None) -> list[Line]:
    """The lines that all views say of a state, the half-done prompt as a bar, and free rows between groups.

    With `rows` at most so many: first the free ones go, then who waits in particular.
    """
    said = state_lines(state)
    if rows is not None and len(said) + (state.half_done is not None) > rows:
        said = [line for line in said if not line[0].startswith("  ")]
    lines: list[Line] = []
    heads: list[int] = []
    for label, value in said:
        if label[:1].isupper():
            heads.append(len(lines))
        lines += _panel_line(label, value, cells)
        if label == "of prompt" and state.half_done is not None:
            lines.append(progress_line(state.half_done, cells))
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


def brief_lines(state: SchedulerState) -> list[Line]:
    """The forward and the half-done request; then what stopped admission, who waits, and the pool."""
    return [_forward_line(state), _admission_line(state)]


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


def _forward_line(state: SchedulerState) -> Line:
    forward, half_done = state.forward, state.half_done
    if forward is None:
        return [("no forward yet", Ink.MUTED)]
    took = words.seconds((forward.end_ns - forward.start_ns) / 1e9)
    tokens = f"{words.count(forward.extend_tokens)}+{words.count(forward.decode_tokens)} tok"
    line: Line = [
        (f"fwd {forward.forward_id} ", Ink.STRONG),
        (f"{forward.mode or words.UNKNOWN} {took}  {tokens}", Ink.TEXT),
    ]
    if half_done is not None:
        span = f"[{half_done.prefix_len:,}, {half_done.extend_end:,})"
        name = shown(half_done.name, NAME_CELLS)
        line.append((f"  {name} {span} of {words.count(half_done.prompt_tokens)}", Ink.TEXT))
    if state.inflight_middle_chunks is not None:
        line.append((f"  middle {state.inflight_middle_chunks}", Ink.TEXT))
    return line


def _admission_line(state: SchedulerState) -> Line:
    line: Line = [("stop ", Ink.MUTED)]
    if state.stop_reason is None:
        line.append((words.UNKNOWN, Ink.TEXT))
    else:
        reason = state.stop_reason.lower().replace("_", " ")
        line.append((reason, Ink.TEXT if reason in NOTHING_STOPPED else Ink.WATCH))
    line.append((f"  running {len(state.running)}  waiting {len(state.waiting)}", Ink.TEXT))
    if state.kv is not None:
        line.append((f"  private {words.count(state.kv.private)}", Ink.TEXT))
        line.append((f"  evictable {words.count(state.kv.evictable)}", Ink.TEXT))
    return line
