"""Repeated sweeps on this CPU: does the saturation point of one sweep hold for the next ones?

    python benchmarks/saturation_cpu.py --out DIR [--threads 1] [--sweeps 10] [--budget 90]
        [--dtypes float32,bfloat16] [--tokens 1:2048] [--widths] [--analyse-only]

Sweeps SmolLM2-135M with `chunkscope sweep`, each time in a process and an order of its own, the dtypes in
turn, and says how many of the points found lie in the interval of the first sweep. `--widths` sweeps four
models of growing hidden size and random weights, once each, and says whether the larger ones saturate at
fewer tokens.

Traces are kept in DIR. Those that are there are not recorded again, so a run that was stopped goes on, and
--analyse-only records nothing. The answers go to standard output and to DIR/answers.json.
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

# A script's own directory comes first on the path, and holds an engine.py of its own.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from engine.errors import ConfigError
from profiler.saturation import Saturation, saturation
from profiler.sweep_cases import parse_range
from traces.reader import open_trace
from ui.errors import UserError
from ui.smollm2 import require_smollm2

SUFFIX = ".chunkscope"
WIDTHS = (256, 512, 1024, 2048)
WIDTH_LAYERS = 2
HEAD_SIZE = 64
WIDTH_VOCAB = 1024  # small, so that the layers decide and not the head
HOLDS = {"ok": 0.7, "not_saturated": 0.9}  # share of the other sweeps that must agree with the first
WIDEST = 2.5  # high / low of the first interval


def sweep(model: Path, trace: Path, options: argparse.Namespace, *, dtype: str, seed: int) -> None:
    """Record one sweep, unless it is there; a sweep that breaks off leaves nothing at `trace`."""
    if trace.exists():
        return
    part = trace.with_suffix(f".part{SUFFIX}")
    shutil.rmtree(part, ignore_errors=True)
    print(f"recording {trace.name}", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "ui", "sweep", "--model", model, "--device", "cpu", "--dtype", dtype]
    command += ["--threads", options.threads, "--tokens", options.tokens, "--budget", options.budget]
    command += ["--seed", seed, "-o", part]
    root = Path(__file__).resolve().parents[1]
    subprocess.run([str(part) for part in command], check=True, cwd=root)
    part.rename(trace)


def repeated_sweeps(options: argparse.Namespace) -> None:
    """The sweeps of SmolLM2, the dtypes in turn so that a change of the machine meets both."""
    model = require_smollm2()
    for number in range(options.sweeps):
        for dtype in options.dtypes:
            sweep(model, _repeat(options.out, dtype, number), options, dtype=dtype, seed=number)


def width_sweeps(options: argparse.Namespace) -> None:
    """A sweep of each width, in the first dtype."""
    for width in WIDTHS:
        config = options.out / f"width-{width}.json"
        config.write_text(json.dumps(width_config(width)))
        sweep(config, _width(options.out, width), options, dtype=options.dtypes[0], seed=0)


def width_config(hidden: int) -> dict[str, Any]:
    """A Llama of so many hidden elements; only the widths of its matrices grow."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": 4 * hidden,
        "num_hidden_layers": WIDTH_LAYERS,
        "num_attention_heads": hidden // HEAD_SIZE,
        "num_key_value_heads": hidden // HEAD_SIZE,
        "head_dim": HEAD_SIZE,
        "vocab_size": WIDTH_VOCAB,
        "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10_000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": True,
    }


def answers_of(folder: Path) -> dict[str, Any]:
    """All answers of the traces in `folder`."""
    dtypes = sorted({trace.name.rsplit("-", 1)[0] for trace in _traces(folder) if not _is_width(trace)})
    answers: dict[str, Any] = {"sweeps": {dtype: agreement(_points(folder, dtype)) for dtype in dtypes}}
    widths = {w: _found(_width(folder, w)) for w in WIDTHS if _width(folder, w).exists()}
    if widths:
        points = [found.tokens for found in widths.values() if found.tokens is not None]
        known = len(points) == len(widths) > 1
        answers["widths"] = {str(width): _as_json(found) for width, found in widths.items()}
        answers["larger_saturate_at_fewer_tokens"] = (
            all(narrow > wide for narrow, wide in pairwise(points)) if known else None
        )
    return answers


def agreement(found: Sequence[Saturation]) -> dict[str, Any]:
    """How the repeated sweeps agree with the first."""
    first, others = found[0], found[1:]
    answer: dict[str, Any] = {"first_status": first.status, "sweeps": [_as_json(each) for each in found]}
    agreeing = sum(each.status == first.status for each in others)
    answer["others_with_its_status"] = f"{agreeing} of {len(others)}"
    if first.low is not None and first.high is not None:
        agreeing = sum(each.tokens is not None and first.low <= each.tokens <= first.high for each in others)
        answer["others_in_its_interval"] = f"{agreeing} of {len(others)}"
        answer["high_by_low"] = round(first.high / first.low, 3)
    narrow = answer.get("high_by_low", 1.0) <= WIDEST
    answer["holds"] = None
    if others and first.status in HOLDS:
        answer["holds"] = narrow and agreeing >= HOLDS[first.status] * len(others)
    return answer


def _points(folder: Path, dtype: str) -> list[Saturation]:
    numbers = sorted(int(t.stem.rsplit("-", 1)[1]) for t in _traces(folder) if t.name.startswith(f"{dtype}-"))
    return [_found(_repeat(folder, dtype, number)) for number in numbers]


def _found(trace: Path) -> Saturation:
    return saturation(open_trace(trace))


def _as_json(found: Saturation) -> dict[str, Any]:
    names = ("status", "tokens", "low", "high", "fit_kind", "first_reach", "last_below")
    counts = ("num_sizes", "num_points")
    return {name: getattr(found, name) for name in (*names, *counts)}


def _traces(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.glob(f"*{SUFFIX}")) if ".part." not in path.name)


def _repeat(folder: Path, dtype: str, number: int) -> Path:
    return folder / f"{dtype}-{number:02}{SUFFIX}"


def _width(folder: Path, width: int) -> Path:
    return folder / f"width-{width}{SUFFIX}"


def _is_width(trace: Path) -> bool:
    return trace.name.startswith("width-")


def main() -> int:
    """Record what is missing, then print the answers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sweeps", type=int, default=10)
    parser.add_argument("--budget", type=float, default=90, metavar="SECONDS")
    parser.add_argument("--dtypes", type=lambda text: text.split(","), default=["float32", "bfloat16"])
    parser.add_argument("--tokens", default="1:2048", metavar="LOW:HIGH")
    parser.add_argument("--widths", action="store_true", help="sweep four widths instead of SmolLM2")
    parser.add_argument("--analyse-only", action="store_true", help="record nothing")
    options = parser.parse_args()
    try:
        parse_range(options.tokens, "--tokens", "tokens")
        options.out.mkdir(parents=True, exist_ok=True)
        if not options.analyse_only:
            (width_sweeps if options.widths else repeated_sweeps)(options)
    except (ConfigError, UserError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    answers = json.dumps(answers_of(options.out), indent=2)
    (options.out / "answers.json").write_text(answers + "\n")
    print(answers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
