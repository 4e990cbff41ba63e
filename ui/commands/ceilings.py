"""`chunkscope ceilings`: measure what this machine can do at most."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ui.errors import UserError
from ui.options import json_option, threads_option

if TYPE_CHECKING:
    from profiler.ceilings import Ceilings, Machine

__all__ = ["command"]

_BUSY = "these ceilings may be too low; measure again when it is quiet"


def _known(seconds: float) -> float:
    """Seconds that are a number; a range lets NaN pass."""
    if math.isnan(seconds):
        raise click.BadParameter("nan is no time: give seconds")
    return seconds


@click.command("ceilings")
@click.argument("traces", nargs=-1, type=click.Path(path_type=Path), metavar="[T ...]")
@click.option(
    "--seconds",
    type=click.FloatRange(0, 600, min_open=True),
    default=5.0,
    show_default=True,
    callback=lambda context, option, seconds: _known(seconds),
    help="About how long to measure.",
)
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True)
@threads_option()
@json_option()
def command(
    traces: tuple[Path, ...], seconds: float, device: str, threads: int | None, as_json: bool
) -> None:
    """Measure what this machine can do at most.

    The roof of the roofline: the rate of matrix multiplications in fp32 and bf16, and the bandwidth of a
    copy. Kept for this machine in the user's cache, from where later runs and sweeps take them; added to the
    traces T, which must be of this machine.
    """
    from rich.text import Text

    from ui.machine_ceilings import add_to_trace, check_store, check_traces, this_machine
    from ui.tables import narrator, print_facts, print_json, reporter, say
    from ui.words import name

    machine = this_machine(device, threads)
    check_store()
    check_traces(traces, machine)

    from profiler.ceilings_measure import measure_ceilings
    from profiler.ceilings_store import keep_ceilings, store_path

    console = narrator()
    try:
        with console.status(Text(f"measuring {name(machine.label)}")):
            measured = measure_ceilings(machine, seconds)
    except RuntimeError as error:  # torch's, for the want of memory above all
        reason = str(error).partition("\n")[0]
        raise UserError(f"cannot be measured here: {reason}: close other programs") from None
    if measured.busy:
        say(console, f"Other programs kept this machine busy (load average {measured.load:.1f}): {_BUSY}")
    if not keep_ceilings(measured):
        say(console, f"{store_path()} could not be read and is replaced")
    for trace in traces:
        add_to_trace(trace, measured)
    if as_json:
        print_json(_document(measured, traces))
    else:
        print_facts(reporter(), _facts(machine, measured, traces))


def _document(measured: "Ceilings", traces: tuple[Path, ...]) -> dict[str, Any]:
    from profiler.ceilings_store import store_path

    return {
        "ceilings": measured.as_json(),
        "kept_in": str(store_path()),
        "added_to": [str(trace) for trace in traces],
    }


def _facts(machine: "Machine", measured: "Ceilings", traces: tuple[Path, ...]) -> list[tuple[str, str]]:
    from profiler.ceilings_store import store_path
    from profiler.roofline import roof_for
    from ui.si_words import bandwidth, dtype_word, flop_rate, intensity
    from ui.words import binary_bytes, name

    rows = [("machine", name(machine.label))]
    for rate in measured.gemm:
        roof = roof_for(measured, rate.dtype)
        assert roof is not None
        rows.append(
            (
                dtype_word(rate.dtype),
                f"{flop_rate(rate.flops_per_s)}, square matrices of {rate.size:,}; "
                f"ridge at {intensity(roof.ridge)}",
            )
        )
    buffers = binary_bytes(measured.copy_buffer_bytes)
    rows.append(("copy", f"{bandwidth(measured.copy_bytes_per_s)}, read and written; buffers of {buffers}"))
    rows.append(("kept in", str(store_path())))
    rows += [("added to" if i == 0 else "", str(trace)) for i, trace in enumerate(traces)]
    return rows
