"""The sweep that a trace lacks, as a command to copy: of its model, on its machine or its simulated GPUs."""

import shlex
from collections.abc import Mapping
from typing import Any

from profiler.saturation_report import SaturationReport
from profiler.saturation_words import sweep_command
from ui.words import name

__all__ = ["sweep_hint"]

_GIVEN = {"tflops": "--peak-tflops", "bandwidth_tb_s": "--bandwidth", "link_gb_s": "--link-bandwidth"}


def sweep_hint(report: SaturationReport, meta: Mapping[str, Any]) -> str | None:
    """The command, with M for a model and NAME for a GPU that `meta` lacks; None if none is needed."""
    return sweep_command(report, _named(_part(meta, "model"), "path", "M"), _device(meta))


def _device(meta: Mapping[str, Any]) -> str:
    """Options that name the simulated GPUs of a trace; none where a device computed."""
    if meta.get("provenance") != "simulated":
        return ""
    hardware = _part(meta, "hardware")
    options = [f"--executor simulated --gpu {_named(hardware, 'name', 'NAME')}"]
    devices = hardware.get("devices")
    if isinstance(devices, int) and devices > 1:
        options.append(f"--tp {devices}")
    given = _part(hardware, "given")
    options += [f"{_GIVEN[key]} {given[key]:g}" for key in _GIVEN if isinstance(given.get(key), int | float)]
    return " ".join(options)


def _named(part: Mapping[str, Any], key: str, unknown: str) -> str:
    """A text of meta.json as a command line takes it."""
    text = part.get(key)
    return shlex.quote(name(text)) if isinstance(text, str) and text else unknown


def _part(meta: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = meta.get(key)
    return part if isinstance(part, Mapping) else {}
