"""Output that nobody reads, or that its stream cannot hold, is no failure."""

import os
import subprocess
import sys
from pathlib import Path

from engine.config import EngineConfig
from engine.request import SamplingParams
from tests.support.recorded import record_run
from tests.support.three_runs import record_three_runs
from tests.support.workloads import Arrival
from ui.errors import BROKEN_PIPE


def test_a_reader_that_has_gone_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    config = EngineConfig(chunked_prefill_size=16).resolve(max_total_tokens=200, context_length=1000)
    path = tmp_path / "t.chunkscope"
    record_run(path, config, [Arrival(0, tuple(range(40)), SamplingParams(max_new_tokens=3))])
    command = [sys.executable, "-m", "ui", "check", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        errors = running.stderr.read()
    assert (running.returncode, errors) == (BROKEN_PIPE, b"")


def test_an_encoding_that_lacks_a_glyph_is_no_obstacle(tmp_path: Path) -> None:
    path = record_three_runs(tmp_path)["chunked"]
    run = subprocess.run(
        [sys.executable, "-m", "ui", "stats", str(path)],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, b"")
    assert b"? Prefill-first starvation" in run.stdout  # the glyph before it
