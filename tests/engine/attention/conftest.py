"""What the checks in Triton's interpreter run under."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(scope="session")
def interpreter() -> None:
    """Triton's interpreter, ready for kernels."""
    from tests.support.interpreter import mend_interpreter

    mend_interpreter()


@pytest.fixture(scope="module")
def poisoned_memory() -> Iterator[None]:
    """New memory holds NaN: an element that nobody writes is seen."""
    torch.set_deterministic_debug_mode("error")
    assert torch.ones(1).new_empty(3).isnan().all()
    yield
    torch.set_deterministic_debug_mode("default")
