"""Which machine ceilings are measured for, and which traces they may be added to."""

import os
from collections.abc import Iterable
from pathlib import Path

from profiler.ceilings import Ceilings, Machine, machine_of
from profiler.ceilings_store import store_path
from traces.errors import TraceError
from traces.meta import update_sealed_meta
from traces.reader import open_trace
from ui.errors import UserError
from ui.provenance import hardware_of
from ui.words import name

__all__ = ["add_to_trace", "check_store", "check_traces", "this_machine"]


def this_machine(device: str, threads: int | None) -> Machine:
    """The machine as `run` and `sweep` would record it. Sets torch's threads.

    `device` is auto, cpu or cuda. UserError if it cannot be used.
    """
    import torch

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: no CUDA device is usable here: give --device cpu")
    if threads is not None:
        torch.set_num_threads(threads)
    machine = machine_of(hardware_of(torch.device(device)))
    assert machine is not None
    return machine


def check_store() -> None:
    """Raise UserError unless ceilings can be kept, so that nothing is measured in vain."""
    path = store_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        probe = path.with_name(f"{path.name}.{os.getpid()}.probe")
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UserError(
            f"{path}: cannot be written: {error.strerror}: set XDG_CACHE_HOME to a folder that can"
        ) from None


def check_traces(traces: Iterable[Path], machine: Machine) -> None:
    """Raise, naming the trace, unless all of them are complete and were recorded on this machine."""
    for path in traces:
        trace = open_trace(path)
        if trace.meta.get("provenance") == "simulated":
            raise UserError(f"{path}: simulated, so its peaks are given and not measured: leave it out")
        found = machine_of(trace.meta.get("hardware"))
        if found is None:
            raise UserError(f"{path}: does not say what it was recorded on: leave it out")
        if found.device != machine.device:
            raise UserError(f"{path}: recorded on {found.device}: give --device {found.device}")
        if found.name != machine.name:
            raise UserError(
                f"{path}: recorded on {name(found.name)}, and this machine is {name(machine.name)}: "
                "run chunkscope ceilings there"
            )
        if found.threads != machine.threads:
            raise UserError(
                f"{path}: recorded with other threads, {found.threads} and not {machine.threads}: "
                f"give --threads {found.threads}"
            )
        if not trace.sealed:
            raise TraceError(f"{path}: still being written: try again when it has ended")


def add_to_trace(path: Path, measured: Ceilings) -> None:
    """Put the ceilings into a trace's meta.json under hardware.ceilings."""
    hardware = open_trace(path).meta["hardware"]
    update_sealed_meta(path, {"hardware": {**hardware, "ceilings": measured.as_json()}})
