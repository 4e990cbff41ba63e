"""Measured ceilings kept between runs, one entry a machine, in a JSON file of the user's cache."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from profiler.ceilings import Ceilings, Machine, ceilings_from, machine_of

__all__ = ["ceilings_of_trace", "keep_ceilings", "kept_ceilings", "store_path"]

_FORMAT = 1


def store_path() -> Path:
    """Where ceilings are kept: `chunkscope/ceilings.json` in $XDG_CACHE_HOME, else in ~/.cache."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if os.path.isabs(given) else Path("~/.cache").expanduser()
    return base / "chunkscope" / "ceilings.json"


def kept_ceilings(machine: Machine) -> Ceilings | None:
    """The machine's ceilings if they were measured; None too if the file cannot be read."""
    return (_entries() or {}).get(machine.label)


def keep_ceilings(ceilings: Ceilings) -> bool:
    """Add or replace a machine's ceilings. False if the file was unreadable and has been replaced.

    OSError as the system gives it.
    """
    path = store_path()
    entries = _entries()
    kept = {**(entries or {}), ceilings.machine.label: ceilings}
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        document = {"format": _FORMAT, "machines": {key: value.as_json() for key, value in kept.items()}}
        beside.write_text(json.dumps(document, indent=2, allow_nan=False) + "\n", encoding="utf-8")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return entries is not None


def ceilings_of_trace(meta: Mapping[str, Any]) -> Ceilings | None:
    """Ceilings for a trace: those in its meta.json, else those kept for the machine that it names."""
    hardware = meta.get("hardware")
    machine = machine_of(hardware)
    if machine is None or not isinstance(hardware, Mapping):
        return None
    return ceilings_from(hardware.get("ceilings")) or kept_ceilings(machine)


def _entries() -> dict[str, Ceilings] | None:
    """What the file holds, nothing if there is none; None if it is not as `keep_ceilings` writes it."""
    try:
        document = json.loads(store_path().read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        return None
    machines = document.get("machines") if isinstance(document, dict) else None
    if not isinstance(machines, dict) or document.get("format") != _FORMAT:
        return None
    found = {key: ceilings_from(value) for key, value in machines.items()}
    known = {key: value for key, value in found.items() if value is not None and value.machine.label == key}
    return known if len(known) == len(machines) else None
