"""Hypothesis profiles: `make test` looks at few examples, the same ones on CI; `make test-long` at many."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# Deadlines measure the machine, not the code; generated workloads are slow to draw.
COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

settings.register_profile("short", COMMON, max_examples=100)
settings.register_profile("ci", COMMON, max_examples=100, derandomize=True)
settings.register_profile("long", COMMON, max_examples=1_000, print_blob=True)

if os.environ.get("CHUNKSCOPE_TEST_LONG") == "1":
    settings.load_profile("long")
else:
    settings.load_profile("ci" if os.environ.get("CI") else "short")

# A shell that starts the tests in the background ignores SIGINT, and so would the commands they interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browsers last: Playwright's event loop stays in the thread, where no other could run after it."""
    items.sort(key=lambda item: "browser" in item.path.parts)
