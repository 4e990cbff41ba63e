"""What the device present can do at most, as far as it was measured or its data sheet is known."""

from dataclasses import asdict

from profiler.ceilings import Machine
from profiler.roofline_choice import SourcedRoof, roofs_of
from ui.machine_ceilings import this_machine
from ui.si_words import bandwidth, dtype_word, flop_rate
from ui.words import name

__all__ = ["present_roofs", "roof_lines"]

_DTYPES = ("float32", "bfloat16")


def present_roofs(machine: Machine | None = None) -> list[SourcedRoof]:
    """The roof of each dtype on this machine, or on another; imports torch unless one is given."""
    machine = machine or this_machine("auto", None)
    found = (roofs_of({"hardware": asdict(machine), "model": {"dtype": dtype}}).chosen for dtype in _DTYPES)
    return [roof for roof in found if roof is not None]


def roof_lines(roofs: list[SourcedRoof]) -> str:
    """In one line: fp32 98.1 GFLOP/s, copy 15.2 GB/s, measured on AMD EPYC, 2 threads, 2026-11-30."""
    said = []
    for sourced in roofs:
        roof = sourced.roof
        rates = f"{dtype_word(roof.dtype)} {flop_rate(roof.flops_per_s)}"
        said.append((rates, f"{roof.traffic} {bandwidth(roof.bytes_per_s)}, {name(sourced.words)}"))
    tails = list(dict.fromkeys(tail for _, tail in said))
    return "; ".join(", ".join([*(rates for rates, of in said if of == tail), tail]) for tail in tails)
