"""The command behind benchmarks/gpu.sh."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.gpu.attention import measure_decode, measure_extend
from benchmarks.gpu.ceilings import measure_ceilings, tell_machine
from benchmarks.gpu.correctness import check_kernels
from benchmarks.gpu.deadline import Deadline
from benchmarks.gpu.phases import run_phase
from benchmarks.gpu.report import report
from benchmarks.gpu.serving import measure_batches, measure_prefill, measure_recorder
from benchmarks.gpu.setting import Setting, full, quick
from benchmarks.gpu.targets import targets

SHARES = {  # of the script's seconds, which a phase may use up; most take far less
    "machine": 0.05,
    "correctness": 0.3,
    "ceilings": 0.05,
    "extend": 0.15,
    "decode": 0.1,
    "prefill": 0.1,
    "batches": 0.15,
    "recorder": 0.1,
}


def main() -> int:
    """Run the phases; 0 if all of them ended and every kernel was right."""
    options = _options()
    setting = (quick if options.quick else full)(options.device, options.seconds)
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": setting.device,
        "quick": setting.quick,
        "attention": "triton" if setting.on_gpu else "torch",
        "model": setting.model.name,
        "dtype": setting.dtype,
        "page_size": setting.page_size,
        "phases": {},
    }
    for name, work in _phases(setting, out).items():
        if name in options.only:
            print(f"{name} ...", file=sys.stderr, flush=True)
            results["phases"][name] = run_phase(work, SHARES[name] * setting.seconds)
            _write(out, results)
    print(report(results))
    return int(not _sound(results["phases"]))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks/gpu.sh", description="see benchmarks/gpu/METHOD.md")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, only to see that all of it runs")
    parser.add_argument("--seconds", type=float, default=540.0, help="for everything together")
    parser.add_argument("--only", type=_names, default=tuple(SHARES), help=f"of {', '.join(SHARES)}")
    parser.add_argument("--out", type=Path, default=Path("build/gpu"))
    options = parser.parse_args()
    if options.device == "cpu" and not options.quick:
        parser.error("--device cpu only shows that everything runs: add --quick")
    return options


def _names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    unknown = [name for name in names if name not in SHARES]
    if unknown:
        raise argparse.ArgumentTypeError(f"no phase {unknown[0]!r}: give some of {', '.join(SHARES)}")
    return names


def _phases(setting: Setting, out: Path) -> dict[str, Callable[[], Any]]:
    def timed(name: str, measure: Callable[[Setting, Deadline], Any]) -> Callable[[], Any]:
        def work() -> dict[str, Any]:
            deadline = Deadline(SHARES[name] * setting.seconds)
            return {"points": measure(setting, deadline), "left_out": deadline.left_out}

        return work

    return {
        "machine": lambda: tell_machine(setting),
        "correctness": lambda: check_kernels(setting, out / "correctness.txt"),
        "ceilings": lambda: measure_ceilings(setting),
        "extend": timed("extend", measure_extend),
        "decode": timed("decode", measure_decode),
        "prefill": timed("prefill", measure_prefill),
        "batches": timed("batches", measure_batches),
        "recorder": timed("recorder", measure_recorder),
    }


def _write(out: Path, results: dict[str, Any]) -> None:
    results["targets"] = None if results["quick"] else targets(results["phases"])
    (out / "gpu.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (out / "gpu.md").write_text(report(results) + "\n", encoding="utf-8")


def _sound(phases: Mapping[str, Any]) -> bool:
    checked = phases.get("correctness", {}).get("result")
    wrong = checked is not None and (checked["pytest_exit_code"] != 0 or checked["passed"] == 0)
    return not wrong and not any("error" in phase for phase in phases.values())


if __name__ == "__main__":
    start_s = time.monotonic()
    code = main()
    print(f"{time.monotonic() - start_s:.0f} s", file=sys.stderr)
    sys.exit(code)
