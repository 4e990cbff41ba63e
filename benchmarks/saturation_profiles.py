"""Saturation points of measured GEMM profiles, beside those that a data sheet alone predicts.

    python benchmarks/saturation_profiles.py [--profile FILE.csv]

The file holds times of one transformer layer's GEMMs by GPU, model, tensor parallelism and tokens (Vidur's
profiles, float16). A row is printed for each group: the first size with 90 % of the best measured throughput,
the fitted point with its interval, the point by `RooflineCost` on the data sheet's peaks with its default
efficiencies and the same four GEMMs, and what of the former the latter is. Then, where these differ by more
than half on average, what is behind it and what would mend it, measured on the same file.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, median

import numpy as np
import polars as pl
from numpy.typing import NDArray

# A script's own directory comes first on the path, and holds an engine.py of its own.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from engine.arithmetic import ForwardSums
from engine.peaks import Peaks
from engine.shapes import ModelShape
from profiler.cost import RooflineCost
from profiler.cost_profile import GemmProfile, load_gemm_profile
from profiler.cost_table import EFFICIENCIES
from profiler.hardware import find_card, peaks_of
from profiler.saturation import Saturation, fit_saturation, raw_reach
from profiler.tensor_parallel import shard

PROFILE = Path(__file__).resolve().parents[2] / "shared/corpus/measured/vidur_layer_gemm_vs_tokens.csv"
Q = 0.9
FAR = 1.5  # mean ratio beyond which the report explains itself
LAUNCH_S = 5e-6  # of a GEMM: what stands between kernels that no graph holds together
SHARPNESS = 2.0  # of a smooth maximum of computing and moving
ELEMENT_BYTES = 2
NUM_GEMMS = 4  # QKV, O, GATE_UP, DOWN

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Layer:
    """One transformer layer by the models' published configurations."""

    hidden: int
    heads: int
    kv_heads: int
    head_size: int
    ffn: int
    gated: bool = True

    def shape(self, ffn: int, tp: int) -> ModelShape:
        """One rank's layer, with so many columns of the whole feed-forward."""
        sizes = (1, self.hidden, self.heads, self.kv_heads, self.head_size, ffn)
        return shard(ModelShape("llama", "layer", *sizes, 32_000, 4096, 1e4, 1e-5), tp)


LAYERS = {
    "Qwen/Qwen-72B": Layer(8192, 64, 64, 128, 24576),
    "codellama/CodeLlama-34b-Instruct-hf": Layer(8192, 64, 8, 128, 22016),
    "internlm/internlm-20b": Layer(5120, 40, 40, 128, 13824),
    "meta-llama/Llama-2-70b-hf": Layer(8192, 64, 8, 128, 28672),
    "meta-llama/Llama-2-7b-hf": Layer(4096, 32, 32, 128, 11008),
    "meta-llama/Meta-Llama-3-70B": Layer(8192, 64, 8, 128, 28672),
    "meta-llama/Meta-Llama-3-8B": Layer(4096, 32, 8, 128, 14336),
    "microsoft/phi-2": Layer(2560, 32, 32, 80, 10240, gated=False),
}


