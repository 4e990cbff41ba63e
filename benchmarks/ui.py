"""How quick both user interfaces are on traces of 10,000, 100,000 and 1,000,000 forwards.

    python benchmarks/ui.py [--forwards N ...] [--traces FOLDER] [--skip-web] [--skip-tui] [--json FILE]

Traces are made by benchmarks/make_trace.py in FOLDER where they are not there yet. "First" is without the
cache that is kept beside a trace. A picture or zoom is over when no tile is on its way and the last frame has
been drawn. Needs playwright and Debian's chromium for the web part.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median, quantiles
from typing import Any

# A script's own directory comes first on the path, and holds an engine.py of its own.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import web_times

HERE = Path(__file__).resolve().parent
CACHE = "timeline.cache"
SIZES = (10_000, 100_000, 1_000_000)
WANTED = {  # at the largest size
    "web ready, first": ("s", 10.0),
    "web ready, cached": ("s", 2.0),
    "web first picture": ("s", 2.0),
    "web zoom, p95": ("ms", 150.0),
    "TUI open, cached": ("s", 3.0),
    "TUI frame, p95": ("ms", 50.0),
}


def main() -> None:
    options = parse_options()
    results = {}
    for forwards in options.forwards:
        trace = prepared(options.traces, forwards)
        results[forwards] = measure(trace, options)
        print(f"{forwards:,} forwards: {json.dumps(results[forwards]['shown'])}", file=sys.stderr)
    print_table({forwards: result["shown"] for forwards, result in results.items()})
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--forwards", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--traces", type=Path, default=Path("/tmp/chunkscope-benchmark"))
    parser.add_argument("--skip-web", action="store_true")
    parser.add_argument("--skip-tui", action="store_true")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    return parser.parse_args()


def prepared(folder: Path, forwards: int) -> Path:
    """The trace of so many forwards, made if it is not there, without its cache."""
    folder.mkdir(parents=True, exist_ok=True)
    trace = folder / f"{forwards}.chunkscope"
    if not trace.exists():
        subprocess.run(
            [sys.executable, HERE / "make_trace.py", str(forwards), "-o", trace],
            check=True,
            stdout=sys.stderr,
        )
    (trace / CACHE).unlink(missing_ok=True)
    return trace


def measure(trace: Path, options: argparse.Namespace) -> dict[str, Any]:
    """All numbers of one trace, and those that the table shows."""
    web = None if options.skip_web else web_times.measure(trace)
    tui = None if options.skip_tui else tui_times(trace)
    shown: dict[str, float | None] = dict.fromkeys(WANTED)
    if web is not None:
        shown["web ready, first"] = web["ready_first_s"]
        shown["web ready, cached"] = web["ready_cached_s"]
        shown["web first picture"] = web["first_picture_s"]
        shown["web zoom, p95"] = p95(web["zooms_ms"])
    if tui is not None:
        shown["TUI open, cached"] = tui["open_s"]
        shown["TUI frame, p95"] = p95([ms for frames in tui["frames_ms"].values() for ms in frames])
    return {"shown": shown, "web": web, "tui": tui}


def tui_times(trace: Path) -> dict[str, Any]:
    """The second opening's, so that the cache is there."""
    for _ in range(2):
        command = [sys.executable, HERE / "tui_times.py", str(trace), str(time.time())]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    times: dict[str, Any] = json.loads(done.stdout)
    for action, frames in times["frames_ms"].items():
        print(f"  {action}: median {median(frames):.1f} ms, max {max(frames):.1f} ms", file=sys.stderr)
    return times


def p95(values: list[float]) -> float:
    return quantiles(values, n=20, method="inclusive")[-1]


def print_table(shown: dict[int, dict[str, float | None]]) -> None:
    """A column a size, and what is wanted of the largest."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="User interfaces", title_justify="left")
    for column in ("", *(f"{forwards:,}" for forwards in shown), "wanted at 1,000,000"):
        table.add_column(column, justify="left" if not column else "right")
    for name, (unit, wanted) in WANTED.items():
        cells = [written(values[name], unit) for values in shown.values()]
        table.add_row(name, *cells, f"< {written(wanted, unit)}")
    Console(width=120).print(table)


def written(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    return f"{value:.2f} s" if unit == "s" else f"{value:.0f} ms"


if __name__ == "__main__":
    main()
