"""What the compiler makes of a Triton kernel for a GPU that need not be there."""

import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

__all__ = ["Cubin", "compile_cubin", "for_target"]

_target: ContextVar[int] = ContextVar("_target", default=90)
ALIGNMENT_BYTES = 16  # of every pointer that torch hands out


@dataclass(frozen=True)
class Cubin:
    """One compiled kernel; sizes per thread (registers, stack, local) or per program (shared)."""

    name: str
    ptx: str
    binary: bytes
    shared_bytes: int
    num_warps: int

    @property
    def registers(self) -> int:
        """Registers of one thread."""
        return self._resources["REG"]

    @property
    def local_bytes(self) -> int:
        """Local memory of one thread: what spilled, and arrays that are no registers."""
        return self._resources["STACK"] + self._resources["LOCAL"]

    @cached_property
    def sass(self) -> str:
        """The machine code as text."""
        return _cuobjdump(self.binary, "-sass")

    @cached_property
    def _resources(self) -> dict[str, int]:
        usage = _cuobjdump(self.binary, "--dump-resource-usage")
        return {key: int(value) for key, value in re.findall(r"(\w+):(\d+)", usage)}


@contextmanager
def for_target(capability: int) -> Iterator[None]:
    """Within it kernels are compiled for sm_`capability` unless their caller names another."""
    token = _target.set(capability)
    yield
    _target.reset(token)


def compile_cubin(
    kernel: Any,
    signature: Mapping[str, str],
    constants: Mapping[str, Any],
    *,
    capability: int | None = None,
    num_warps: int = 4,
    num_stages: int = 3,
) -> Cubin:
    """Compile `kernel`, which must not have been decorated for the interpreter, for sm_`capability`.

    Without one for sm_90, or for what `for_target` says.
    `signature` gives the types of the arguments that are no constants ("*fp16", "i32", "fp32"), pointers
    being aligned as torch aligns them; `constants` holds the others.
    """
    types = {name: signature.get(name, "constexpr") for name in kernel.arg_names}
    attrs = {
        (i,): [["tt.divisibility", ALIGNMENT_BYTES]]
        for i, name in enumerate(kernel.arg_names)
        if types[name].startswith("*")
    }
    placed = {(kernel.arg_names.index(name),): value for name, value in constants.items()}
    source = ASTSource(kernel, types, placed, attrs)
    compiled = triton.compile(
        source,
        target=GPUTarget("cuda", capability or _target.get(), 32),
        options={"num_warps": num_warps, "num_stages": num_stages},
    )
    return Cubin(
        kernel.__name__, compiled.asm["ptx"], compiled.asm["cubin"], compiled.metadata.shared, num_warps
    )


def _cuobjdump(binary: bytes, option: str) -> str:
    with TemporaryDirectory() as directory:
        path = Path(directory, "kernel.cubin")
        path.write_bytes(binary)
        tool = triton.knobs.nvidia.cuobjdump.path
        return subprocess.run([tool, option, str(path)], capture_output=True, text=True, check=True).stdout