@dataclass(frozen=True)
class Profile:
    """(sizes,) times of one group; of a size measured twice the last one, as published summaries take it."""

    gpu: str
    model: str
    tp: int
    tokens: NDArray[np.int64]
    times_s: Array

    @property
    def first_reach(self) -> int:
        """First size with 90 % of the best measured throughput."""
        return raw_reach(self.tokens, self.times_s, Q)[0]

    @cached_property
    def found(self) -> Saturation:
        """The fitted point."""
        return fit_saturation(self.tokens, self.times_s, Q)

    @cached_property
    def peaks(self) -> Peaks:
        """Those of the card's data sheet."""
        return peaks_of(find_card(self.gpu)[0], "float16")

    @cached_property
    def parts_s(self) -> tuple[Array, Array]:
        """(sizes, GEMMs) seconds of computing, and of moving, by the data sheet and default efficiencies."""
        efficiency = EFFICIENCIES["GEMM"]
        assert efficiency.compute is not None
        work = np.array([self.work(int(tokens)) for tokens in self.tokens], dtype=np.float64)
        computing = work[:, :, 0] / (efficiency.compute * self.peaks.flops_per_s)
        return computing, work[:, :, 1] / (efficiency.memory * self.peaks.bytes_per_s)

    @property
    def predicted_s(self) -> Array:
        """(sizes,) seconds by the roofline."""
        times: Array = np.maximum(*self.parts_s).sum(axis=1)
        return times

    @property
    def softened_s(self) -> Array:
        """(sizes,) the same with a smooth maximum."""
        computing, moving = self.parts_s
        times: Array = ((computing**SHARPNESS + moving**SHARPNESS) ** (1 / SHARPNESS)).sum(axis=1)
        return times

    def reach_of(self, times_s: Array) -> int:
        """First size with 90 % of the best of other times at the same sizes."""
        return raw_reach(self.tokens, times_s, Q)[0]

    def reached_at_prediction(self) -> float:
        """Measured speed as a share of the predicted, at the size predicted to be enough."""
        at = self.tokens == self.reach_of(self.predicted_s)
        return float((self.predicted_s / self.times_s)[at][0])

    def profiled_s(self, path: Path) -> Array:
        """(sizes,) seconds with a measured profile of the card's nearest layer as efficiencies."""
        layer = LAYERS[self.model]
        params = layer.shape(layer.ffn, self.tp).layer_gemm_params
        found = load_gemm_profile(path, find_card(self.gpu)[0], params)
        whole, up = self._costs(found)
        times = []
        for tokens in self.tokens:
            parts_s = whole.operator_seconds(_sums(int(tokens)))
            times.append(parts_s[0] + parts_s[1] + up.operator_seconds(_sums(int(tokens)))[2] + parts_s[3])
        return np.array(times)

    def work(self, tokens: int) -> list[tuple[int, int]]:
        """FLOPs and bytes of q k v, o, gate and up, and down."""
        whole, up = (cost.operator_work(_sums(tokens)) for cost in self._costs())
        return [whole[0], whole[1], up[2], whole[3]]

    def _costs(self, profile: GemmProfile | None = None) -> tuple[RooflineCost, RooflineCost]:
        """Of the layer, and of one whose gate and up together are as wide as what the layer has of them."""
        layer = LAYERS[self.model]
        whole, up = (
            RooflineCost(layer.shape(ffn, self.tp), self.peaks, ELEMENT_BYTES, profile=profile)
            for ffn in (layer.ffn, layer.ffn if layer.gated else layer.ffn // 2)
        )
        return whole, up


def _sums(tokens: int) -> ForwardSums:
    return ForwardSums(tokens, 0, 0, 0, 0, 0, 0, 0)


def read_profiles(path: Path) -> list[Profile]:
    """The groups of a file in its order. Raises ValueError if LAYERS has other sizes than a group's FLOPs."""
    lines = pl.read_csv(path)
    found = []
    for group in lines.partition_by("gpu", "model", "tp", maintain_order=True):
        sizes = group.unique("num_tokens", keep="last").sort("num_tokens")
        gpu, model, tp = sizes.row(0)[:3]
        profile = Profile(gpu, model, tp, sizes["num_tokens"].to_numpy(), sizes["gemm_ms"].to_numpy() / 1e3)
        flops = sum(flops for flops, _moved in profile.work(1))
        if not np.allclose(sizes["gemm_flop"] / sizes["num_tokens"], flops):
            raise ValueError(f"{path}: {model} at tp {tp} has other GEMMs than its layer here")
        found.append(profile)
    return found


def print_row(profile: Profile) -> None:
    """A group's points and their ratios."""
    found, predicted = profile.found, profile.reach_of(profile.predicted_s)
    fitted = f"{found.tokens} [{found.low}, {found.high}] {found.fit_kind}" if found.tokens else found.status
    ratios = f"{profile.first_reach / predicted:5.2f}" + (
        f" {found.tokens / predicted:5.2f}" if found.tokens else "     -"
    )
    name = f"{profile.gpu:4} {profile.model:36} {profile.tp}"
    print(f"{name} {profile.first_reach:6}  {fitted:34} {predicted:6} {ratios}", flush=True)


MENDS: dict[str, Callable[[Profile], Array]] = {
    "data sheet": lambda profile: profile.predicted_s,
    "launches": lambda profile: profile.predicted_s + NUM_GEMMS * LAUNCH_S,
    "smooth": lambda profile: profile.softened_s,
    "both": lambda profile: profile.softened_s + NUM_GEMMS * LAUNCH_S,
}


def mean_ratio(profiles: Iterable[Profile], predict: Callable[[Profile], Array]) -> float:
    """The mean of first_reach over the predicted point."""
    return fmean(profile.first_reach / profile.reach_of(predict(profile)) for profile in profiles)


def explain(profiles: Sequence[Profile], path: Path) -> None:
    """Mean ratios by GPU and tensor parallelism; why they are far from 1 where they are."""
    print(f"\nmean of first_reach / predicted   {'  '.join(f'{name:>10}' for name in MENDS)}   reached")
    groups: dict[tuple[str, int], list[Profile]] = {}
    for profile in profiles:
        groups.setdefault((profile.gpu, profile.tp), []).append(profile)
    for (gpu, tp), group in sorted(groups.items()):
        ratios = "  ".join(f"{mean_ratio(group, predict):10.2f}" for predict in MENDS.values())
        reached = median(profile.reached_at_prediction() for profile in group)
        print(f"{gpu:5} tp {tp} ({len(group):2} models)            {ratios}   {reached:7.2f}")
    for gpu in ("a100", "h100"):
        group = groups.get((gpu, 1), [])
        if group and mean_ratio(group, MENDS["data sheet"]) > FAR:
            explain_one(gpu, group, path)


def explain_one(gpu: str, group: Sequence[Profile], path: Path) -> None:
    """Why the data sheet's point is too early on one GPU at tensor parallelism 1, and what would mend it."""
    ratios = {name: mean_ratio(group, predict) for name, predict in MENDS.items()}
    measured = mean_ratio(group, lambda profile: profile.profiled_s(path))
    reached = median(profile.reached_at_prediction() for profile in group)
    print(
        f"\n{gpu}, tp 1: measured points lie at {ratios['data sheet']:.2f} times the predicted tokens.\n"
        "Why: a roofline has a corner. At it computing and reading weights take equally long and are taken\n"
        f"to overlap completely; kernels reach {reached:.2f} of that there (median), and all of it only far\n"
        "beyond. Before a size fills its last wave of tiles, it pays for the whole wave; launches add a few\n"
        "microseconds to each GEMM, which small shards feel most.\n"
        f"What mends it: a smooth maximum of sharpness {SHARPNESS:g} gives {ratios['smooth']:.2f}, with\n"
        f"{LAUNCH_S * 1e6:g} us a launch {ratios['both']:.2f}, chosen on this file, proven on no other.\n"
        f"This file as --profile gives {measured:.2f}."
    )


def main() -> int:
    """Print the table and its explanation."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", type=Path, default=PROFILE, metavar="FILE.csv")
    path = parser.parse_args().profile
    if not path.is_file():
        print(f"--profile {path}: no such file: give a profile of GEMM times", file=sys.stderr)
        return 2
    profiles = read_profiles(path)
    columns = f"{'gpu':4} {'model':36} tp  first  {'fitted [95 % interval]':34}  sheet first/s fit/s"
    print(f"points at q = {Q:g}, measured, fitted and derived from the data sheet, tokens\n\n{columns}")
    for profile in profiles:
        print_row(profile)
    explain(profiles, path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
