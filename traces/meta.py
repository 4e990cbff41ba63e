"""JSON documents of a trace (`meta.json`, the seal index): checksummed, checked, replaced as a whole."""

import json
import os
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from traces.errors import TraceError
from traces.ownership import DirectoryLock
from traces.schema import SCHEMA_VERSION

__all__ = [
    "META_NAME",
    "as_json",
    "check_meta",
    "read_document",
    "read_meta",
    "sync_directory",
    "take_checksum",
    "update_sealed_meta",
    "write_document",
]

META_NAME = "meta.json"
_PROVENANCES = ("measured", "simulated", "imported")
_COLUMN_STATES = ("measured", "derived", "missing")


def as_json(path: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    """The content as a reader of `path` will find it; TraceError if it is not JSON."""
    try:
        copy: dict[str, Any] = json.loads(json.dumps(content, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise TraceError(f"{path}: its content is not JSON: {error}") from error
    return copy


def write_document(path: Path, content: dict[str, Any], *, durable: bool = False) -> str:
    """Write a JSON document beside its path and rename it there; returns the checksum that it carries.

    The checksum, under "crc32", is the CRC-32 of the content in canonical form: keys sorted, no spaces,
    ASCII. Durable: on the disk before the rename. OSError as the system gives it.
    """
    crc32 = _checksum(content)
    beside = path.with_name(f"{path.name}.new")
    try:
        with beside.open("w", encoding="ascii") as file:
            json.dump({**content, "crc32": crc32}, file, indent=2)
            file.write("\n")
            if durable:
                file.flush()
                os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    return crc32


def read_document(path: Path) -> dict[str, Any]:
    """The document at `path`, "crc32" included but not yet checked; TraceError if it is no JSON object."""
    if path.exists() and not path.is_file():  # a pipe would keep us waiting for ever
        raise TraceError(f"{path}: no ordinary file: not a readable chunkscope trace")
    try:
        content = json.loads(path.read_bytes(), parse_constant=_refuse_constant)
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror}: not a readable chunkscope trace") from error
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{path}: not JSON: {error}") from error
    if not isinstance(content, dict):
        raise TraceError(f"{path}: not a JSON object: not a chunkscope trace")
    return content


def take_checksum(path: Path, content: dict[str, Any]) -> str:
    """Remove "crc32" from the content and return it; TraceError if it does not match the rest."""
    found = content.pop("crc32", None)
    try:
        crc32 = _checksum(content)
    except (ValueError, RecursionError):  # a number that JSON cannot hold
        crc32 = None
    if crc32 is None or found != crc32:
        raise TraceError(f"{path}: corrupt trace: checksum mismatch")
    return crc32


def read_meta(trace: Path) -> dict[str, Any]:
    """The trace's checked meta.json, without its checksum. TraceError names what is wrong."""
    path = trace / META_NAME
    meta = read_document(path)
    check_meta(path, meta)
    take_checksum(path, meta)
    return meta


def update_sealed_meta(trace: Path, updates: Mapping[str, Any]) -> None:
    """Replace top-level fields of a sealed trace's meta.json, at once for every reader.

    TraceError if the trace is not sealed, another process is changing it, or it cannot be written.
    """
    path = trace / META_NAME
    try:
        lock = DirectoryLock(trace)
        try:
            meta = read_meta(trace)
            if "sealed" not in meta:
                raise TraceError(f"{trace}: still being written: try again when it has ended")
            if not lock.held:
                raise TraceError(f"{trace}: another process is changing it: try again when it is done")
            content = as_json(path, {**meta, **updates, "sealed": meta["sealed"]})
            check_meta(path, content)
            write_document(path, content, durable=True)
        finally:
            lock.release()
    except OSError as error:
        raise TraceError(f"{path}: cannot be written: {error.strerror}: check its permissions") from error


def check_meta(path: Path, meta: Mapping[str, Any]) -> None:
    """TraceError if a field that every reader relies on is of a newer major version or wrong."""
    version = meta.get("schema_version")
    match = re.fullmatch(r"([0-9]{1,6})\.([0-9]{1,6})", version) if isinstance(version, str) else None
    if match is None:
        raise TraceError(f'{path}: "schema_version" is not a version: not a chunkscope trace')
    if int(match[1]) > int(SCHEMA_VERSION.split(".")[0]):
        raise TraceError(
            f"{path}: trace schema {version} is newer than {SCHEMA_VERSION}, which this chunkscope reads: "
            "use a newer chunkscope"
        )
    if meta.get("provenance") not in (None, *_PROVENANCES):
        raise TraceError(f'{path}: "provenance" is none of {", ".join(_PROVENANCES)}')
    _check_columns(path, meta.get("columns", {}))


def sync_directory(path: Path) -> None:
    """Have the directory's entries on the disk."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _check_columns(path: Path, columns: object) -> None:
    """Each table's columns are measured, derived or missing: {"forwards": {"start_ns": "measured"}}."""
    tables = list(columns.values()) if isinstance(columns, dict) else [None]
    for states in tables:
        if not isinstance(states, dict) or any(state not in _COLUMN_STATES for state in states.values()):
            raise TraceError(
                f'{path}: "columns" is no object of {", ".join(_COLUMN_STATES)} by table and column'
            )


def _checksum(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f"{zlib.crc32(canonical.encode('ascii')):08x}"


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")
