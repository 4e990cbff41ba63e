"""Advice against reruns: the options that it recommends, run again, and what its trials take.

    python benchmarks/advise.py [--demo FOLDER [--rerun MODEL]] [--azure FILE.csv]

A stream of decodes with a 32K and a 12K prompt in it runs on a simulated H200, Llama-3.1-8B on one and 70B on
four. For each, advice under limits is run again and held to them; then limits that only mixed chunks keep,
and one that nothing keeps. With --demo the traces that `chunkscope demo -o FOLDER` left are advised on, each
run also held against advice from the others; and with --rerun, on an otherwise idle machine, their requests
run on the model again under the recommended options. With the Azure record a long workload shows what bounds
the trials. Exits 1 if a limit is broken.
"""

import argparse
import json
import sys
import tempfile
import time
from array import array
from pathlib import Path
from random import Random

# A script's own directory comes first on the path, and holds an engine.py of its own.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from engine.config import EngineConfig
from engine.models.checkpoint import open_checkpoint
from engine.request import Request, SamplingParams
from engine.workload import load_workload
from profiler.advice import Advice, advise
from profiler.advice_choice import VALUES
from profiler.advice_words import answer, basis, reasons
from profiler.latency import latency
from profiler.price_list import with_options
from profiler.price_rows import Limits, Options, PriceRow
from profiler.trial_requests import requests_of
from traces.reader import Trace, open_trace
from ui.gpu_options import GpuOptions
from ui.simulating import SimulatedDevice, SimulatedSession, simulated_device

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"
AZURE = CORPUS / "workloads" / "AzureLLMInferenceTrace_conv.csv"
MODELS = {
    "Llama-3.1-8B, H200": ("meta-llama--Meta-Llama-3.1-8B.config.json", GpuOptions(gpu="H200")),
    "Llama-3.1-70B, 4 x H200": ("meta-llama--Meta-Llama-3.1-70B.config.json", GpuOptions(gpu="H200", tp=4)),
}
AZURE_REQUESTS = 2_000
NEAR = 1.05  # times what a row has: a limit that it just keeps

failures: list[str] = []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--demo", type=Path, help="a folder with the traces of `chunkscope demo`")
    parser.add_argument(
        "--rerun", type=Path, metavar="MODEL", help="run the demo's requests on this model again"
    )
    parser.add_argument("--azure", type=Path, default=AZURE, help="Azure's conversation record")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, (config, gpu) in MODELS.items():
            simulated(
                name,
                simulated_device(open_checkpoint(CORPUS / "configs" / config, "dummy"), gpu, "auto"),
                Path(folder),
            )
        if options.azure.is_file():
            azure(options.azure, Path(folder))
        if options.demo is not None:
            demo(options.demo, options.rerun, Path(folder))
    for failure in failures:
        print(f"BROKEN: {failure}")
    return 1 if failures else 0


def simulated(name: str, device: SimulatedDevice, folder: Path) -> None:
    """Advice on a simulated run, and the run again under what it recommends."""
    print(f"\n== {name}")
    config = EngineConfig(chunked_prefill_size=8192)
    trace = record(device, config, stream(), folder / f"{name.split(',')[0]}.chunkscope")
    start = time.perf_counter()
    free = advise(trace)
    took = time.perf_counter() - start
    tell(free)
    print(f"{len(free.rows)} sets of options in {took:.1f} s")

    def again(advice: Advice, what: str) -> None:
        row = advice.choice.row
        if row is None:
            failures.append(f"{name}, {what}: nothing is recommended")
            return
        path = folder / f"{name.split(',')[0]}-{len(list(folder.iterdir()))}.chunkscope"
        hold(f"{name}, {what}", advice, record(device, with_options(config, row.options), stream(), path))

    mixed = of(free, Options(free.enough_tokens, mixed=True))
    both = Limits(itl_max_s=scaled(mixed.longest_wait_s), ttft_p99_s=scaled(mixed.ttft_p99_s))
    again(free.under(both), "ITL max and TTFT p99")
    again(free.under(Limits(itl_p99_s=scaled(mixed.itl_p99_s))), "ITL p99")
    others = min(row.longest_wait_s or 0.0 for row in free.rows if not row.options.mixed)
    least = min(row.longest_wait_s or 0.0 for row in free.rows if row.options.mixed)
    only = free.under(Limits(itl_max_s=(others + least) / 2))
    again(only, "what only mixed keeps")
    if only.choice.row is None or not only.choice.row.options.mixed:
        failures.append(f"{name}: only mixed keeps the limit, and is not recommended")
    impossible = free.under(Limits(itl_max_s=(mixed.decode_forward_s or 0.0) / 2))
    print(answer(impossible))
    if not impossible.choice.bindings or impossible.choice.bindings[0].limit != "itl_max_s":
        failures.append(f"{name}: the impossible limit is not named")


