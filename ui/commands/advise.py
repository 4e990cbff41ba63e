"""`chunkscope advise`: one set of scheduling options, and what the others cost."""

from collections.abc import Sequence
from pathlib import Path

import click

from ui.advice_options import CHUNKS, limit_options
from ui.options import json_option
from ui.words import count

__all__ = ["command"]

PATH = click.Path(path_type=Path)


@click.command("advise")
@click.argument("traces", type=PATH, nargs=-1, required=True, metavar="TRACE [TRACE ...]")
@limit_options()
@click.option("--page-size", type=click.IntRange(1), help="Tokens a KV page holds.  [default: the run's]")
@click.option(
    "--chunked-prefill-size",
    "chunks",
    type=CHUNKS,
    default=(),
    metavar="SIZE,SIZE,...",
    help="Chunk sizes to compare.  [default: a ladder around the saturation point]",
)
@click.option(
    "--costs",
    type=PATH,
    multiple=True,
    metavar="TRACE",
    help="A trace whose forwards tell how long forwards take, like a sweep; may be given again.",
)
@json_option()
def command(
    traces: Sequence[Path],
    itl_max: float | None,
    itl_p99: float | None,
    ttft_p99: float | None,
    page_size: int | None,
    chunks: Sequence[int],
    costs: Sequence[Path],
    as_json: bool,
) -> None:
    """One set of scheduling options, and what the others cost.

    The requests of the first trace that has arrivals go through the scheduler again, once for each set of
    options, on a clock that a model of all the traces' forwards moves. Durations are like 200ms, 2s or 0.2.
    """
    from profiler.advice import advise
    from profiler.advice_document import document
    from profiler.advice_words import answer, basis, reasons
    from profiler.price_rows import Limits
    from traces.reader import open_trace
    from ui.advice_tables import print_prices
    from ui.tables import narrator, print_facts, print_json, reporter, say

    opened = {path: open_trace(path) for path in (*traces, *costs)}
    for path, trace in opened.items():
        if trace.live:
            forwards = trace.table("forwards").num_rows
            say(narrator(), f"{path} is still being written: its first {count(forwards)} forwards are used")
    advice = advise(
        [opened[path] for path in traces],
        Limits(itl_max, itl_p99, ttft_p99),
        costs=[opened[path] for path in costs],
        page_size=page_size,
        chunks=chunks,
    )
    if as_json:
        print_json(document(advice))
        return
    console = reporter()
    say(console, answer(advice), "bold")
    for sentence in reasons(advice):
        say(console, sentence)
    say(console, "")
    print_prices(advice)
    say(console, "")
    print_facts(console, basis(advice))
