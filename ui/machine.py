"""What this machine has of what Chunkscope uses, each with the mend where something is lacking."""

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ui import smollm2
from ui.program import program
from ui.words import binary_bytes, plural

__all__ = ["Finding", "cpu_name", "examine"]

NEEDED_DISK_BYTES = 2**30  # a demo's traces take far less; torch's temporary files do not
NEEDED_MEMORY_BYTES = 2 * 2**30  # SmolLM2 in fp32 and the demo's KV pool
LIBRARIES = ("numpy", "pyarrow", "polars", "scipy", "gguf", "safetensors", "tokenizers")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. `mend` is None when nothing is lacking."""

    name: str
    found: str
    mend: str | None = None


def examine() -> list[Finding]:
    """Look at everything; imports torch where it is installed."""
    return [
        _python(),
        *_torch(),
        _libraries(),
        _cpu(),
        *_roof(),
        _memory(),
        _peak_memory(),
        _disk(),
        _model(),
        _terminal(),
        _display(),
    ]


def _python() -> Finding:
    return Finding("Python", f"{platform.python_version()} at {sys.executable}")


def _torch() -> Iterator[Finding]:
    try:
        import torch
    except ImportError as error:
        yield Finding("torch", f"not usable: {error}", "pip install -c constraints.txt -e .")
        return
    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU"
    yield Finding("torch", f"{torch.__version__}, built for {build}")
    yield Finding("threads", f"{torch.get_num_threads()} for a forward on the CPU (--threads)")
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            device = torch.cuda.get_device_properties(index)
            yield Finding(f"GPU {index}", f"{device.name}, {binary_bytes(device.total_memory)}")
    else:
        lacking = "a build of torch for CUDA" if not torch.version.cuda else "a CUDA device and its driver"
        yield Finding("GPU", "none; models run on the CPU", f"for --device cuda: {lacking}")


def _libraries() -> Finding:
    found, missing = [], []
    for name in LIBRARIES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    mend = f"pip install {' '.join(missing)}" if missing else None
    return Finding("libraries", ", ".join(found), mend)


def _cpu() -> Finding:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Finding("CPU", f"{cpu_name()}, {plural(cores, 'core')}")


def cpu_name() -> str:
    """The processor's name as the kernel gives it, else its architecture."""
    for line in _read("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _roof() -> Iterator[Finding]:
    """The ceilings of the device that torch computes on, as a roofline takes them; nothing without torch."""
    try:
        from ui.machine_roof import present_roofs, roof_lines

        roofs = present_roofs()
    except ImportError:
        return
    measured = bool(roofs) and all(sourced.source == "measured" for sourced in roofs)
    mend = None if measured else f"to measure them: {program()} ceilings"
    yield Finding(
        "ceilings", roof_lines(roofs) if roofs else "not measured, and no data sheet is known", mend
    )


def _memory() -> Finding:
    sizes = {
        key: int(rest.split()[0]) * 1024
        for key, _, rest in (line.partition(":") for line in _read("/proc/meminfo").splitlines())
        if key in ("MemTotal", "MemAvailable")
    }
    total, free = sizes.get("MemTotal"), sizes.get("MemAvailable")
    mend = None
    if free is not None and free < NEEDED_MEMORY_BYTES:
        mend = f"the demo needs about {binary_bytes(NEEDED_MEMORY_BYTES)}: close other programs"
    return Finding("memory", f"{binary_bytes(free)} free of {binary_bytes(total)}", mend)


def _peak_memory() -> Finding:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return Finding(
            "memory peak",
            "cannot be reset here; a forward's peak on the CPU is unknown",
            "a Linux /proc/self/clear_refs that may be written",
        )
    return Finding("memory peak", "can be reset, so each forward's peak on the CPU is measured")


def _disk() -> Finding:
    free = shutil.disk_usage(Path.cwd()).free
    mend = "make room, or give -o on another disk" if free < NEEDED_DISK_BYTES else None
    return Finding("disk", f"{binary_bytes(free)} free in {Path.cwd()}", mend)


def _model() -> Finding:
    path = smollm2.find_smollm2()
    if path is None:
        return Finding("SmolLM2", "not installed", f"for the demo: {smollm2.MEND}")
    return Finding("SmolLM2", f"{path}, {binary_bytes(path.stat().st_size)}")


def _terminal() -> Finding:
    if not sys.stderr.isatty():
        return Finding("terminal", "none: standard error is not a terminal, so no progress bars")
    size = shutil.get_terminal_size()
    mend = "tables need about 80 columns: widen the window" if size.columns < 80 else None
    return Finding(
        "terminal", f"{os.environ.get('TERM', 'of unknown kind')}, {size.columns}×{size.lines}", mend
    )


def _display() -> Finding:
    display = os.environ.get("WAYLAND_DISPLAY") or os.environ.get("DISPLAY")
    if display or sys.platform in ("darwin", "win32"):
        return Finding("display", display or "the desktop's")
    return Finding("display", "none (DISPLAY and WAYLAND_DISPLAY are not set)")


def _read(path: str) -> str:
    """A file of the kernel's, empty where there is none."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""
