"""Where these tests run: on a CUDA device, or in Triton's interpreter if TRITON_INTERPRET is 1.

They must run with torch, triton, numpy, pyarrow and pytest alone: `python -m pytest --confcutdir=tests/gpu
tests/gpu -p no:cacheprovider`. CHUNKSCOPE_GPU_TESTS=quick takes fewer and smaller shapes.
"""

import os
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent
ON_GPU = torch.cuda.is_available()
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
FULL = ON_GPU and not INTERPRETED and os.environ.get("CHUNKSCOPE_GPU_TESTS") != "quick"
WHY_NOT = "no CUDA device, and Triton's interpreter is off (TRITON_INTERPRET=1)"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what cannot run here: this hook sees the items of other folders too."""
    for item in items:
        if HERE not in item.path.parents:
            continue
        if not ON_GPU and not INTERPRETED:
            item.add_marker(pytest.mark.skip(reason=WHY_NOT))
        elif item.get_closest_marker("cuda_only") and not (ON_GPU and not INTERPRETED):
            item.add_marker(pytest.mark.skip(reason="no CUDA device: Triton's interpreter has no streams"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Many shapes on a GPU, few elsewhere: a test's `shapes` marker names both lists."""
    marker = metafunc.definition.get_closest_marker("shapes")
    if marker is not None:
        names, full, quick = marker.args
        metafunc.parametrize(names, full if FULL else quick)


def pytest_configure(config: pytest.Config) -> None:
    """Name this folder's markers."""
    config.addinivalue_line("markers", "cuda_only: needs a real device")
    config.addinivalue_line("markers", "shapes(names, full, quick): shapes on a GPU, and elsewhere")


@pytest.fixture(scope="session")
def device() -> torch.device:
    """Where tensors lie."""
    return torch.device("cuda" if ON_GPU and not INTERPRETED else "cpu")
