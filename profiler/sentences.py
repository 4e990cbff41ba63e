"""What the demo's numbers mean, in words chosen from the numbers: the effect first, then its cause."""

from collections.abc import Mapping
from typing import Any

from engine.batch import ForwardMode
from profiler.findings.thresholds import Thresholds
from profiler.ledger.parts import GapDetail
from profiler.open_silences import OpenSilences
from profiler.wording import count, duration, mebibytes, times

__all__ = [
    "cap",
    "headline",
    "hidden_wall",
    "mixing",
    "price",
    "saturation_point",
    "still_silent",
    "waited",
    "wall",
    "who_holds",
    "who_waits",
    "why_waited",
]

Summary = Mapping[str, Any]  # as `profiler.summary.summarize` makes them

_SAME = 1.1  # two durations are about equal when neither is this many times the other
_NAMED = 3  # culprits that a sentence names
_HIDDEN = Thresholds().hidden_wall_ratio  # the longest gap is hidden when it is so many times the p99


def headline(whole: Summary, chunked: Summary, mixed: Summary) -> str:
    """What mixing and chunking do to the longest gap, in two short sentences."""
    before, alone, after = _gap(whole), _gap(chunked), _gap(mixed)
    if before is None or alone is None or after is None:
        return "What chunking and mixing do to the longest gap is not known: no request gave two tokens."
    mixing = "cuts" if before > after * _SAME else "lengthens" if after > before * _SAME else "changes"
    chunking = (
        "shortens it to"
        if before > alone * _SAME
        else "makes it"
        if alone > before * _SAME
        else "leaves it at"
    )
    return (
        f"Mixing {mixing} the longest silence from {duration(before)} to {duration(after)}. "
        f"Chunking alone {chunking} {duration(alone)}."
    )


def who_waits(chunked: Summary, mixed: Summary) -> str:
    """Why the two differ: the prefill forwards that run before the next token of the longest gap."""
    alone, together = _prefills(chunked), _prefills(mixed)
    left = f"{count(together)} of them" if together else "none"
    return f"Chunked, {_ran(alone)} before the next token; with --enable-mixed-chunk, {left}."


def waited(gap: GapDetail) -> str:
    """Who waited how long for which token."""
    return f"{gap.name} waited {duration(gap.gap_ns / 1e9)} for its token {count(gap.token_index)}"


def why_waited(gap: GapDetail) -> str:
    """What a gap was spent on: whose prefill, in how many forwards, against the own forward's time."""
    others = [forward for forward in gap.forwards if forward.forward_id != gap.own_forward_id]
    prefills = len({chunk.forward_id for chunk in gap.chunks if chunk.forward_id != gap.own_forward_id})
    if gap.culprits and prefills:
        share = sum(culprit.device_ns for culprit in gap.culprits) / max(1, gap.gap_ns)
        return f"Prefill of {_names(gap)} took {share * 100:.0f} % of it, {_in_forwards(prefills)}."
    if gap.culprits:
        extra = gap.mixed_extra_ns
        cost = (
            "how much of that forward was theirs is not known"
            if extra is None
            else f"they cost it {duration(extra / 1e9)}"
        )
        return f"Tokens of {_names(gap)} rode in its own forward: {cost}."
    if others:
        return f"{_others_decoded(len(others))} while it had no row in them."
    own_ns = sum(forward.in_gap_ns for forward in gap.forwards)
    rest = duration(max(0, gap.gap_ns - own_ns) / 1e9)
    return f"No forward of others lies in it: {duration(own_ns / 1e9)} is its own, {rest} was no forward's."


def still_silent(found: OpenSilences) -> str:
    """Who gives no token where the trace ends, and for how long so far."""
    longest = duration(found.longest_ns / 1e9)
    if found.requests == 1:
        return f"{found.name} is silent at the end, for {longest} so far"
    return f"{count(found.requests)} decodes are silent at the end, {found.name} for {longest} so far"


def who_holds(found: OpenSilences) -> str:
    """Whose prompt the last forward left half-done."""
    if found.half_done is None:
        return "The next token is not recorded."
    return f"{found.half_done} holds the half-done slot in the last forward."


def cap(whole: Summary, chunked: Summary) -> str:
    """What chunking alone does to the largest forward and its memory."""
    before, after = whole["largest_forward_tokens"], chunked["largest_forward_tokens"]
    if before is None or after is None:
        return "What chunking does to the largest forward is not known: the traces lack its tokens."
    if after >= before:
        return (
            f"Chunking alone does not shrink the largest forward ({count(before)} tokens whole, "
            f"{count(after)} chunked), because no forward here is larger than a chunk."
        )
    return (
        f"Chunking alone makes the largest forward {times(before / after)} smaller, {count(after)} tokens "
        f"instead of {count(before)}{_memory(whole, chunked)}, because no forward takes more than a chunk."
    )


def wall(whole: Summary, chunked: Summary) -> str:
    """What chunking alone does to the longest gap; its measured ratio is always there."""
    before, after = _gap(whole), _gap(chunked)
    if before is None or after is None:
        return "What chunking does to the longest gap is not known: no request gave two tokens."
    ratio = after / before
    numbers = f"{duration(after)} against {duration(before)} whole, {ratio:.2f} of it"
    forwards = _prefills(chunked)
    if 1 / _SAME <= ratio <= _SAME:
        return f"Chunking alone leaves the wall: the longest gap is {numbers}, {_burst(forwards)}."
    if ratio > _SAME:
        return f"Chunking alone makes the wall longer: the longest gap is {numbers}, {_burst(forwards)}."
    if forwards > 1:
        return (
            "Chunking alone shortens the wall and does not break it: "
            f"the longest gap is {numbers}, because its prefill takes less time; "
            f"all {count(forwards)} forwards of it still run before the next token."
        )
    return f"Chunking alone breaks the wall: the longest gap is {numbers}, {_burst(forwards)}."


