"""`chunkscope plan`: on paper, before any run: a chunk to start with, what others cost, and what fits."""

from pathlib import Path

import click

from ui.errors import UserError
from ui.options import json_option
from ui.plan_options import plan_options

__all__ = ["command"]


@click.command("plan")
@plan_options()
@json_option()
def command(
    model: Path,
    gpu: str,
    tp: int,
    dtype: str,
    kv_cache_dtype: str,
    page_size: int,
    peak_tflops: float | None,
    bandwidth: float | None,
    link_bandwidth: float | None,
    profile: Path | None,
    profile_gpu: str | None,
    as_json: bool,
) -> None:
    """On paper, before any run: a chunk and what it costs.

    Also what other chunks cost and what fits in memory, for dense models and mixtures of experts, with
    windows, latent or linear attention. All numbers are derived from the configuration and the GPU's data
    sheet; docs/metrics.md, "On paper", has the formulas.
    """
    from profiler.hardware import Overrides
    from profiler.paper.device import paper_device
    from profiler.paper.document import document
    from profiler.paper.plan import paper_plan
    from profiler.paper.read import read_model
    from profiler.paper.words import answer, reasons
    from ui.plan_table import print_plan_table
    from ui.plan_words import basis
    from ui.tables import print_facts, print_json, reporter, say

    if profile_gpu is not None and profile is None:
        raise UserError("--profile-gpu chooses among the GPUs of a profile: add --profile, or leave it out")
    read = read_model(model)
    device = paper_device(
        read,
        gpu,
        tp=tp,
        dtype=dtype,
        kv_dtype=kv_cache_dtype,
        given=Overrides(peak_tflops, bandwidth, link_bandwidth),
        profile=profile,
        profile_gpu=profile_gpu,
    )
    plan = paper_plan(read, device, page_size=page_size)
    if as_json:
        print_json(document(plan))
        return
    console = reporter()
    say(console, answer(plan), "bold")
    for sentence in reasons(plan):
        say(console, sentence)
    say(console, "")
    print_plan_table(plan)
    say(console, "")
    print_facts(console, basis(plan))
