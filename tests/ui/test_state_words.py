"""What the state panel says of the forward it shows, and why it is that one."""

from dataclasses import replace

from profiler.scheduler_state import ExtendRow, ForwardState, RequestState, SchedulerState
from ui.state_words import state_lines

MS = 1_000_000
RUNS = ForwardState(12, "EXTEND", 80 * MS, 100 * MS, 128, 0, 1, 0, None, 0, 0)
PLANNED = ForwardState(13, "DECODE", 100 * MS, 105 * MS, 0, 2, 0, 2, None, 0, 0)
REQUESTS = tuple(
    RequestState(rid, f"r{rid}", 20, 5, None, in_forward=rid < 2, ending=rid == 2) for rid in range(3)
)
STATE = SchedulerState(90 * MS, PLANNED, REQUESTS, (), None, (), None, None, None, 0, 2, 0, 0, on_device=RUNS)


def test_it_shows_the_forward_on_the_device_then_the_one_planned_next() -> None:
    lines = state_lines(STATE)
    assert lines[:5] == [
        ("Forward 12", "EXTEND"),
        ("at the cursor", "on the device"),
        ("starts", "80.0 ms, lasts 20.0 ms"),
        ("tokens", "128 + 0 decode"),
        ("planned next", "forward 13 DECODE"),
    ]
    at = lines.index(("Running", "3, 2 in this forward"))
    assert lines[at + 1] == ("in their last forward", "1")


def test_in_the_plain_loop_nothing_is_planned_next() -> None:
    lines = state_lines(replace(STATE, planned=RUNS, running=REQUESTS[:2]))
    assert lines[:2] == [("Forward 12", "EXTEND"), ("at the cursor", "on the device")]
    assert not {"planned next", "in their last forward"} & {label for label, _ in lines}


def test_while_none_is_on_the_device_it_shows_the_one_planned_last() -> None:
    def place(t_ns: int) -> list[tuple[str, str]]:
        return state_lines(replace(STATE, t_ns=t_ns, on_device=None))[:2]

    assert place(99 * MS) == [("Forward 13", "DECODE"), ("at the cursor", "planned, not begun")]
    assert place(105 * MS) == [("Forward 13", "DECODE"), ("at the cursor", "ended, none runs")]


def test_prompt_rows_are_listed_up_to_six_and_do_not_count_as_decodes() -> None:
    def said(rows: int) -> list[tuple[str, str]]:
        extends = tuple(ExtendRow(rid, f"r{rid}", "WHOLE", 16 * rid, 2000) for rid in range(1, rows + 1))
        return state_lines(replace(STATE, extend_rows=extends))

    lines = said(6)
    at = lines.index(("Prompt rows", "6"))
    assert lines[at + 1] == ("  r1", "[16, 2,000) whole")
    assert lines[at + 6] == ("  r6", "[96, 2,000) whole")
    assert lines[at + 7][0] == "Half-done request"
    assert ("Running", "3, 1 in this forward") in lines
    assert said(8)[at + 7] == ("  + 2 more", "")
    assert "Prompt rows" not in [label for label, _ in state_lines(STATE)]


def test_of_a_row_whose_place_is_unknown_it_does_not_make_one_up() -> None:
    lines = state_lines(replace(STATE, extend_rows=(ExtendRow(1, "r\n1", None, None, None),)))
    assert ("  r\\n1", "[–, –) –") in lines
