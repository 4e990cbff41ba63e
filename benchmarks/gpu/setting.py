"""What is measured: on a GPU with a model's true sizes, and on a CPU only to see that all of it runs."""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["SHARES", "DecodePoint", "ExtendPoint", "Setting", "full", "quick"]

HERE = Path(__file__).parent
SHARES = {  # of the script's seconds, which a phase may use up; most take far less
    "machine": 0.05,
    "correctness": 0.3,
    "ceilings": 0.05,
    "extend": 0.15,
    "decode": 0.1,
    "prefill": 0.1,
    "batches": 0.15,
    "recorder": 0.1,
}


@dataclass(frozen=True, slots=True)
class ExtendPoint:
    """Sequences of `seq_len` tokens whose last `chunk` tokens are computed."""

    sequences: int
    seq_len: int
    chunk: int


@dataclass(frozen=True, slots=True)
class DecodePoint:
    """Decode rows of `seq_len` tokens each, or of lengths spread evenly from 1 to twice that."""

    rows: int
    seq_len: int
    ragged: bool = False


@dataclass(frozen=True, slots=True)
class Setting:
    """One run's sizes. Times are shared out by `seconds`, those of the whole script."""

    device: str
    quick: bool
    seconds: float
    model: Path
    dtype: str
    page_size: int
    repeats: int  # of each kernel
    gemm_sizes: tuple[int, ...]
    copy_bytes: int
    extend: tuple[ExtendPoint, ...]
    decode: tuple[DecodePoint, ...]
    prefill_tokens: tuple[int, ...]
    prefill_repeats: int
    batches: tuple[int, ...]
    prompt_tokens: int
    new_tokens: int
    recorder_rows: int
    recorder_rounds: int

    @property
    def on_gpu(self) -> bool:
        """Whether this is about a GPU."""
        return self.device == "cuda"


def full(device: str, seconds: float) -> Setting:
    """Llama-3.1-8B's sizes."""
    extend = [
        ExtendPoint(1, seq_len, chunk)
        for seq_len in (2048, 8192, 32768)
        for chunk in (512, 2048, 8192, 32768)
        if chunk <= seq_len
    ]
    return Setting(
        device=device,
        quick=False,
        seconds=seconds,
        model=HERE / "llama-3.1-8b.json",
        dtype="bfloat16",
        page_size=16,
        repeats=20,
        gemm_sizes=(4096, 8192, 16384),
        copy_bytes=2 << 30,
        extend=(*extend, ExtendPoint(1, 131072, 8192), ExtendPoint(16, 1024, 1024)),
        decode=(
            *(DecodePoint(rows, seq_len) for seq_len in (1024, 8192) for rows in (1, 8, 64, 256)),
            *(DecodePoint(rows, 32768) for rows in (1, 8, 64)),
            DecodePoint(64, 8192, ragged=True),
        ),
        prefill_tokens=(16, 32, 64, 128, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 16384),
        prefill_repeats=5,
        batches=(1, 2, 4, 8, 16, 32, 64, 128, 256),
        prompt_tokens=1024,
        new_tokens=48,
        recorder_rows=64,
        recorder_rounds=5,
    )


def quick(device: str, seconds: float) -> Setting:
    """Sizes of no meaning, small enough for a CPU."""
    return Setting(
        device=device,
        quick=True,
        seconds=seconds,
        model=HERE / "tiny.json",
        dtype="bfloat16" if device == "cuda" else "float32",
        page_size=16,
        repeats=3,
        gemm_sizes=(128, 256),
        copy_bytes=1 << 20,
        extend=(ExtendPoint(1, 64, 64), ExtendPoint(1, 96, 32), ExtendPoint(3, 40, 40)),
        decode=(DecodePoint(4, 64), DecodePoint(3, 32, ragged=True)),
        prefill_tokens=(8, 16, 32, 64),
        prefill_repeats=2,
        batches=(1, 3, 8),
        prompt_tokens=24,
        new_tokens=8,
        recorder_rows=4,
        recorder_rounds=2,
    )
