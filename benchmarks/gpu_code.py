"""What the Triton kernels compile to: registers, memory and theoretical occupancy, without a GPU.

    python benchmarks/gpu_code.py [-o FILE] [--sm 80 90 100]

Fails if a kernel spills, or if an extend kernel for sm_90 does without `wgmma`.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

# A script's own directory comes first on the path, and would pass benchmarks/engine.py off as `engine`.
sys.path[0] = str(Path(__file__).resolve().parents[1])

from engine.attention.geometry import Geometry  # noqa: E402
from tests.engine.ops.test_cubins import KERNELS as OPERATORS  # noqa: E402
from tests.support.attention_cubins import ATTENTION_KERNELS, compile_attention  # noqa: E402
from tests.support.cubins import Cubin, for_target  # noqa: E402

HEAD_DIMS = (64, 80, 96, 128, 256)
DTYPES = ("bf16", "fp16")
GROUPED = Geometry(num_heads=32, num_kv_heads=8, head_dim=128, page_size=16)
OTHERS = {
    "one KV head": replace(GROUPED, num_kv_heads=1),
    "ungrouped": replace(GROUPED, num_kv_heads=32),
    "pages of 1": replace(GROUPED, page_size=1),
    "pages of 128": replace(GROUPED, page_size=128),
    "window": replace(GROUPED, window=4096),
}
MATRIX_INSTRUCTIONS = {"wgmma": "wgmma.mma_async", "tcgen05": "tcgen05.mma", "mma": "mma.sync"}


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """What resident programs share (CUDA C programming guide, table of compute capabilities)."""

    shared_bytes: int
    warps: int = 64
    programs: int = 32
    registers: int = 1 << 16

    def resident_warps(self, cubin: Cubin) -> int:
        """Warps of as many programs as fit at once."""
        per_warp = -(-cubin.registers // REGISTER_UNIT) * REGISTER_UNIT * 32
        shared = cubin.shared_bytes + RESERVED_SHARED_BYTES
        fit = min(
            self.programs,
            self.warps // cubin.num_warps,
            self.registers // (per_warp * cubin.num_warps),
            self.shared_bytes // shared,
        )
        return fit * cubin.num_warps


REGISTER_UNIT = 8  # of a thread; a warp is given whole ones
RESERVED_SHARED_BYTES = 1 << 10  # by the system, for each program
CARDS = {80: Multiprocessor(164 << 10), 90: Multiprocessor(228 << 10), 100: Multiprocessor(228 << 10)}


@dataclass(frozen=True, slots=True)
class Row:
    """One compiled kernel."""

    name: str
    shapes: str
    head_dim: int
    dtype: str
    sm: int
    cubin: Cubin

    @property
    def instruction(self) -> str:
        """The kind of instruction that multiplies matrices."""
        found = [name for name, text in MATRIX_INSTRUCTIONS.items() if text in self.cubin.ptx]
        return found[0] if found else ""

    @property
    def fault(self) -> str | None:
        """What is wrong with the code."""
        if self.cubin.local_bytes:
            return f"{self.cubin.local_bytes} bytes of local memory"
        if self.name == "extend" and self.sm == 90 and self.instruction != "wgmma":
            return "no wgmma"
        if not CARDS[self.sm].resident_warps(self.cubin):
            return "does not fit a multiprocessor"
        return None

    def cells(self) -> list[str]:
        """As the table shows it."""
        cubin, card = self.cubin, CARDS[self.sm]
        warps = card.resident_warps(cubin)
        return [
            self.name,
            self.shapes,
            str(self.head_dim),
            self.dtype,
            f"sm_{self.sm}",
            str(cubin.num_warps),
            str(cubin.registers),
            f"{cubin.shared_bytes:,}",
            str(cubin.local_bytes),
            f"{warps} ({warps / card.warps:.0%})",
            self.instruction,
        ]


INTRODUCTION = """\
# What the Triton kernels compile to

By `make gpu-code` with triton {version} and the `ptxas` of its wheel. No GPU was used, and nothing here is a
time. 32 query heads over 8 KV heads and pages of 16 tokens, unless the variant says otherwise. Registers and
local memory are per thread, shared memory per program. Resident warps are what registers and shared memory
let one multiprocessor hold, and their share of the most it can.
"""
RESULTS = Path(__file__).parent / "results" / "gpu_code.md"
HEADER = [
    "kernel",
    "variant",
    "head_dim",
    "dtype",
    "target",
    "warps",
    "registers",
    "shared bytes",
    "local bytes",
    "resident warps",
    "matrix unit",
]


def rows(targets: list[int]) -> Iterator[Row]:
    """Each attention kernel for every head size and type, and its other variants; then the operators."""
    for sm in targets:
        for head_dim in HEAD_DIMS:
            for dtype in DTYPES:
                for name in ATTENTION_KERNELS:
                    geometry = replace(GROUPED, head_dim=head_dim)
                    cubin = compile_attention(name, geometry, dtype, sm)
                    yield Row(name, "", head_dim, dtype, sm, cubin)
        for shapes, geometry in OTHERS.items():
            for name in ("extend", "decode"):
                cubin = compile_attention(name, geometry, "bf16", sm)
                yield Row(name, shapes, geometry.head_dim, "bf16", sm, cubin)
        for name, compiled in OPERATORS.items():
            with for_target(sm):
                cubin = compiled()
            yield Row(name, "Llama-3.1-8B", GROUPED.head_dim, "bf16", sm, cubin)


def table(made: list[Row]) -> str:
    """Markdown."""
    import triton

    lines = [
        INTRODUCTION.format(version=triton.__version__),
        "| " + " | ".join(HEADER) + " |",
        "|" + " --- |" * len(HEADER),
    ]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in made]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=RESULTS, help="where the table goes")
    parser.add_argument("--sm", type=int, nargs="+", choices=sorted(CARDS), default=sorted(CARDS))
    options = parser.parse_args()
    made = []
    for row in rows(options.sm):
        made.append(row)
        print(*row.cells(), sep="  ", flush=True)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(table(made))
    faults = [f"{' '.join(row.cells()[:5])}: {row.fault}" for row in made if row.fault]
    print(*faults, sep="\n", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
