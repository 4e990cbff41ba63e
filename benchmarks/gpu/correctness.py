"""Every kernel against float64: the tests of tests/gpu, on the GPU or in Triton's interpreter."""

import contextlib
import os
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu.setting import Setting

__all__ = ["check_kernels"]

ARGUMENTS = ("--confcutdir=tests/gpu", "tests/gpu", "-p", "no:cacheprovider", "-q", "-rs", "--color=no")


class Counts:
    """A pytest plugin that counts outcomes."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed: list[str] = []
        self.skipped: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test's outcome; a fixture that fails is one too."""
        if report.failed:
            self.failed.append(report.nodeid)
        elif report.skipped:
            self.skipped.append(report.nodeid)
        elif report.when == "call":
            self.passed += 1


def check_kernels(setting: Setting, log: Path) -> dict[str, Any]:
    """Run the tests in this process; what pytest prints goes to `log`."""
    os.environ["CHUNKSCOPE_GPU_TESTS"] = "quick" if setting.quick else "full"
    counts = Counts()
    with log.open("w") as file, contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
        code = pytest.main([*ARGUMENTS], plugins=[counts])
    return {
        "where": "on the GPU" if setting.on_gpu else "in Triton's interpreter",
        "pytest_exit_code": int(code),
        "passed": counts.passed,
        "failed": counts.failed,
        "skipped": counts.skipped,
    }
