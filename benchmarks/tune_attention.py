"""Times block shapes of the attention kernels on the GPU at hand and writes the fastest into the table.

    python -m benchmarks.tune_attention [--head-dims 64 128 256] [--dry-run]

The table is engine/attention/block_shapes.py; what it says is used from the next start on.
"""

import argparse
import re
from array import array
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path

import numpy as np
import torch

from engine.attention import block_shapes
from engine.attention.block_shapes import AttentionBlocks, BlockShape, attention_blocks
from engine.attention.triton_paged import TritonPagedAttention
from engine.batch import ForwardBatch, ForwardMode, Role
from engine.kv_tensors import KVTensors
from engine.request import Request
from engine.shapes import ModelShape

PAGE_SIZE = 16
# (prefix, new tokens) of the rows: a whole prompt and a chunk of a long one; then rows that decode.
EXTEND_ROWS = [(0, 8192), (24576, 4096)]
DECODE_ROWS = [(4095, 1)] * 64
EXTEND_CANDIDATES = [
    BlockShape(*values) for values in product((64, 128), (32, 64, 128), (4, 8), (1, 2, 3, 4))
]
DECODE_CANDIDATES = [BlockShape(16, *values) for values in product((32, 64, 128), (2, 4, 8), (1, 2, 3, 4))]


def model_shape(head_dim: int) -> ModelShape:
    return ModelShape("llama", "tuning", 1, 4096, 32, 8, head_dim, 14336, 128256, 1 << 17, 1e4, 1e-5)


def batch_of(rows: list[tuple[int, int]], decodes: bool) -> ForwardBatch:
    """A batch whose rows have pages of their own, in the order of a pool that was just made."""
    prefix_lens, extend_lens = np.array(rows, dtype=np.int32).T
    counts = -(-(prefix_lens + extend_lens) // PAGE_SIZE)
    ends = np.cumsum(counts) + 1
    zeros = np.zeros(len(rows), dtype=np.int32)
    return ForwardBatch(
        forward_id=0,
        mode=ForwardMode.DECODE if decodes else ForwardMode.EXTEND,
        requests=[Request(i, str(i), [0]) for i in range(len(rows))],
        num_extend_seqs=0 if decodes else len(rows),
        page_size=PAGE_SIZE,
        rids=zeros,
        attempts=zeros,
        roles=np.full(len(rows), Role.DECODE if decodes else Role.LAST, dtype=np.uint8),
        prefix_lens=prefix_lens,
        extend_lens=extend_lens,
        cached_tokens=zeros,
        input_ids=np.zeros(int(extend_lens.sum()), dtype=np.int32),
        pages=[
            array("i", range(end - count, end))
            for end, count in zip(ends.tolist(), counts.tolist(), strict=True)
        ],
    )


def attention_of(
    shape: ModelShape, batch: ForwardBatch, dtype: torch.dtype, device: torch.device
) -> Callable[[AttentionBlocks], Callable[[], torch.Tensor]]:
    """Gives, for blocks, a function that runs the batch's attention over random keys and values."""
    pages = sum(len(row) for row in batch.pages)
    kv = KVTensors(shape, pages, PAGE_SIZE, dtype, device)
    kv.pool(0).normal_()
    width = shape.q_size + 2 * shape.kv_size
    qkv = torch.randn((len(batch.input_ids), width), dtype=dtype, device=device)

    def with_blocks(blocks: AttentionBlocks) -> Callable[[], torch.Tensor]:
        plan = TritonPagedAttention(shape, kv, blocks=blocks).plan(batch)
        return lambda: plan.attend(0, qkv)

    return with_blocks


def fastest(
    candidates: Iterable[BlockShape],
    run: Callable[[BlockShape], Callable[[], torch.Tensor]],
    time_ms: Callable[[Callable[[], torch.Tensor]], float],
) -> tuple[BlockShape, float]:
    """The candidate of the least time, and its time; one that does not fit the device is passed over."""
    from triton import CompilationError
    from triton.runtime import OutOfResources

    times: dict[BlockShape, float] = {}
    for shape in candidates:
        try:
            times[shape] = time_ms(run(shape))
        except (OutOfResources, CompilationError) as error:
            print(f"  {shape}: {type(error).__name__}")
        else:
            print(f"  {shape}: {times[shape]:.3f} ms")
    best = min(times, key=times.__getitem__)
    return best, times[best]


def rewritten(source: str, table: str, key: tuple[int, int], shape: BlockShape, card: str) -> str:
    """The module's text with one entry of `table` set, and the card that it was timed on beside it."""
    start = source.index(f"\n{table} = {{\n")
    end = source.index("\n}\n", start)
    values = f"{shape.block_m}, {shape.block_n}, {shape.num_warps}, {shape.num_stages}"
    line = f"    {key}: BlockShape({values}),  # timed on {card}"
    entries = [e for e in source[start:end].split("\n")[2:] if not e.startswith(f"    {key}:")]
    entries = sorted([*entries, line], key=lambda e: [int(n) for n in re.findall(r"\d+", e)[:2]])
    return source[: start + 1] + f"{table} = {{\n" + "\n".join(entries) + source[end:]


def main() -> None:
    from triton.testing import do_bench

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--head-dims", type=int, nargs="+", choices=(64, 128, 256), default=(64, 128, 256))
    parser.add_argument("--dry-run", action="store_true", help="time, but leave the table as it is")
    options = parser.parse_args()
    device = torch.device("cuda", torch.cuda.current_device())
    major, minor = torch.cuda.get_device_capability(device)
    card = torch.cuda.get_device_name(device)
    path = Path(block_shapes.__file__)
    for head_dim in options.head_dims:
        shape, present = model_shape(head_dim), attention_blocks(10 * major + minor, head_dim)
        for table, rows, candidates in (
            ("EXTEND", EXTEND_ROWS, EXTEND_CANDIDATES),
            ("DECODE", DECODE_ROWS, DECODE_CANDIDATES),
        ):
            print(f"{table} of heads of {head_dim} on {card}")
            extends = table == "EXTEND"
            make = attention_of(shape, batch_of(rows, not extends), torch.bfloat16, device)

            def run(
                blocks: BlockShape, make=make, extends=extends, present=present
            ) -> Callable[[], torch.Tensor]:
                both = (blocks, present.decode) if extends else (present.extend, blocks)
                return make(AttentionBlocks(*both))

            best, time_ms = fastest(candidates, run, lambda f: do_bench(f, return_mode="median"))
            print(f"fastest: {best}, {time_ms:.3f} ms")
            if not options.dry_run:
                key = (10 * major + minor, head_dim)
                path.write_text(rewritten(path.read_text(), table, key, best, card))


if __name__ == "__main__":
    main()
