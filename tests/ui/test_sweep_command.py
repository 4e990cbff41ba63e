"""`chunkscope sweep` within a time budget."""

from pathlib import Path

import pytest

from tests.support.cli import call, refused, write_model

Capture = pytest.CaptureFixture[str]


def test_a_budget_ends_the_sweep(tmp_path: Path, capfd: Capture) -> None:
    trace = tmp_path / "s.chunkscope"
    args = ["sweep", "--model", write_model(tmp_path), "--tokens", "1:256", "--budget", "0.8s", "-o", trace]
    code, out, err = call(capfd, *args)
    assert (code, out) == (0, "")
    assert "saturat" in err
    found = call(capfd, "stats", trace, "--json").json["saturation"]
    assert 16 <= found["num_sizes"] <= 24
    assert found["num_points"] > 2 * found["num_sizes"]
    assert call(capfd, "check", trace).code == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--budget", "soon"], "'soon' is no number of seconds: give 90, or 90s."),
        (["--budget", "90m"], "no number of seconds"),
        (["--budget", "0"], "no number of seconds"),
        (["--budget", "-5"], "no number of seconds"),
        (["--budget", "5", "--repeats", "2"], "--repeats and --budget both say when to stop"),
    ],
)
def test_what_is_no_budget(options: list[str], text: str, tmp_path: Path, capfd: Capture) -> None:
    trace = tmp_path / "s.chunkscope"
    args = ["sweep", "--model", write_model(tmp_path), "-o", trace, *options]
    assert text in refused(capfd, *args)
    assert not trace.exists()
