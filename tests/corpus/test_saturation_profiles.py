"""Points of measured GEMM profiles are those that were published of them."""

import csv
import re
from pathlib import Path
from statistics import fmean

import pytest

from benchmarks.saturation_profiles import Profile, read_profiles
from tests.support.counts import LONG

SHARED = Path(__file__).resolve().parents[3] / "shared"
MEASURED = SHARED / "corpus" / "measured"
PROFILE = MEASURED / "vidur_layer_gemm_vs_tokens.csv"
SUMMARY = MEASURED / "vidur_saturation_summary.csv"
NUMBERS = SHARED / "published-numbers.md"
ROW = re.compile(r"\| ([\w.-]+) \| (A100|H100|A40)(?: 80G)? \| (\d) \| [^|]+ \| \d+ \| (\d+) \|")
FITTED_EVERY = 1 if LONG else 24

pytestmark = pytest.mark.skipif(not PROFILE.is_file(), reason=f"no GEMM profiles at {PROFILE}")


@pytest.fixture(scope="module")
def profiles() -> list[Profile]:
    return read_profiles(PROFILE)


def test_the_first_size_at_the_line_is_that_of_every_row_of_the_summary(profiles: list[Profile]) -> None:
    with SUMMARY.open(newline="", encoding="utf-8") as file:
        wanted = {
            (row["gpu"], row["model"], int(row["tp"])): int(row["first_n_at_90pct"])
            for row in csv.DictReader(file)
        }
    assert len(wanted) == 71
    assert {(p.gpu, p.model, p.tp): p.first_reach for p in profiles} == wanted


def test_the_first_size_at_the_line_is_that_of_every_row_of_the_published_table(
    profiles: list[Profile],
) -> None:
    rows = ROW.findall(NUMBERS.read_text(encoding="utf-8"))
    assert len(rows) == 12
    for model, gpu, tp, first in rows:
        of = [
            profile
            for profile in profiles
            if (profile.gpu, profile.tp) == (gpu.lower(), int(tp)) and model.lower() in profile.model.lower()
        ]
        assert [profile.first_reach for profile in of] == [int(first)], (model, gpu, tp)


def test_the_fitted_point_stands_beside_it(profiles: list[Profile]) -> None:
    """Sizes that fill their last wave of tiles reach the line before the smooth curve does."""
    for profile in profiles[::FITTED_EVERY]:
        found = profile.found
        assert found.status == "ok", (profile.gpu, profile.model, profile.tp)
        assert found.first_reach == profile.first_reach
        assert found.tokens is not None
        assert found.low is not None
        assert found.high is not None
        assert found.low <= found.tokens <= found.high <= 3 * found.low
        assert 1 / 4 < found.tokens / profile.first_reach < 4


def test_the_data_sheets_point_is_too_early_and_a_smooth_maximum_mends_most_of_it(
    profiles: list[Profile],
) -> None:
    for gpu in ("a100", "h100"):
        group = [profile for profile in profiles if profile.gpu == gpu and profile.tp == 1]
        sheet = fmean(p.first_reach / p.reach_of(p.predicted_s) for p in group)
        smooth = fmean(p.first_reach / p.reach_of(p.softened_s) for p in group)
        assert sheet > 2
        assert 1 < smooth < 1.6