def mixing(chunked: Summary, mixed: Summary) -> str:
    """What mixing does to the longest gap of the chunked run, with the factor."""
    before, after = _gap(chunked), _gap(mixed)
    if before is None or after is None:
        return "What mixing does to the longest gap is not known: no request gave two tokens."
    numbers = f"from {duration(before)} to {duration(after)}"
    left, had = _prefills(mixed), _prefills(chunked)
    if before > after * _SAME:
        return (
            f"Mixing cuts the longest gap {times(before / after)}, {numbers}, because decodes ride along in "
            f"prefill forwards: {_others(left)} in it, where chunking alone had {count(had)}."
            f"{_waiting(chunked, mixed)}"
        )
    cause = (
        f"because {_others(left)} in it"
        if left or mixed["worst_stall"]["own_mode"] != ForwardMode.MIXED.name
        else "because the one mixed forward in it takes that long"
    )
    if after > before * _SAME:
        return f"Mixing makes the longest gap {times(after / before)} longer, {numbers}, {cause}."
    return f"Mixing does not cut the longest gap ({times(before / after)}, {numbers}), {cause}."


def _waiting(chunked: Summary, mixed: Summary) -> str:
    """What mixing does to all waiting together, which is less than what it does to the longest wait."""
    before, after = chunked["waiting_s"], mixed["waiting_s"]
    if before is None or after is None:
        return ""
    return f" All waiting for tokens goes from {duration(before)} to {duration(after)} in sum."


def price(chunked: Summary, mixed: Summary) -> str | None:
    """The option that mends the wall and its price; None when mixing did not cut it or that is not known."""
    ttft = chunked["ttft_s"]["max"], mixed["ttft_s"]["max"]
    rates = chunked["output_tokens_per_s"], mixed["output_tokens_per_s"]
    before, after = _gap(chunked), _gap(mixed)
    if None in ttft or None in rates or before is None or after is None or before <= after * _SAME:
        return None
    return (
        f"The option that mends it is --enable-mixed-chunk; with it the longest TTFT goes from "
        f"{duration(ttft[0])} to {duration(ttft[1])} and the output from {rates[0]:,.1f} to "
        f"{rates[1]:,.1f} tokens/s."
    )


def hidden_wall(name: str, summary: Summary) -> str | None:
    """Says that the 99th percentile hides the longest gap of a run, where it does."""
    longest, p99 = summary["itl_s"]["max"], summary["itl_s"]["p99"]
    if longest is None or p99 is None or longest < _HIDDEN * p99:
        return None
    return f"Read the longest gap before p99: {name} has {duration(longest)} behind a p99 of {duration(p99)}."


def saturation_point(found: Summary) -> str:
    """The `saturation` part of a summary, in words."""
    layout, share = found["layout"], f"{found['q'] * 100:g} %"
    if found["status"] == "ok":
        return (
            f"Forwards saturate at {count(found['tokens'])} tokens [{count(found['low'])}, "
            f"{count(found['high'])}]: the fewest that reach {share} of the best throughput "
            f"({layout}; {found['fit_kind']} fit over {count(found['num_sizes'])} sizes)."
        )
    if found["status"] == "not_saturated":
        return (
            f"Forwards do not saturate within the sizes seen: throughput still rises at their end ({layout})."
        )
    sizes = f"{count(found['num_sizes'])} size" + ("" if found["num_sizes"] == 1 else "s")
    return f"The saturation point is not known: {sizes} of forwards, 8 are needed ({layout})."


def _ran(forwards: int) -> str:
    if forwards > 1:
        return f"{count(forwards)} prefill forwards of others run"
    return f"{'one' if forwards else 'no'} prefill forward of others runs"


def _names(gap: GapDetail) -> str:
    """The culprits, most device time first; from the fourth on by number."""
    names = [culprit.name for culprit in gap.culprits[:_NAMED]]
    more = len(gap.culprits) - len(names)
    if more:
        return f"{', '.join(names)} and {count(more)} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _in_forwards(number: int) -> str:
    return "in one forward" if number == 1 else f"in {count(number)} forwards"


def _others_decoded(number: int) -> str:
    return "One forward of others ran" if number == 1 else f"{count(number)} forwards of others ran"


def _gap(summary: Summary) -> float | None:
    gap: float | None = summary["worst_stall"]["gap_s"]
    return gap


def _prefills(summary: Summary) -> int:
    """Others' forwards in the longest gap that computed prompt tokens."""
    return sum(mode != ForwardMode.DECODE.name for mode in summary["worst_stall"]["modes"])


def _burst(forwards: int) -> str:
    if not forwards:
        return "and no prefill of others lies in it"
    if forwards == 1:
        return "because one prefill forward of others runs before the next token"
    return f"because {count(forwards)} prefill forwards of others run one after another before the next token"


def _others(forwards: int) -> str:
    if forwards > 1:
        return f"{count(forwards)} prefill forwards of others lie"
    return f"{'one' if forwards else 'no'} prefill forward of others lies"


def _memory(whole: Summary, chunked: Summary) -> str:
    before, after = whole["activation_peak_bytes"], chunked["activation_peak_bytes"]
    if before is None or after is None:
        return ", its memory not measured"
    if after >= before:
        return f", while its activation memory does not fall ({mebibytes(after)}, {mebibytes(before)} whole)"
    sizes = f"{mebibytes(after)} instead of {mebibytes(before)}"
    return f", and its activation memory {times(before / after)} smaller, {sizes}"
