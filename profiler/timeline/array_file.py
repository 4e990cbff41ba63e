"""A file of named arrays that is memory-mapped: header, then each array at a multiple of 64 bytes.

The header is JSON with the type, place and CRC-32 of each array, behind its own length and CRC-32. Nothing in
it is executed or unpickled. A file that does not hold what its header says is refused.
"""

import json
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traces.crc import checksum

__all__ = ["read_arrays", "write_arrays"]

_MAGIC = b"chunkscope arrays 1\n"
_HEAD = struct.Struct("<QI")
_ALIGN = 64
_KINDS = ("int64", "int32", "uint8", "bool")


def write_arrays(path: Path, key: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write beside `path` and rename; raises OSError when that cannot be done."""
    entries, at = {}, 0
    flat = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    for name, array in flat.items():
        entries[name] = [array.dtype.name, at, len(array), checksum(_bytes(array))]
        at += -(-array.nbytes // _ALIGN) * _ALIGN
    header = json.dumps({"key": key, "bytes": at, "arrays": entries}).encode()
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
        try:
            file.write(_MAGIC + _HEAD.pack(len(header), checksum(header)) + header)
            file.write(bytes(-file.tell() % _ALIGN))
            for array in flat.values():
                file.write(_bytes(array))
                file.write(bytes(-array.nbytes % _ALIGN))
            file.close()
            os.replace(file.name, path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def read_arrays(path: Path, key: str) -> dict[str, NDArray[Any]] | None:
    """The arrays, mapped read-only; None when there is no such file, it has another key, or it is damaged."""
    if not path.is_file():
        return None
    try:
        content = np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))  # indexing a memmap is slow
    except (OSError, ValueError):  # ValueError: an empty file
        return None
    try:
        header, start = _header(content)
        if header["key"] != key or len(content) < start + header["bytes"]:
            return None
        return {name: _array(content, start, *entry) for name, entry in header["arrays"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _header(content: NDArray[np.uint8]) -> tuple[dict[str, Any], int]:
    at = len(_MAGIC) + _HEAD.size
    head = content[:at].tobytes()
    if not head.startswith(_MAGIC) or len(head) < at:
        raise ValueError("no header")
    length, crc32 = _HEAD.unpack(head[len(_MAGIC) :])
    text = content[at : at + length].tobytes()
    if checksum(text) != crc32:
        raise ValueError("damaged header")
    return json.loads(text), -(-(at + length) // _ALIGN) * _ALIGN


def _array(
    content: NDArray[np.uint8], start: int, kind: str, at: int, length: int, crc32: int
) -> NDArray[Any]:
    if kind not in _KINDS:
        raise ValueError(f"no array of {kind}")
    data = content[start + at : start + at + length * np.dtype(kind).itemsize]
    if checksum(data.data) != crc32:
        raise ValueError("damaged array")
    return data.view(kind)


def _bytes(array: NDArray[Any]) -> memoryview:
    return array.view(np.uint8).data
