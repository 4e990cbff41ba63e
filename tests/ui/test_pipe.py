"""Output whose reader has gone is no failed check."""

import subprocess
import sys
from pathlib import Path

from engine.config import EngineConfig
from engine.request import SamplingParams
from tests.support.recorded import record_run
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
