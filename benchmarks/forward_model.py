"""How well a fitted model of forwards tells forwards that it was not fitted to, and what fitting costs.

    python benchmarks/forward_model.py [--demo DIR] [--model CONFIG.json] [--gpu H200] [--forwards 100000]

- Measured: of the three policies that `chunkscope demo -o DIR` ran, two are fitted and the third is told,
  then each one is fitted alone and tells the others and the sweep.
  What users felt is told, too: the third one's requests go through the scheduler with the fitted model.
- Simulated: a run with chunks of 512 tokens is fitted and tells runs with other chunks.
- Speed: a trace of `--forwards` forwards, made of copies of a simulated run with noise, is fitted.

Of each layout of rows it prints the forwards, the median of |log(measured / fit)|, the median of the log, and
by how much the sum of all fitted times misses the sum of the measured ones.
"""

import argparse
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TypeVar

# A script's own directory comes first on the path, and holds an engine.py of its own.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import pyarrow as pa

from engine.config import CHUNKING_OFF, EngineConfig
from engine.models.checkpoint import open_checkpoint
from engine.request import Request, SamplingParams
from profiler.fitted_cost import FittedCost
from profiler.forward_features import LAYOUTS, forwards_of
from profiler.forward_fit import fit_curve, grouped
from profiler.forward_fit_host import host_time
from profiler.forward_fit_prior import expected, prior_of, work_of
from profiler.forward_fit_setting import setting_of
from profiler.forward_model import ForwardModel, fit_forward_model
from profiler.latency import latency
from profiler.tables import TraceLike
from profiler.trial import trial
from profiler.trial_requests import requests_of
from traces.reader import open_trace
from ui.gpu_options import GpuOptions
from ui.simulating import SimulatedDevice, SimulatedSession, simulated_device

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"
MODEL = CORPUS / "configs" / "meta-llama--Meta-Llama-3.1-8B.config.json"
POLICIES = ("whole", "chunked", "mixed")
REQUESTS, ARRIVALS_PER_S = 60, 8.0
NOISE = 0.03

Result = TypeVar("Result")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--demo", type=Path, help="directory of the demo's traces")
    parser.add_argument("--model", type=Path, default=MODEL, help="a config.json")
    parser.add_argument("--gpu", default="H200")
    parser.add_argument("--forwards", type=int, default=100_000)
    options = parser.parse_args()
    if options.demo is not None:
        measured({name: open_trace(options.demo / f"{name}.chunkscope") for name in (*POLICIES, "sweep")})
    device = simulated_device(open_checkpoint(options.model, "dummy"), GpuOptions(gpu=options.gpu), "auto")
    with tempfile.TemporaryDirectory() as folder:
        fitted = simulated(device, Path(folder))
        speed(fitted, options.forwards)


def measured(traces: Mapping[str, TraceLike]) -> None:
    for held in POLICIES:
        model = fit_forward_model([traces[name] for name in POLICIES if name != held])
        print(f"\nmeasured, {held} told by the other two")
        print_errors(model, traces[held])
        print_felt(model, traces[held])
    for fitted in POLICIES:
        model = fit_forward_model(traces[fitted])
        for told in (*POLICIES, "sweep"):
            if told != fitted:
                print(f"\nmeasured, {told} told by {fitted}")
                print_errors(model, traces[told])
        print_terms(model)


def simulated(device: SimulatedDevice, folder: Path) -> TraceLike:
    """Returns the trace that is fitted."""

    def record(chunk: int, seed: int, **more: Any) -> TraceLike:
        config = EngineConfig(chunked_prefill_size=chunk, disable_radix_cache=True, **more)
        path = folder / f"{chunk}-{seed}.chunkscope"
        SimulatedSession(device, config).record_run(requests(seed), path, workload={})
        return open_trace(path)

    trace = record(512, seed=0)
    model = fit_forward_model(trace)
    print(f"\nsimulated, {model.setting.label}: chunks of 512 fitted")
    print_errors(model, trace)
    print_terms(model)
    for chunk in (256, 1024, 4096, CHUNKING_OFF):
        print(f"\nsimulated, {'whole prompts' if chunk == CHUNKING_OFF else f'chunks of {chunk:,}'} told")
        print_errors(model, record(chunk, seed=1))
    print("\nsimulated, chunks of 1,024 with decode rows told")
    print_errors(model, record(1024, seed=2, enable_mixed_chunk=True))
    return trace


def requests(seed: int) -> Sequence[Request]:
    """Prompts of 500 to 12,000 tokens, even in their logarithm."""
    rng = Random(seed)
    made, now_s = [], 0.0
    for rid in range(REQUESTS):
        now_s += rng.expovariate(ARRIVALS_PER_S)
        prompt = array("i", [rid + 1]) * round(500 * 24 ** rng.random())
        sampling = SamplingParams(rng.randint(50, 400))
        made.append(Request(rid, f"r{rid}", prompt, sampling, round(now_s * 1e9)))
    return made


