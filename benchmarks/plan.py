"""Plans on paper of every configuration on every card with known peaks, and how long each takes.

    python benchmarks/plan.py [--configs FOLDER] [--model NAME] [--gpu NAME]

Each model runs on the fewest devices that can share it and hold it. A plan should take less than a second;
the last one runs once more as a process of its own, interpreter and imports included. Then the saturation
points by the data sheet alone and by GEMMs that were measured on the same card.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median

# A script's own directory comes first on the path, and holds an engine.py of its own.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from engine.errors import EngineError
from profiler.hardware import all_cards
from profiler.paper.device import paper_device
from profiler.paper.plan import PaperPlan, paper_plan
from profiler.paper.point import LARGEST_TOKENS, paper_point
from profiler.paper.read import read_model

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT.parent / "shared" / "corpus"
CONFIGS = CORPUS / "configs"
GEMMS = CORPUS / "measured" / "vidur_layer_gemm_vs_tokens.csv"
MEASURED_CARDS = ("A40", "A100 SXM4 80GB", "H100 SXM5")
DEVICES = (1, 2, 4, 8, 16)
WANTED_S = 1.0


@dataclass(frozen=True, slots=True)
class Planned:
    """One cell of the matrix; without a plan `refusal` says why."""

    config: Path
    gpu: str
    tp: int
    wall_s: float
    cpu_s: float
    plan: PaperPlan | None
    refusal: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--configs", type=Path, default=CONFIGS)
    parser.add_argument("--profile", type=Path, default=GEMMS, help="measured GEMM times of a layer")
    parser.add_argument("--model", default="", help="configurations whose name holds this")
    parser.add_argument("--gpu", default="", help="cards whose name holds this")
    options = parser.parse_args()
    configs = sorted(path for path in options.configs.glob("*.config.json") if options.model in path.name)
    known = [
        card.name for card in all_cards() if {"bf16_dense_tflops", "bandwidth_tb_s"} <= card.values.keys()
    ]
    cells = []
    for config, gpu in product(configs, (name for name in known if options.gpu in name)):
        cells.append(planned(config, gpu))
        print(line(cells[-1]), flush=True)
    print("\n".join(summary(cells)))
    print("\n".join(by_measured_gemms(configs, options.profile)))


def planned(config: Path, gpu: str) -> Planned:
    """On the fewest devices that take the model."""
    refusal = ""
    for tp in DEVICES:
        start_s, start_cpu_s = time.perf_counter(), time.process_time()
        try:
            model = read_model(config)
            plan = paper_plan(model, paper_device(model, gpu, tp=tp))
        except EngineError as error:
            refusal = str(error)
            continue
        wall_s, cpu_s = time.perf_counter() - start_s, time.process_time() - start_cpu_s
        return Planned(config, gpu, tp, wall_s, cpu_s, plan)
    return Planned(config, gpu, DEVICES[-1], 0.0, 0.0, None, refusal)


def line(cell: Planned) -> str:
    name = cell.config.name.removesuffix(".config.json")
    if cell.plan is None:
        return f"{name:36} {cell.gpu:28} {cell.refusal}"
    point = cell.plan.point
    share = cell.plan.start.plateau_share or 0.0
    return (
        f"{name:36} {cell.gpu:28} tp {cell.tp:2}  point {point.tokens or point.status!s:>13}  ridge "
        f"{point.ridge_tokens or '-'!s:>6}  start {' '.join(cell.plan.start.options.arguments()):56} "
        f"{share:5.1%} of the best  {cell.wall_s * 1e3:4.0f} ms, {cell.cpu_s * 1e3:4.0f} ms of CPU"
    )


def summary(cells: list[Planned]) -> Iterator[str]:
    plans = [cell for cell in cells if cell.plan is not None]
    if not plans:
        return
    for what, times in (("wall", [c.wall_s for c in plans]), ("CPU", [c.cpu_s for c in plans])):
        below = sum(seconds < WANTED_S for seconds in times)
        yield (
            f"{len(plans)} plans, {what} time: median {median(times) * 1e3:.0f} ms, longest "
            f"{max(times) * 1e3:.0f} ms, {below} below {WANTED_S:g} s"
        )
    yield f"{len(cells) - len(plans)} refused in one line"
    last = plans[-1]
    command = ["-m", "ui", "plan", "--model", str(last.config), "--gpu", last.gpu, "--tp", str(last.tp)]
    start_s = time.perf_counter()
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=True)
    yield f"python {' '.join(command)}: {(time.perf_counter() - start_s) * 1e3:.0f} ms"
    yield done.stdout.splitlines()[0]


def by_measured_gemms(configs: list[Path], profile: Path) -> Iterator[str]:
    """Points of one device, whether it holds the model or not."""
    ratios = []
    for config, gpu in product(configs, MEASURED_CARDS):
        model = read_model(config)
        try:
            costs = [
                paper_device(model, gpu, dtype="bf16", profile=of).cost_model() for of in (None, profile)
            ]
        except EngineError as error:
            yield f"{model.name:36} {gpu:28} {error}"
            continue
        largest = min(LARGEST_TOKENS, model.max_position_embeddings)
        sheet, measured = (paper_point(cost, largest).tokens for cost in costs)
        told = (
            f"{model.name:36} {gpu:28} data sheet {sheet or '-'!s:>6}  measured GEMMs {measured or '-'!s:>6}"
        )
        if sheet and measured:
            ratios.append(measured / sheet)
            told += f"  ratio {ratios[-1]:.2f}"
        yield told
    if ratios:
        yield f"ratio: median {median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}"


if __name__ == "__main__":
    main()
