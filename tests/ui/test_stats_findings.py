"""What `stats` says is wrong with a run, and from which number on."""

from pathlib import Path

import pytest

from profiler.findings.finding import FindingKind
from tests.support.cli import call, refused
from tests.support.three_runs import ARRIVALS, record_three_runs

Capture = pytest.CaptureFixture[str]
STARVATION = FindingKind.PREFILL_FIRST_STARVATION.value
NAMES = {name for name, *_ in ARRIVALS}


@pytest.fixture(scope="module")
def chunked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six decodes that two long prompts hold up."""
    return record_three_runs(tmp_path_factory.mktemp("runs"))["chunked"]


def test_stats_say_what_is_wrong_and_what_mends_it(chunked: Path, capfd: Capture) -> None:
    done = call(capfd, "stats", chunked)
    assert (done.code, done.err) == (0, "")
    [found] = [line for line in done.out.splitlines() if "Prefill-first starvation" in line]
    assert found.startswith("✕ ")
    assert "--enable-mixed-chunk" in done.out


def test_findings_in_json_name_requests_as_the_user_did(chunked: Path, capfd: Capture) -> None:
    findings = {each["kind"]: each for each in call(capfd, "stats", chunked, "--json").json["findings"]}
    starved = findings[STARVATION]
    assert starved["severity"] == "bad"
    assert 0 < len(starved["rids"]) == len(set(starved["rids"]) & NAMES)
    assert "long-1" in starved["sentence"]
    assert starved["option"] == ["--enable-mixed-chunk"]
    assert starved["forward_ids"]
    assert starved["lost_ns"] > 0
    assert starved["threshold"].keys() <= {"starvation_forwards", "starvation_ratio"}


def test_a_threshold_that_is_not_reached_finds_nothing(chunked: Path, capfd: Capture) -> None:
    high = ("--threshold", "starvation_forwards=1000", "--threshold", "starvation-ratio=1e6")
    kinds = [each["kind"] for each in call(capfd, "stats", chunked, "--json", *high).json["findings"]]
    assert STARVATION not in kinds
    assert "Prefill-first starvation" not in call(capfd, "stats", chunked, *high).out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("starvation_forwards", "is not NAME=VALUE"),
        ("=", "give one of starvation_forwards"),
        ("starvation=3", "give one of starvation_forwards"),
        ("starvation_forwards=soon", "give a whole number above 0"),
        ("hidden_wall_ratio=-1", "give a number above 0"),
    ],
)
def test_a_bad_threshold_is_refused_in_one_line(chunked: Path, capfd: Capture, text: str, words: str) -> None:
    assert words in refused(capfd, "stats", chunked, "--threshold", text)