@dataclass(frozen=True)
class CopiedTrace:
    """Forwards of a trace again and again, each a little longer or shorter, in order of time."""

    meta: Mapping[str, Any]
    forwards: pa.Table
    of: TraceLike
    torn_bytes: int = 0

    def table(self, name: str) -> pa.Table:
        return self.forwards if name == "forwards" else self.of.table(name)


def copied(trace: TraceLike, count: int) -> CopiedTrace:
    """At least `count` forwards; each copy's decode rows are a token longer than those of the copy before."""
    forwards = trace.table("forwards")
    rng = np.random.default_rng(0)
    parts = []
    span = int(np.max(forwards.column("end_ns").to_numpy()))
    for copy in range(-(-count // len(forwards))):
        columns = {name: forwards.column(name).to_numpy() for name in CHANGED}
        times = (columns["end_ns"] - columns["start_ns"]) * np.exp(rng.normal(0, NOISE, len(forwards)))
        columns["pairs_decode"] = columns["pairs_decode"] + copy * columns["decode_tokens"]
        columns["start_ns"] = columns["start_ns"] + copy * span
        columns["end_ns"] = columns["start_ns"] + times.round().astype(np.int64)
        part = forwards
        for name, values in columns.items():
            at = part.schema.get_field_index(name)
            part = part.set_column(
                at, part.schema.field(name), pa.array(values, part.schema.field(name).type)
            )
        parts.append(part)
    return CopiedTrace(trace.meta, pa.concat_tables(parts).combine_chunks(), trace)


CHANGED = ("start_ns", "end_ns", "decode_tokens", "pairs_decode")


def speed(trace: TraceLike, count: int) -> None:
    """The whole fit, and then its parts one by one."""
    large = copied(trace, count)
    setting = setting_of(large.meta)
    model, whole_s = timed(lambda: fit_forward_model(large))
    print(f"\nspeed: {model.num_forwards:,} forwards in {model.num_groups:,} groups, {whole_s:.2f} s")
    forwards, read_s = timed(lambda: forwards_of(large, setting.shape))
    groups, group_s = timed(lambda: grouped(forwards))
    guess = expected(work_of(setting.shape, setting.element_bytes), model.rates, setting.shape.num_layers)
    _, fit_s = timed(lambda: fit_curve(groups, prior_of(guess), guess))
    _, host_s = timed(lambda: host_time([large]))
    _, told_s = timed(lambda: model.curve.seconds(forwards.features))
    for name, seconds in (
        ("read columns", read_s),
        ("group forwards", group_s),
        ("fit groups", fit_s),
        ("host's time", host_s),
        ("tell every forward", told_s),
    ):
        print(f"  {name:20} {seconds * 1e3:6.0f} ms")


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    begin = time.perf_counter()
    result = work()
    return result, time.perf_counter() - begin


def print_errors(model: ForwardModel, trace: TraceLike) -> None:
    forwards = forwards_of(trace, model.setting.shape)
    fit = model.curve.seconds(forwards.features)
    misses = np.log(forwards.seconds / fit)
    parts = {name: forwards.layout == at for at, name in enumerate(LAYOUTS)}
    for name, chosen in {**parts, "all": np.ones(len(fit), dtype=np.bool_)}.items():
        if chosen.any():
            total = fit[chosen].sum() / forwards.seconds[chosen].sum() - 1
            typical = np.median(np.abs(misses[chosen]))
            print(
                f"  {name:16} {chosen.sum():6,} forwards   typical {typical:6.1%}   "
                f"bias {np.median(misses[chosen]):+6.1%}   sum {total:+6.1%}"
            )


def print_felt(model: ForwardModel, trace: TraceLike) -> None:
    """What users of a measured run felt, beside a trial of its requests under its options."""
    cost, sent = FittedCost(model), requests_of(trace)
    config = EngineConfig(**trace.meta["engine"])
    tried = trial(sent.requests, config, cost, ends=sent.ends, host_overhead_ns=cost.host_overhead_ns)
    was = latency(trace)
    for name, told, felt in (
        ("longest wait", tried.longest_wait_s, was.itl.max),
        ("ITL p99", tried.gap_s(0.99), was.itl.p99),
        ("TTFT p50", tried.ttft_s(0.5), was.ttft.p50),
        ("TTFT p99", tried.ttft_s(0.99), was.ttft.p99),
    ):
        if told is not None and felt:
            print(f"  {name:16} told {told:7.3f} s   measured {felt:7.3f} s   {told / felt - 1:+6.1%}")


def print_terms(model: ForwardModel) -> None:
    print(f"  terms, expected from: {model.rates.source}, {model.slowness:.2f} times as slow")
    for term in model.terms:
        rate = "" if term.rate is None else f"{term.rate:9.3g} {term.rate_unit}"
        print(
            f"  {term.name:17} {term.value:9.3g} [{term.low:9.3g}, {term.high:9.3g}] {term.unit or '':8} "
            f"{term.source:9} {rate}"
        )
    print(f"  host: {model.host}")


if __name__ == "__main__":
    main()
