"""Flips single bytes of a trace and reads it, in a process of its own: a crash ends this one, not the tests.

`python -m tests.support.trace_flips sealed|abandoned|foreign COUNT SEED`: prints a count of what they led to.
"""

import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

import traces.seal
from tests.support.trace_samples import (
    abandoned_trace,
    expected_table,
    random_batches,
    sealed_trace,
)
from traces.errors import TraceError
from traces.meta import read_meta, write_document
from traces.reader import open_trace

ROWS_PER_SEALED_BATCH = 64


def main(state: str, count: int, seed: int) -> None:
    traces.seal.SEALED_BATCH_ROWS = ROWS_PER_SEALED_BATCH
    with tempfile.TemporaryDirectory() as directory:
        original = Path(directory, "original.chunkscope")
        batches = random_batches(seed)
        (sealed_trace if state == "sealed" else abandoned_trace)(original, batches)
        if state == "foreign":  # written on another machine: read as it lies, never sealed
            meta = read_meta(original)
            write_document(original / "meta.json", {**meta, "writer": {"boot_id": "another"}})
        meta = read_meta(original)
        rng = random.Random(seed)
        outcomes: Counter[str] = Counter()
        for _ in range(count):
            flipped = Path(directory, "flipped.chunkscope")
            shutil.copytree(original, flipped)
            where = _flip(flipped, rng)
            try:
                outcomes[_outcome(flipped, meta, batches)] += 1
            except Exception as error:
                raise AssertionError(f"flip of {where}") from error
            shutil.rmtree(flipped)
    print(json.dumps(outcomes))


def _flip(trace: Path, rng: random.Random) -> str:
    files = sorted(path for path in trace.rglob("*") if path.is_file())
    sizes = [path.stat().st_size for path in files]
    # Half the flips by size, half by file, so that the small files get their share.
    file = rng.choices(files, sizes)[0] if rng.random() < 0.5 else rng.choice(files)
    data = bytearray(file.read_bytes())
    at = rng.randrange(len(data))
    mask = rng.randrange(1, 256)
    data[at] ^= mask
    file.write_bytes(data)
    return f"{file.relative_to(trace)} byte {at} by {mask:#x}"


def _outcome(path: Path, meta: dict, batches: dict) -> str:
    try:
        trace = open_trace(path)
        tables = {name: trace.table(name) for name in batches}
    except TraceError as error:
        return "refused" if str(error).isprintable() else "refused in several lines"
    assert {**trace.meta, "sealed": None} == {**meta, "sealed": None}
    for name, table in tables.items():
        prefixes = range(len(batches[name]) + 1) if trace.torn_bytes else [len(batches[name])]
        assert any(table.equals(expected_table(name, batches[name][:k])) for k in prefixes), name
    return "torn" if trace.torn_bytes else "same"


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
