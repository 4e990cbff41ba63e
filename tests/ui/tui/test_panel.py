"""The state beside the chart says what the browser's panel says."""

from profiler.scheduler_state import HalfDone
from profiler.timeline.timeline import Timeline
from ui.state_words import state_lines
from ui.tui.panel import brief_lines, panel_lines, progress_line
from ui.tui.text import Line, span_length

CELLS = 31


def plain(lines: list[Line]) -> list[str]:
    return ["".join(text for text, _ in line) for line in lines]


def test_every_line_of_the_state_is_there(chunked: Timeline) -> None:
    span_ns = chunked.end_ns - chunked.start_ns
    for share in range(11):
        state = chunked.state_at(chunked.start_ns + span_ns * share // 10)
        lines = panel_lines(state, 60)
        said = [" ".join(line.removeprefix("█ ").split()) for line in plain(lines) if line.strip()]
        for label, value in state_lines(state):
            assert " ".join(f"{label} {value}".split()) in said
        assert all(span_length(line) <= 60 for line in lines)


def test_with_little_room_the_names_of_who_waits_go_first(chunked: Timeline) -> None:
    state = chunked.state_at(200_000_000)
    assert state.waiting
    words = [line for line in state_lines(state) if not line[0].startswith("  ")]
    rows = len(words) + 1
    lines = plain(panel_lines(state, CELLS, rows))
    assert len(lines) == rows
    assert lines[-1].startswith("█ free")
    assert not any(line.startswith("  ") for line in lines)
    assert any(line.startswith("Waiting") for line in lines)


def test_the_half_done_prompt_is_a_bar() -> None:
    def bar(prefix_len: int, extend_end: int, prompt_tokens: int | None) -> str:
        half_done = HalfDone(7, "r7", prefix_len, extend_end, prompt_tokens, 1, None, 1)
        return plain([progress_line(half_done, 16)])[0]

    assert bar(0, 256, 4096) == "▓" + "·" * 15
    assert bar(2048, 3072, 4096) == "█" * 8 + "▓" * 4 + "·" * 4
    assert bar(4000, 4096, 4096) == "█" * 15 + "▓"
    assert bar(0, 1, 1_000_000) == "▓" + "·" * 15
    assert bar(0, 1, None) == "of –"


def test_the_brief_lines_leave_out_what_does_not_fit(chunked: Timeline) -> None:
    state = chunked.state_at(100_000_000)
    whole, short = plain(brief_lines(state, 78)), plain(brief_lines(state, 30))
    assert "long-1 [" in whole[0]
    assert "middle 1" in whole[0]
    assert all(len(line) <= 30 and "…" not in line for line in short)
    assert whole[0].startswith(short[0][:10])
