"""Runs the phases one after another and writes down what they found, after each of them."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.gpu.attention import measure_decode, measure_extend
from benchmarks.gpu.ceilings import measure_ceilings, tell_machine
from benchmarks.gpu.correctness import check_kernels
from benchmarks.gpu.deadline import Deadline
from benchmarks.gpu.phases import run_phase
from benchmarks.gpu.prefill import measure_prefill
from benchmarks.gpu.report import report
from benchmarks.gpu.serving import measure_batches, measure_recorder
from benchmarks.gpu.setting import SHARES, Setting
from benchmarks.gpu.targets import targets

__all__ = ["run"]


def run(setting: Setting, only: Sequence[str], out: Path) -> bool:
    """Whether all of the phases `only` ended and every kernel was right."""
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
        if name in only:
            print(f"{name} ...", file=sys.stderr, flush=True)
            results["phases"][name] = run_phase(work, SHARES[name] * setting.seconds)
            _write(out, results)
    print(report(results))
    return _sound(results["phases"])


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
