"""Options that several commands share. Engine options carry SGLang's names."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

__all__ = ["json_option", "model_options", "output_option", "policy_options", "seed_option", "threads_option"]

F = TypeVar("F", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)


def _all(*options: Callable[[F], F]) -> Callable[[F], F]:
    """One decorator from several options, in the order that help shows them."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def model_options(default: str | None = None) -> Callable[[F], F]:
    """--model, --load-format, --device, --dtype; `default` says what stands for a model not given."""
    text = "A Hugging Face folder, a GGUF file, or a config alone, which implies --load-format dummy."
    return _all(
        click.option(
            "--model",
            type=PATH,
            required=default is None,
            metavar="DIR|FILE.gguf|CONFIG.json",
            help=f"{text}  [default: {default}]" if default else text,
        ),
        click.option(
            "--load-format",
            type=click.Choice(["auto", "dummy"]),
            default="auto",
            show_default=True,
            help="dummy: seeded random weights.",
        ),
        click.option(
            "--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True
        ),
        click.option(
            "--dtype",
            type=click.Choice(["auto", "float32", "bfloat16", "float16"]),
            default="auto",
            show_default=True,
            help="Of weights, activations and KV.",
        ),
    )


def policy_options() -> Callable[[F], F]:
    """The engine's options, one for each field of EngineConfig that a person may set."""
    return _all(
        click.option(
            "--chunked-prefill-size",
            type=int,
            help="Tokens a prefill forward may take; -1: chunking off.  "
            "[default: 4096; simulated: by the GPU's memory]",
        ),
        click.option("--max-prefill-tokens", type=int, default=16384, show_default=True),
        click.option("--page-size", type=int, default=1, show_default=True, help="Tokens a KV page holds."),
        click.option("--max-total-tokens", type=int, help="Tokens the KV pool holds.  [default: what fits]"),
        click.option("--enable-mixed-chunk", is_flag=True, help="Let decode rows ride in a prefill forward."),
        click.option(
            "--disable-overlap-schedule",
            is_flag=True,
            help="Process each result before the next forward is planned.",
        ),
        click.option("--disable-radix-cache", is_flag=True, help="Share no prefixes between requests."),
        click.option(
            "--schedule-policy",
            default="fcfs",
            show_default=True,
            metavar="POLICY",
            help="Order of waiting requests: fcfs, lof (longest output first), random; by the prefix cache "
            "(fcfs without one): lpm (longest prefix match), dfs-weight, shortest-prefill-first.",
        ),
        click.option("--schedule-conservativeness", type=float, default=1.0, show_default=True),
        click.option("--max-running-requests", type=int, help="[default: by the KV pool]"),
        click.option("--prefill-max-requests", type=int, help="Requests a prefill forward may take."),
        click.option(
            "--prefill-decode-interval",
            type=int,
            default=0,
            show_default=True,
            help="Decode forwards between two prefill forwards.",
        ),
        click.option(
            "--prefill-decode-interval-min-bs",
            type=int,
            default=0,
            show_default=True,
            help="Fewer running requests than this defer no prefill.",
        ),
        click.option(
            "--truncation-align-size", type=int, help="Cut a prompt's first chunk to a multiple of this."
        ),
        *_priority_options(),
    )


def _priority_options() -> list[Callable[[F], F]]:
    return [
        click.option(
            "--enable-priority-scheduling", is_flag=True, help="Order by the requests' priority first."
        ),
        click.option(
            "--disable-priority-preemption",
            is_flag=True,
            help="Let no running request give way to a more urgent one.",
        ),
        click.option(
            "--priority-scheduling-preemption-threshold",
            type=int,
            default=10,
            show_default=True,
            help="A request gives way to one more urgent by more than this.",
        ),
        click.option(
            "--schedule-low-priority-values-first", is_flag=True, help="A smaller priority is more urgent."
        ),
    ]


def output_option() -> Callable[[F], F]:
    """-o, where a new trace goes."""
    return click.option(
        "-o", "--output", type=PATH, required=True, metavar="T.chunkscope", help="The trace to make."
    )


def seed_option() -> Callable[[F], F]:
    """--seed."""
    seeds = click.IntRange(0, 2**63 - 1)
    return click.option("--seed", type=seeds, default=0, show_default=True, help="Of all that is random.")


def threads_option() -> Callable[[F], F]:
    """--threads."""
    return click.option(
        "--threads", type=click.IntRange(1, 4096), help="CPU threads of the forward.  [default: torch's]"
    )


def json_option() -> Callable[[F], F]:
    """--json."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
