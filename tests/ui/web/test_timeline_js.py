"""The pure parts of the canvas timeline, under node; what Python and JavaScript both write is compared."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ui import words
from ui.web.tile_bytes import Arrays

TESTS = Path(__file__).parent / "timeline_js"
DURATIONS_NS = [0, 1, 4_999, 999_499, 24_600_000, 99_949_999, 99_950_001, 653_000_000, 999_499_999]
LONG_NS = [999_500_001, 1_525_000_000, 61_200_000_000, 3_600_000_000_000]


@pytest.mark.skipif(shutil.which("node") is None, reason="no node on this machine to run them")
def test_the_pure_functions_of_the_timeline(tmp_path: Path) -> None:
    environment = os.environ | {
        "CHUNKSCOPE_TILE": str(written_tile(tmp_path)),
        "CHUNKSCOPE_WORDS": str(written_words(tmp_path)),
    }
    ended = subprocess.run(
        ["node", "--test", "--test-reporter=tap", str(TESTS)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "# skipped 0" in ended.stdout
    assert "# pass 0" not in ended.stdout


def written_tile(folder: Path) -> Path:
    """A tile with each kind of array, an empty one and an odd length among them, and as JSON what it says."""
    columns = {
        "times": np.array([0.0, 1.5e9, 2.0**53]),
        "codes": np.array([3, 1, 255], dtype=np.uint8),
        "counts": np.array([-1, 2**31 - 1, 7]),
        "large": np.array([2**40]),
        "none": np.array([], dtype=np.int64),
    }
    arrays = Arrays()
    header = {"name": "naïve <b>\u202e 日本", "arrays": {name: arrays.add(c) for name, c in columns.items()}}
    path = folder / "tile"
    path.write_bytes(arrays.pack(header))
    expected = header | {"arrays": {name: c.tolist() for name, c in columns.items()}}
    path.with_suffix(".json").write_text(json.dumps(expected))
    return path


def written_words(folder: Path) -> Path:
    """Durations and counts, as Python writes them."""
    path = folder / "words.json"
    numbers = DURATIONS_NS + LONG_NS
    path.write_text(json.dumps([[n, words.seconds(n / 1e9), words.count(n)] for n in numbers]))
    return path
