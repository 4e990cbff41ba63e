"""A recorded trace, and applications whose clock stands still unless a test moves it."""

from pathlib import Path

import pytest

from profiler.timeline.timeline import Timeline, open_timeline
from tests.support.three_runs import record_three_runs


@pytest.fixture(autouse=True)
def _one_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The same terminal everywhere, and a cache of the test's own."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return record_three_runs(tmp_path_factory.mktemp("three"))


@pytest.fixture
def chunked(traces: dict[str, Path]) -> Timeline:
    return open_timeline(traces["chunked"])
