"""Where the arrows take a limit."""

import pytest

from ui.tui.limit_steps import LEAST_S, MOST_DECODES, MOST_S, next_decodes, next_limit


@pytest.mark.parametrize(
    ("limit_s", "steps", "start_s", "moved_s"),
    [
        (0.1, 1, None, 0.12),
        (0.1, -1, None, 0.082),
        (0.11, 1, None, 0.12),
        (0.11, -1, None, 0.1),
        (LEAST_S, -1, None, LEAST_S),
        (MOST_S, -1, None, 82.0),
        (MOST_S, 1, None, None),
        (None, 1, 0.2, None),
        (None, -1, 0.2, 0.18),
        (None, -1, 1e-9, LEAST_S),
        (None, -1, None, 1.0),
    ],
)
def test_a_limit_goes_from_step_to_step(
    limit_s: float | None, steps: int, start_s: float | None, moved_s: float | None
) -> None:
    assert next_limit(limit_s, steps, start_s) == (None if moved_s is None else pytest.approx(moved_s))


@pytest.mark.parametrize(
    ("decodes", "steps", "moved"),
    [
        (None, 1, 1),
        (None, -1, None),
        (1, -1, None),
        (4, 1, 6),
        (6, -1, 4),
        (MOST_DECODES, 1, MOST_DECODES),
    ],
)
def test_decodes_go_from_step_to_step(decodes: int | None, steps: int, moved: int | None) -> None:
    assert next_decodes(decodes, steps) == moved
