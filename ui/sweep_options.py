"""What `chunkscope sweep` is asked to measure: its options, and the plan that they make."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ui.errors import UserError

if TYPE_CHECKING:
    from profiler.sweep_plan import SweepPlan

__all__ = ["plan_options", "planned"]

F = TypeVar("F", bound=Callable[..., Any])

TOKENS, KV_TOKENS, REPEATS = "8:1024", 512, 3
_SECONDS = re.compile(r"([0-9]{1,7}(?:\.[0-9]{1,6})?)s?", re.ASCII)
_PREFIXES = re.compile(r"[0-9]{1,9}(,[0-9]{1,9})*", re.ASCII)


class Seconds(click.ParamType[float]):
    """A length of time: 90, or 90s."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds above 0, or a usage error."""
        match = _SECONDS.fullmatch(value) if isinstance(value, str) else None
        if match is None or not (seconds := float(match[1])):
            self.fail(f"{value!r} is no number of seconds: give 90, or 90s.", param, ctx)
        return seconds


class Prefixes(click.ParamType[tuple[int, ...]]):
    """Different numbers of tokens, with commas between them: 0,4096,32768."""

    name = "prefixes"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """The numbers, the smallest first, or a usage error."""
        if not isinstance(value, str) or not _PREFIXES.fullmatch(value):
            self.fail(f"{value!r} is no list of tokens: give 0,4096,32768.", param, ctx)
        return tuple(sorted({int(number) for number in value.split(",")}))


def plan_options() -> Callable[[F], F]:
    """--tokens, --prefix, --decode, --batch, --kv-tokens, --repeats, --budget."""
    options = (
        click.option(
            "--tokens",
            metavar="LOW:HIGH",
            help="Prompt tokens in a forward: sizes between these, both included, in geometric steps.  "
            f"[default: {TOKENS}; none with --decode]",
        ),
        click.option(
            "--prefix", type=Prefixes(), metavar="N,N,...", help="KV tokens before them.  [default: 0]"
        ),
        click.option("--decode", is_flag=True, help="Measure decode forwards, of --batch rows."),
        click.option("--batch", metavar="LOW:HIGH", help="Rows of a decode forward, like --tokens."),
        click.option(
            "--kv-tokens",
            type=click.IntRange(1, 10**9),
            help=f"KV tokens of each decode row.  [default: {KV_TOKENS}]",
        ),
        click.option(
            "--repeats",
            type=click.IntRange(1, 1000),
            help=f"Measurements of each size.  [default: {REPEATS}; 1 simulated]",
        ),
        click.option(
            "--budget",
            type=Seconds(),
            metavar="SECONDS",
            help="Measure for so long instead, up to 24 sizes; ends sooner when all are known to 1 %.",
        ),
    )

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def planned(options: dict[str, Any], *, simulated: bool, before: "SweepPlan | None" = None) -> "SweepPlan":
    """Take the options of `plan_options` out of a command's. ConfigError or UserError where they clash.

    `before` is the plan of a sweep that goes on: it stands for what is not given, and only repeats and budget
    may change.
    """
    from profiler.sweep_cases import parse_range
    from profiler.sweep_plan import SweepPlan

    names = ("tokens", "prefix", "decode", "batch", "kv_tokens", "repeats", "budget")
    given = {name: options.pop(name) for name in names}
    tokens, batch, decode = given["tokens"], given["batch"], given["decode"]
    _check(given, simulated=simulated)
    if before is not None:
        _require_same(given, before)
        return _goes_on(before, given["repeats"], given["budget"])
    if tokens is None and not decode:
        tokens = TOKENS
    return SweepPlan(
        tokens=None if tokens is None else parse_range(tokens, "--tokens", "tokens"),
        prefixes=given["prefix"] or (0,),
        batch=None if batch is None else parse_range(batch, "--batch", "rows"),
        kv_tokens=given["kv_tokens"] or KV_TOKENS,
        repeats=None if given["budget"] else given["repeats"] or (1 if simulated else REPEATS),
        budget_s=given["budget"],
    )


def _check(given: dict[str, Any], *, simulated: bool) -> None:
    """Raise UserError for options that need or exclude each other."""
    if given["decode"] and given["batch"] is None:
        raise UserError("--decode needs to know how many rows: give --batch, like --batch 1:256")
    if given["batch"] is not None and not given["decode"]:
        raise UserError("--batch is of decode forwards: add --decode, or leave it out")
    if given["kv_tokens"] is not None and not given["decode"]:
        raise UserError("--kv-tokens is of decode rows: add --decode and --batch, or leave it out")
    if given["prefix"] is not None and given["tokens"] is None and given["decode"]:
        raise UserError("--prefix is of prompts: add --tokens, or give --kv-tokens for decode rows")
    if given["budget"] is not None and given["repeats"] is not None:
        raise UserError("--repeats and --budget both say when to stop: give one of them")
    if given["budget"] is not None and simulated:
        raise UserError("--budget is of measured sweeps, a simulated one needs no repeats: leave it out")


def _require_same(given: dict[str, Any], before: "SweepPlan") -> None:
    """Raise UserError where another sweep is asked for than the one that goes on."""
    from profiler.sweep_cases import parse_range

    for name, ends in (("tokens", before.tokens), ("batch", before.batch)):
        if given[name] is not None and parse_range(given[name], f"--{name}", name) != ends:
            words = "none" if ends is None else f"{ends[0]}:{ends[1]}"
            raise UserError(f"--{name} {given[name]}: the sweep to go on with has {words}: leave it out")
    if given["prefix"] is not None and given["prefix"] != before.prefixes:
        words = ",".join(map(str, before.prefixes))
        raise UserError(f"--prefix: the sweep to go on with has {words}: leave it out")
    if given["kv_tokens"] is not None and given["kv_tokens"] != before.kv_tokens:
        raise UserError(f"--kv-tokens: the sweep to go on with has {before.kv_tokens}: leave it out")


def _goes_on(before: "SweepPlan", repeats: int | None, budget_s: float | None) -> "SweepPlan":
    if repeats is not None:
        return replace(before, repeats=repeats, budget_s=None)
    return before if budget_s is None else replace(before, repeats=None, budget_s=budget_s)