def demo(folder: Path, model: Path | None, scratch: Path) -> None:
    """Advice on the demo's measured runs; with a model, their requests again under it."""
    print(f"\n== The demo's traces in {folder}")
    traces = {
        name: open_trace(folder / f"{name}.chunkscope") for name in ("chunked", "whole", "mixed", "sweep")
    }
    held_out(traces)
    free = advise([*traces.values()])
    start = time.process_time()
    advise(traces["chunked"], costs=[traces["sweep"]])
    print(f"one trace and the sweep: {time.process_time() - start:.1f} s of the CPU")
    mixed = of(free, Options(free.enough_tokens, mixed=True))
    raised = {limit: free.margins.value(mixed, limit) for limit in VALUES}
    advice = free.under(Limits(**{name: scaled(value) for name, value in raised.items()}))
    tell(advice)
    row = advice.choice.row
    if row is None:
        failures.append("demo: nothing is recommended")
    elif model is not None:
        workload = scratch / "demo.jsonl"
        workload.write_text(
            "".join(json.dumps(line(r)) + "\n" for r in requests_of(traces["chunked"]).requests)
        )
        path = scratch / "demo-again.chunkscope"
        run = ["run", "--model", str(model), "--workload", str(workload), "-o", str(path)]
        chunkscope(
            [*run, "--max-total-tokens", str(advice.config.max_total_tokens), *row.options.arguments()]
        )
        hold("demo", advice, open_trace(path))


def held_out(traces: dict[str, Trace]) -> None:
    """Each of the three runs against what advice from the two others and the sweep says of its options."""
    for name in ("whole", "chunked", "mixed"):
        engine = traces[name].meta["engine"]
        size = engine["chunked_prefill_size"]
        options = Options(None if size < 0 else size, engine["enable_mixed_chunk"])
        others = [trace for other, trace in traces.items() if other != name]
        advice = advise(others, chunks=(traces["chunked"].meta["engine"]["chunked_prefill_size"],))
        row, felt = of(advice, options), latency(traces[name])
        measured = {"itl_max_s": felt.itl.max, "itl_p99_s": felt.itl.p99, "ttft_p99_s": felt.ttft.p99}
        for limit, value in measured.items():
            said, raised = getattr(row, VALUES[limit]), advice.margins.value(row, limit)
            numbers = f"said {said:.3f}, raised {raised:.3f}, measured {value:.3f}"
            print(f"  {name}, held out: {limit} {numbers}{'' if value <= raised else ', OVER'}")


def azure(record_path: Path, folder: Path) -> None:
    """How long advice on a long workload takes, and how much of it is tried."""
    print(f"\n== {record_path.name}, first {AZURE_REQUESTS:,} requests")
    config, gpu = MODELS["Llama-3.1-8B, H200"]
    device = simulated_device(open_checkpoint(CORPUS / "configs" / config, "dummy"), gpu, "auto")
    vocab_size = device.checkpoint.shape.vocab_size
    workload = load_workload(record_path, vocab_size=vocab_size, limit=AZURE_REQUESTS)
    trace = record(device, EngineConfig(), workload.requests, folder / "azure.chunkscope")
    start = time.perf_counter()
    advice = advise(trace)
    print(f"{len(advice.rows)} sets of options in {time.perf_counter() - start:.1f} s")
    tell(advice)


def record(device: SimulatedDevice, config: EngineConfig, requests: list[Request], path: Path) -> Trace:
    SimulatedSession(device, config).record_run(requests, path, workload={"benchmark": "advise"})
    return open_trace(path)


def stream() -> list[Request]:
    """A request of 100 to 600 prompt and 80 to 200 output tokens every 50 ms or so, and two long prompts."""
    rng, now_s, made = Random(1), 0.0, []
    for rid in range(120):
        now_s += rng.expovariate(20)
        made.append(request(rid, f"d{rid}", rng.randint(100, 600), rng.randint(80, 200), now_s))
    return [*made, request(120, "long-32k", 32_768, 64, 1.5), request(121, "long-12k", 12_288, 64, 3.5)]


def request(rid: int, name: str, prompt: int, output: int, arrival_s: float) -> Request:
    tokens = array("i", [rid * 1_000 + i % 1_000 for i in range(prompt)])
    return Request(rid, name, tokens, SamplingParams(output, ignore_eos=True), round(arrival_s * 1e9))


def hold(what: str, advice: Advice, trace: Trace) -> None:
    """Print what the rerun's users felt beside the row and the limits; a broken limit is a failure."""
    felt, row = latency(trace), advice.choice.row
    assert row is not None
    for name, value in (
        ("itl_max_s", felt.itl.max),
        ("itl_p99_s", felt.itl.p99),
        ("ttft_p99_s", felt.ttft.p99),
    ):
        limit, said = getattr(advice.choice.limits, name), getattr(row, VALUES[name])
        if limit is not None and value is not None:
            verdict = "" if value <= limit else " BROKEN"
            print(f"  {what}: {name} said {said:.4f}, limit {limit:.4f}, rerun {value:.4f}{verdict}")
            if verdict:
                failures.append(f"{what}: {name} {value:.4f} over {limit:.4f}")


def tell(advice: Advice) -> None:
    print(
        "\n".join([answer(advice), *reasons(advice), *(f"  {name}: {text}" for name, text in basis(advice))])
    )


def of(advice: Advice, options: Options) -> PriceRow:
    return next(row for row in advice.rows if row.options == options)


def scaled(value: float | None) -> float | None:
    return None if value is None else NEAR * value


def line(request: Request) -> dict[str, object]:
    """A line of a workload file."""
    return {
        "rid": request.name,
        "arrival_s": request.arrival_ns / 1e9,
        "prompt_tokens": request.prompt_len,
        "max_new_tokens": request.max_new_tokens,
        "ignore_eos": True,
    }


def chunkscope(args: list[str]) -> None:
    from ui.cli import main as command

    try:
        command(args)
    except SystemExit as ended:
        if ended.code:
            failures.append(f"chunkscope {' '.join(args)}: exit {ended.code}")


if __name__ == "__main__":
    sys.exit(main())
