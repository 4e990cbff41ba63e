"""Pages of help: every number has an entry that docs/metrics.md holds, and no line is too long."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ui.metric_entries import ENTRIES, MetricEntry
from ui.tui.replay_help import NUMBERS, replay_help
from ui.tui.saturation_help import NUMBERS as SATURATION_NUMBERS
from ui.tui.saturation_help import saturation_help
from ui.tui.stalls_help import NUMBERS as STALLS_NUMBERS
from ui.tui.stalls_help import stalls_help
from ui.tui.text import Line, span_length

METRICS = Path(__file__).parents[3] / "docs" / "metrics.md"


SATURATION = tuple((name, ENTRIES[key]) for name, key in SATURATION_NUMBERS)


@pytest.mark.parametrize("numbers", [NUMBERS, SATURATION, STALLS_NUMBERS])
def test_every_number_is_there_once_and_is_defined(numbers: tuple[tuple[str, MetricEntry], ...]) -> None:
    assert len(numbers) == len({name for name, _ in numbers})
    text = METRICS.read_text(encoding="utf-8")
    for _, entry in numbers:
        section = text.partition(f"\n## {entry.heading}")[2].partition("\n## ")[0]
        assert section
        assert (entry.key or "") in section


@pytest.mark.parametrize("page", [replay_help, saturation_help, stalls_help])
@pytest.mark.parametrize("cells", [50, 75, 95])
def test_no_line_is_longer_than_the_page(page: Callable[[int], list[Line]], cells: int) -> None:
    lines = page(cells)
    assert max(span_length(line) for line in lines) <= cells
    words = [" ".join(text for text, _ in line) for line in lines]
    assert sum("docs/metrics.md" in line for line in words) >= 10
