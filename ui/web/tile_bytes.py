"""A picture's numbers as bytes: a JSON header, then the arrays that it names.

Four bytes little-endian length of the header, the header as UTF-8, padded with spaces so that the data after
it starts at a multiple of 8; there each array lies at the offset that its entry names, also a multiple of 8.
All arrays are little-endian.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Arrays", "unpack_tile"]

_ALIGNMENT = 8
_LENGTH_BYTES = 4
_INT32 = np.iinfo(np.int32)
_DTYPES: dict[str, np.dtype[Any]] = {"f8": np.dtype("<f8"), "i4": np.dtype("<i4"), "u1": np.dtype("u1")}


class Arrays:
    """Collects arrays, and gives each the entry by which a header names it."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, values: NDArray[Any]) -> dict[str, Any]:
        """Entry {dtype, offset, length} of an array.

        Bytes stay bytes; whole numbers become int32 where all fit, else float64, which is exact below 2^53.
        """
        code = _code(values)
        data = values.astype(_DTYPES[code], copy=False).tobytes()
        entry = {"dtype": code, "offset": self._size, "length": len(values)}
        self._parts.append(_padded(data, 0, b"\0"))
        self._size += len(self._parts[-1])
        return entry

    def pack(self, header: Mapping[str, Any]) -> bytes:
        """The whole tile; strings of the header may hold anything that JSON can write."""
        text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
        text = _padded(text, _LENGTH_BYTES, b" ")
        return b"".join((len(text).to_bytes(_LENGTH_BYTES, "little"), text, *self._parts))


def unpack_tile(tile: bytes) -> tuple[dict[str, Any], bytes]:
    """Header of a tile, and the data in which its arrays lie."""
    end = _LENGTH_BYTES + int.from_bytes(tile[:_LENGTH_BYTES], "little")
    header: dict[str, Any] = json.loads(tile[_LENGTH_BYTES:end])
    return header, tile[end:]


def _code(values: NDArray[Any]) -> str:
    if values.dtype == np.uint8:
        return "u1"
    if values.dtype.kind == "f":
        return "f8"
    fits = values.size == 0 or (values.min() >= _INT32.min and values.max() <= _INT32.max)
    return "i4" if fits else "f8"


def _padded(data: bytes, before: int, fill: bytes) -> bytes:
    return data + fill * (-(before + len(data)) % _ALIGNMENT)
