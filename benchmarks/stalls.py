"""How long `chunkscope stalls --json` takes on traces of 10,000, 100,000 and 1,000,000 forwards of 32 rows.

    python benchmarks/stalls.py [--forwards N ...] [--rows N] [--traces FOLDER] [--repeats N] [--json FILE]

Each run is a process of its own, interpreter and imports included, after one that is not counted, so that the
trace lies in the page cache. benchmarks/make_trace.py makes those that FOLDER, or a temporary one, lacks.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
SIZES = (10_000, 100_000, 1_000_000)
ROWS = 32
WANTED_WALL_S, WANTED_PEAK_BYTES = 10.0, 2_000_000_000  # at the largest size
COMMAND = "from ui.cli import main; main()"


@dataclass(frozen=True, slots=True)
class Taken:
    """What one run took; `peak_bytes` is the most memory that was resident."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


def main() -> None:
    options = parse_options()
    with TemporaryDirectory() as folder:
        traces = options.traces or Path(folder)
        taken = {n: measure(prepared(traces, n, options.rows), options.repeats) for n in options.forwards}
    print_table(taken)
    if options.json is not None:
        numbers = {forwards: [asdict(run) for run in runs] for forwards, runs in taken.items()}
        options.json.write_text(json.dumps(numbers, indent=2) + "\n")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--forwards", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--rows", type=int, default=ROWS, help="mean of a forward (%(default)s)")
    parser.add_argument("--traces", type=Path, help="where traces are kept")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    return parser.parse_args()


def prepared(folder: Path, forwards: int, rows: int) -> Path:
    """The trace of so many forwards, made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    trace = folder / f"{forwards}x{rows}.chunkscope"
    if not trace.exists():
        make = [
            sys.executable,
            str(HERE / "make_trace.py"),
            str(forwards),
            "--rows",
            str(rows),
            "-o",
            str(trace),
        ]
        subprocess.run(make, check=True, stdout=sys.stderr)
    return trace


def measure(trace: Path, repeats: int) -> list[Taken]:
    """What each run took, the uncounted one left out."""
    return [run(trace) for _ in range(repeats + 1)][1:]


def run(trace: Path) -> Taken:
    """One run; raises CalledProcessError if it fails."""
    command = [sys.executable, "-c", COMMAND, "stalls", str(trace), "--json"]
    begin = time.perf_counter()
    process = subprocess.Popen(command, cwd=HERE.parent, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Taken(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def print_table(taken: dict[int, list[Taken]]) -> None:
    """The quickest run of each size and the largest peak, and how both grow."""
    print(f"{'forwards':>10} {'wall s':>8} {'CPU s':>8} {'peak MB':>8} {'us a forward':>13}")
    quickest = {forwards: min(run.wall_s for run in runs) for forwards, runs in taken.items()}
    peaks = {forwards: max(run.peak_bytes for run in runs) for forwards, runs in taken.items()}
    for forwards, runs in taken.items():
        wall_s, cpu_s = quickest[forwards], min(run.cpu_s for run in runs)
        each = 1e6 * wall_s / forwards
        print(f"{forwards:>10,} {wall_s:>8.2f} {cpu_s:>8.2f} {peaks[forwards] / 1e6:>8,.0f} {each:>13.1f}")
    small, large = min(taken), max(taken)
    if large > small:
        time_growth, memory_growth = quickest[large] / quickest[small], peaks[large] / peaks[small]
        print(f"{large / small:g} times the forwards: {time_growth:.1f} times the time, ", end="")
        print(f"{memory_growth:.1f} times the memory")
    if large >= max(SIZES):
        print(f"under {WANTED_WALL_S:g} s: {held(quickest[large] < WANTED_WALL_S)}")
        print(f"under {WANTED_PEAK_BYTES / 1e9:g} GB: {held(peaks[large] < WANTED_PEAK_BYTES)}")


def held(kept: bool) -> str:
    return "held" if kept else "NOT held"


if __name__ == "__main__":
    main()
