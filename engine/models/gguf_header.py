"""The header of a GGUF file: metadata and a table of tensors, every count checked before it is believed.

The `gguf` package's own reader follows a damaged count into memory without bound, and builds one array
view per token, which takes seconds; it supplies the type tables and the dequantisation.
"""

import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelError

__all__ = ["GGUFHeader", "GGUFTensor", "read_header"]

MAGIC = b"GGUF"
VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32
LARGEST_COUNT = 2**24  # of keys, tensors, array elements and bytes of a string
LARGEST_SIZE = 2**31 - 1  # of one dimension
LARGEST_HEADER_BYTES = 2**28
SCALARS = {
    0: "<u1",
    1: "<i1",
    2: "<u2",
    3: "<i2",
    4: "<u4",
    5: "<i4",
    6: "<f4",
    10: "<u8",
    11: "<i8",
    12: "<f8",
}
BOOL, STRING, ARRAY = 7, 8, 9


@dataclass(frozen=True, slots=True)
class GGUFTensor:
    """Where a tensor lies. `shape` has rows first; the elements of a row are stored in blocks of one type."""

    name: str
    shape: tuple[int, ...]
    type_id: int
    offset: int  # from the start of the file
    num_bytes: int


@dataclass(frozen=True, slots=True)
class GGUFHeader:
    """Metadata by key (numbers, strings, flags, lists of them) and tensors by name."""

    metadata: dict[str, Any]
    tensors: dict[str, GGUFTensor]


def read_header(path: Path) -> GGUFHeader:
    """Read and check the header of `path`, whose tensors are then sure to lie inside the file, apart.

    Memory stays within a small multiple of the header's size. Raises ModelError for a file that is cut
    short or contradicts itself, OSError if it cannot be read.
    """
    with path.open("rb") as file:
        reader = _Reader(file, path)
        try:
            return _read(reader)
        except UnicodeDecodeError as error:
            raise reader.damaged("a text is not UTF-8") from error


class _Reader:
    """Little-endian values from a file, none of them read past its end."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self.file = file
        self.path = path
        self.num_bytes = path.stat().st_size
        self.position = 0

    def damaged(self, what: str) -> ModelError:
        return ModelError(
            f"{self.path}: damaged GGUF file: {what} near byte {self.position}: fetch the file again"
        )

    def take(self, count: int) -> bytes:
        if count > self.num_bytes - self.position:
            raise self.damaged("it ends early")
        if self.position > LARGEST_HEADER_BYTES:
            raise self.damaged("the header does not end")
        data = self.file.read(count)
        if len(data) != count:
            raise self.damaged("it ends early")
        self.position += count
        return data

    def unsigned(self, num_bytes: int) -> int:
        return int.from_bytes(self.take(num_bytes), "little")

    def count(self, what: str) -> int:
        value = self.unsigned(8)
        if value > min(LARGEST_COUNT, self.num_bytes):
            raise self.damaged(f"{value} {what}")
        return value

    def text(self) -> str:
        return self.take(self.count("bytes in a text")).decode()


def _read(reader: _Reader) -> GGUFHeader:
    if reader.take(4) != MAGIC:
        raise ModelError(f"{reader.path}: is no GGUF file: give one")
    version = reader.unsigned(4)
    if version not in VERSIONS:
        raise ModelError(f"{reader.path}: GGUF version {version} is not supported: convert it to version 3")
    num_tensors, num_keys = reader.count("tensors"), reader.count("keys")
    metadata: dict[str, Any] = {}
    for _ in range(num_keys):
        key = reader.text()
        if key in metadata:
            raise reader.damaged(f"key {key[:60]!r} stands twice")
        metadata[key] = _value(reader, reader.unsigned(4))
    infos = [_tensor_info(reader) for _ in range(num_tensors)]
    return GGUFHeader(metadata, _place(reader, infos, metadata.get("general.alignment", DEFAULT_ALIGNMENT)))


def _value(reader: _Reader, type_id: int) -> Any:
    if type_id == STRING:
        return reader.text()
    if type_id == ARRAY:
        element_type, count = reader.unsigned(4), reader.count("array elements")
        if element_type == STRING:
            return [reader.text() for _ in range(count)]
        return _numbers(reader, element_type, count).tolist()
    return _numbers(reader, type_id, 1).tolist()[0]


def _numbers(reader: _Reader, type_id: int, count: int) -> NDArray[Any]:
    if type_id == BOOL:
        return np.frombuffer(reader.take(count), np.uint8).astype(np.bool_)
    if type_id not in SCALARS:
        raise reader.damaged(f"a value of unknown type {type_id}")
    kind = np.dtype(SCALARS[type_id])
    return np.frombuffer(reader.take(count * kind.itemsize), kind)


def _tensor_info(reader: _Reader) -> GGUFTensor:
    """A tensor with its offset still counted from the start of the data."""
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    name = reader.text()
    num_dims = reader.unsigned(4)
    if not 1 <= num_dims <= 4:
        raise reader.damaged(f"tensor {name[:60]!r} has {num_dims} dimensions")
    shape = struct.unpack(f"<{num_dims}Q", reader.take(8 * num_dims))[::-1]
    type_id, offset = reader.unsigned(4), reader.unsigned(8)
    if not all(1 <= size <= LARGEST_SIZE for size in shape):
        raise reader.damaged(f"tensor {name[:60]!r} has a dimension out of range")
    try:
        block_elements, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType(type_id)]
    except ValueError as error:
        raise reader.damaged(f"tensor {name[:60]!r} has unknown type {type_id}") from error
    if shape[-1] % block_elements:
        raise reader.damaged(f"tensor {name[:60]!r} has rows of no whole blocks")
    return GGUFTensor(name, shape, type_id, offset, prod(shape) // block_elements * block_bytes)


def _place(reader: _Reader, infos: list[GGUFTensor], alignment: object) -> dict[str, GGUFTensor]:
    """The tensors by name, at their place in the file; they must lie inside it, aligned and apart."""
    if not isinstance(alignment, int) or not 1 <= alignment <= LARGEST_SIZE or alignment & (alignment - 1):
        raise reader.damaged("general.alignment is no power of two")
    start = -(-reader.position // alignment) * alignment
    end = start
    tensors: dict[str, GGUFTensor] = {}
    for info in sorted(infos, key=lambda info: info.offset):
        offset = start + info.offset
        if info.name in tensors or offset % alignment or offset < end:
            raise reader.damaged(f"tensor {info.name[:60]!r} is misplaced")
        end = offset + info.num_bytes
        if end > reader.num_bytes:
            raise reader.damaged(f"it ends inside tensor {info.name[:60]!r}")
        tensors[info.name] = GGUFTensor(info.name, info.shape, info.type_id, offset, info.num_bytes)
    return tensors
