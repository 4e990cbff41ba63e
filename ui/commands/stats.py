"""`chunkscope stats`: what a trace says, in numbers and findings."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ui.options import json_option
from ui.words import clipped, count, memory, name, plural, rate, seconds

if TYPE_CHECKING:
    from profiler.open_silences import OpenSilences

__all__ = ["command"]

MOST_OPERATORS = 3
_PROMPTS = ("OTHERS_PREFILL", "OTHERS_MIXED", "MIXED_EXTRA", "MIXED_UNKNOWN")  # causes: others' prompts


def _pairs(_: click.Context, __: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE as a mapping."""
    for text in values:
        if "=" not in text:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE: give one like starvation_forwards=4")
    parts = [text.partition("=") for text in values]
    return {key.strip(): value.strip() for key, _, value in parts}


@click.command("stats")
@click.argument("trace", type=click.Path(path_type=Path))
@click.option(
    "--threshold",
    "pairs",
    multiple=True,
    callback=_pairs,
    metavar="NAME=VALUE",
    help="From which number on something is a finding, like starvation_forwards=4; may be given again.",
)
@json_option()
def command(trace: Path, pairs: Mapping[str, str], as_json: bool) -> None:
    """What a trace says, in numbers and findings.

    docs/metrics.md defines each number, and each finding with its threshold. A trace that is still being
    written is read as far as it goes.
    """
    from profiler.findings.thresholds import thresholds
    from profiler.open_silences import open_silences
    from profiler.summary import summarize
    from traces.reader import open_trace
    from ui.tables import narrator, print_facts, print_json, reporter, say

    limits = thresholds(pairs)
    opened = open_trace(trace)
    summary = summarize(opened, limits)
    if opened.live:
        say(narrator(), f"{trace} is still being written: these are its first {summary['forwards']} forwards")
    elif opened.torn_bytes:
        say(narrator(), f"{trace}: {plural(opened.torn_bytes, 'torn byte')} at its end could not be read")
    if as_json:
        print_json(summary)
    else:
        print_facts(reporter(), _facts(trace, summary, open_silences(opened)))
        for line, style in _findings(summary["findings"]):
            say(reporter(), line, style)


def _facts(trace: Path, summary: Mapping[str, Any], silent: "OpenSilences | None") -> list[tuple[str, str]]:
    from profiler.sentences import saturation_point

    return [
        ("trace", f"{trace}, {summary['provenance'] or 'of unknown provenance'}"),
        ("requests", _by_name(summary["requests"], summary["requests_by_finish"])),
        ("forwards", _by_name(summary["forwards"], summary["forwards_by_mode"])),
        ("largest forward", f"{count(summary['largest_forward_tokens'])} tokens"),
        ("output", f"{count(summary['output_tokens'])} tokens, {rate(summary['output_tokens_per_s'])}"),
        ("longest gap", _gap(summary["worst_stall"])),
        *_silent(silent),
        ("between tokens", f"{_spread(summary['itl_s'])}, {seconds(summary['waiting_s'])} in sum"),
        ("to first token", _spread(summary["ttft_s"])),
        ("KV pages", f"{count(summary['kv_pages_peak'])} of {count(summary['kv_pages_total'])} at most"),
        ("middle chunks", f"at most {count(summary['inflight_middle_chunks_max'])} of a request in flight"),
        ("retractions", count(summary["retractions"])),
        ("memory peak", _memory(summary)),
        ("saturation", saturation_point(summary["saturation"])),
        *_kernels(summary["kernels"], summary["forwards"]),
    ]


def _findings(found: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Each finding: what happened, its evidence, and what would mend it; with a style for each line."""
    from profiler.findings.finding import Severity
    from ui.finding_words import MARKS

    for each in found:
        yield "", ""
        yield f"{MARKS[Severity(each['severity'])].glyph} {each['title']}: {name(each['sentence'])}", "bold"
        yield f"  {name(each['evidence'])}", ""
        if each["mend"] is not None:
            yield f"  {each['mend']}", ""


def _silent(found: "OpenSilences | None") -> list[tuple[str, str]]:
    """Who gives no token where the trace ends, and whose prompt is half-done there."""
    if found is None:
        return []
    who, longest = plural(found.requests, "decode"), seconds(found.longest_ns / 1e9)
    text = f"{who} at the end, {clipped(found.name)} for {longest} so far"
    if found.half_done is not None:
        text += f"; {clipped(found.half_done)} holds the half-done slot"
    return [("silent", text)]


def _kernels(kernels: Mapping[str, Any] | None, forwards: int) -> list[tuple[str, str]]:
    """Of how many forwards, what their kernels leave of the device time, and which operators took most."""
    if kernels is None:
        return []
    most = list(kernels["operators_s"].items())[:MOST_OPERATORS]
    parts = ", ".join(f"{name} {seconds(part)}" for name, part in most)
    watched = f"in {count(kernels['forwards'])} of {plural(forwards, 'forward')}, which watching slowed"
    left = f"{100 * kernels['uncovered_share']:.1f} % of their device time in no kernel"
    text = f"{watched}: {parts}; {left}"
    return [("kernels", text)]


def _by_name(total: int, parts: Mapping[str, int]) -> str:
    each = ", ".join(f"{count(number)} {part}" for part, number in parts.items())
    return f"{count(total)} ({each})" if each else count(total)


def _memory(summary: Mapping[str, Any]) -> str:
    peak, added = summary["memory_peak_bytes"], summary["activation_peak_bytes"]
    if peak is None and added is None:
        return "unknown (simulated)" if summary["provenance"] == "simulated" else "unknown"
    return f"{memory(peak)}, of which one forward added at most {memory(added)}"


def _spread(spread: Mapping[str, float | None]) -> str:
    return f"max {seconds(spread['max'])}, p99 {seconds(spread['p99'])}, p50 {seconds(spread['p50'])}"


def _gap(worst: Mapping[str, Any]) -> str:
    from profiler.ledger.parts import PartKind
    from profiler.ledger.words import PART_WORDS

    if worst["gap_s"] is None:
        return "none: no request gave two tokens"
    text = f"{seconds(worst['gap_s'])} before token {worst['token_index']} of {clipped(worst['rid'])}"
    if worst["cause"] not in (*_PROMPTS, None) and 2 * worst["cause_s"] >= worst["gap_s"]:
        words, took = PART_WORDS[PartKind[worst["cause"]]], seconds(worst["cause_s"])
        beside = plural(len(worst["forward_ids"]), "forward")
        return f"{text}; {words} {took} of it ({beside} of others in it)"
    if worst["culprit_rids"]:
        forward, culprit = worst["culprit_forward_id"], worst["culprit_rids"][0]
        text += f"; forward {forward}, by {clipped(culprit)}, took the largest part"
    others = len(worst["forward_ids"])
    return f"{text} ({plural(others, 'forward')} of others in it)" if others else f"{text}: its own forward"
