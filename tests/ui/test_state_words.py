"""What the state panel says where the forward planned last is not the one that runs."""

from dataclasses import replace

from profiler.scheduler_state import ForwardState, RequestState, SchedulerState
from ui.state_words import state_lines

MS = 1_000_000
RUNS = ForwardState(12, "EXTEND", 80 * MS, 100 * MS, 128, 0, 1, 0, None, 0, 0)
PLANNED = ForwardState(13, "DECODE", 100 * MS, 105 * MS, 0, 2, 0, 2, None, 0, 0)
REQUESTS = tuple(
    RequestState(rid, f"r{rid}", 20, 5, None, in_forward=rid < 2, ending=rid == 2) for rid in range(3)
)
STATE = SchedulerState(90 * MS, PLANNED, REQUESTS, (), None, (), None, None, None, 0, 2, 0, 0, on_device=RUNS)


def test_it_names_the_forward_on_the_device_and_who_gets_its_last_token() -> None:
    lines = state_lines(STATE)
    assert lines[:2] == [("Forward 13", "DECODE"), ("starts", "100 ms")]
    assert ("now on the device", "forward 12") in lines
    at = lines.index(("Running", "3, 2 in this forward"))
    assert lines[at + 1] == ("in their last forward", "1")


def test_in_the_plain_loop_it_does_not() -> None:
    plain = replace(STATE, forward=RUNS, running=REQUESTS[:2])
    labels = [label for label, _ in state_lines(plain)]
    assert not {"now on the device", "in their last forward"} & set(labels)
    assert "now on the device" not in [label for label, _ in state_lines(replace(STATE, on_device=None))]
