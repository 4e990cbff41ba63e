"""What was measured as short tables in Markdown."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.gpu.targets import SIDES, Phases, points_of, result_of, targets

__all__ = ["report"]


def report(results: Mapping[str, Any]) -> str:
    """Everything that ended so far."""
    return "\n\n".join("\n".join(lines) for lines in _sections(results))


def _sections(results: Mapping[str, Any]) -> Iterator[list[str]]:
    phases: Phases = results["phases"]
    machine = result_of(phases, "machine") or {}
    where = machine.get("name", f"{results['device']}, threads: {machine.get('threads')}")
    kind = "sizes of no meaning" if results["quick"] else f"{results['model']}, {results['dtype']}"
    yield [f"# {where}, torch {machine.get('torch')}, {results['date'][:10]}: {kind}"]
    yield [_correctness(phases)]
    ceilings = result_of(phases, "ceilings")
    if ceilings:
        gemm, copy = ceilings["gemm_flops_per_s"] / 1e12, ceilings["copy_bytes_per_s"] / 1e9
        yield [f"Best GEMM ({ceilings['dtype']}) {_cell(gemm)} TFLOP/s, copy {_cell(copy)} GB/s."]
    ours = f"ours ({results['attention']})"
    yield _attention(phases, "extend", "flops_per_s", 1e12, f"TFLOP/s of {ours}")
    yield _attention(phases, "decode", "bytes_per_s", 1e9, f"GB/s of {ours}")
    yield from _errors(phases)
    yield _table(
        ("prefill: tokens a forward", "graph", "ms", "ms without graphs", "tokens/s", "TFLOP/s"),
        (
            (
                p["tokens"],
                p["graph"],
                p["device_ns"] / 1e6,
                p["without_graphs"]["device_ns"] / 1e6 if "without_graphs" in p else None,
                p["tokens_per_s"],
                p["flops_per_s"] / 1e12,
            )
            for p in points_of(phases, "prefill")
        ),
    )
    yield _table(
        ("decode: rows", "tokens of each", "graph", "ms on the device", "ms a step", "tokens/s"),
        (
            (p["rows"], p["seq_len"], p["graph"], p["device_ns"] / 1e6, p["step_ns"] / 1e6, p["tokens_per_s"])
            for p in points_of(phases, "batches")
        ),
    )
    if not results["quick"]:
        yield _table(
            ("wanted", "", "found", "met"),
            ((t["name"], f"at {t['at']} {t['wanted']}", t["found"], t["met"]) for t in targets(phases)),
        )
    yield from ([f"{name}: {what}"] for name, phase in phases.items() for what in _lacking(phase))


def _correctness(phases: Phases) -> str:
    checked = result_of(phases, "correctness")
    if checked is None:
        return "Correctness was not checked."
    failed = f", FAILED: {', '.join(checked['failed'])}" if checked["failed"] else ""
    skipped = f", {len(checked['skipped'])} skipped" if checked["skipped"] else ""
    return f"Kernels against float64 {checked['where']}: {checked['passed']} tests passed{skipped}{failed}."


def _attention(phases: Phases, name: str, unit: str, scale: float, ours: str) -> list[str]:
    def rate(point: Mapping[str, Any], side: str) -> float | None:
        value = point.get(side, {}).get(unit)
        return None if value is None else value / scale

    keys = {"extend": ("sequences", "seq_len", "chunk"), "decode": ("rows", "seq_len", "ragged")}[name]
    first, *others = keys
    return _table(
        (f"{name} attention: {first}", *others, ours, *(f"torch {side}" for side in SIDES)),
        (
            (*(p[key] for key in keys), *(rate(p, side) for side in ("ours", *SIDES)))
            for p in points_of(phases, name)
        ),
    )


def _errors(phases: Phases) -> Iterator[list[str]]:
    errors = [
        point[side]["relative_error_of_ours"]
        for name in ("extend", "decode")
        for point in points_of(phases, name)
        for side in SIDES
        if "relative_error_of_ours" in point.get(side, {})
    ]
    if errors:
        yield [f"Ours differs from torch's attention by at most {max(errors):.2g} of its norm."]


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    return [
        f"| {' | '.join(head)} |",
        "|" + "---|" * len(head),
        *(f"| {' | '.join(_cell(value) for value in row)} |" for row in rows),
    ]


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return str(value)


def _lacking(phase: Mapping[str, Any]) -> Iterator[str]:
    """What went wrong in a phase, and which points it had no time for."""
    if "error" in phase:
        yield phase["error"].strip().splitlines()[-1]
    elif phase["result"].get("left_out"):
        yield f"left out {', '.join(phase['result']['left_out'])}"
