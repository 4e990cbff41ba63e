"""Every number's entry is there in docs/metrics.md."""

import re
from pathlib import Path

import pytest

from profiler.findings.finding import FindingKind
from ui.metric_entries import ENTRIES, explained, state_entry

METRICS = Path(__file__).parents[2] / "docs" / "metrics.md"


@pytest.fixture(scope="module")
def sections() -> dict[str, str]:
    """Text by heading, as entries name it: up to the dash."""
    parts = re.split(r"^## (.*)$", METRICS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {head.partition(" — ")[0]: text for head, text in zip(parts[1::2], parts[2::2], strict=True)}


@pytest.mark.parametrize("key", ENTRIES)
def test_the_entry_that_a_number_names_exists(key: str, sections: dict[str, str]) -> None:
    entry = ENTRIES[key]
    assert entry.heading in sections
    assert (entry.key or "") in sections[entry.heading]
    assert entry.words.endswith(".")
    assert explained(key).endswith(entry.place)


@pytest.mark.parametrize(
    "key",
    [
        *("first_forward", "last_forward", "activation_bytes", "size_rate", "size_time", "plateau_share"),
        *("gap_ledger", "late_by", "lost", "waiting", "causes", "culprit_cost", "chunk_cost", "findings"),
    ],
)
def test_a_cost_says_whether_it_is_measured_simulated_or_derived(key: str) -> None:
    assert re.search("measured|simulated|[Dd]erived", ENTRIES[key].words)


@pytest.mark.parametrize("kind", FindingKind)
def test_every_kind_of_finding_has_an_entry(kind: FindingKind) -> None:
    assert ENTRIES[kind.value].heading == "Findings"


def test_a_number_without_an_entry_is_refused() -> None:
    with pytest.raises(KeyError):
        explained("no such number")


@pytest.mark.parametrize(
    ("label", "key"), [("stopped by", "stop_reason"), ("  chunk", "budgets"), ("Forward 12", "state")]
)
def test_lines_of_the_state_have_entries(label: str, key: str) -> None:
    assert state_entry(label) == key
    assert key in ENTRIES
