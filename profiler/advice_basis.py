"""What advice rests on, in words: workload, forward times, point, margins and memory."""

from profiler.advice import Advice
from profiler.advice_cost import RUN_TO_RUN
from profiler.advice_names import LIMIT_WORDS, option_words, span_words
from profiler.price_rows import PriceRow
from profiler.wording import count, tokens

__all__ = ["basis"]


def basis(advice: Advice) -> list[tuple[str, str]]:
    """What it rests on: a name and what is known of it, a line each."""
    lines = [
        ("workload", _workload(advice)),
        ("waits, TTFT", "simulated: the real scheduler on a virtual clock"),
    ]
    lines.append(("forward times", _cost(advice)))
    lines.append(("point", _point(advice)))
    row = _row_of_interest(advice)
    if advice.basis.model is not None and row is not None:
        lines.append(("margins", _margins(advice, row)))
    if advice.memory is not None:
        lines.append(("activations", advice.memory.kind))
    if all(each.kv_tokens is None for each in advice.rows):
        lines.append(("KV tokens", _kv_unknown(advice)))
    return lines


def _workload(advice: Advice) -> str:
    tried = advice.workload
    number = f"{count(len(tried.requests))} request{'' if len(tried.requests) == 1 else 's'}"
    if tried.kind == "standard":
        decodes = len(tried.requests) - 1
        return (
            f"a standard one, as the trace's requests do not arrive by themselves: while {decodes} requests "
            f"decode, a prompt of {tokens(tried.longest_prompt)} comes"
        )
    parts = [f"the trace's {number}" if tried.kind == "all" else _stretch(advice, number)]
    if tried.left_out:
        parts.append(f"{count(tried.left_out)} without arrival or prompt length left out")
    if tried.open_ended:
        parts.append(f"{count(tried.open_ended)} that did not end in it end where it does")
    if not tried.shared_prefixes and not advice.config.disable_radix_cache:
        parts.append("no prefix is taken to be shared, as the trace does not tell")
    return "; ".join(parts)


def _stretch(advice: Advice, number: str) -> str:
    first, last = advice.workload.requests[0], advice.workload.requests[-1]
    span = f"{first.arrival_ns / 1e9:,.1f} to {last.arrival_ns / 1e9:,.1f} s"
    return (
        f"{number} of {count(advice.workload.of_requests)}, those that arrive from {span}: of the stretches "
        "that can be tried in time the one with the most prompt tokens"
    )


def _cost(advice: Advice) -> str:
    setting = advice.basis.setting
    if advice.basis.model is None:
        return f"the run's own simulated cost model, made again from meta.json: {setting.label}"
    reach = advice.basis.model.reach
    prefix, rows = reach.prefix_tokens[1], reach.decode_rows[1]
    prefixes = f"prefixes up to {count(prefix)}" if prefix else "no prefix"
    decodes = f"up to {count(rows)} decode row{'' if rows == 1 else 's'}" if rows else "no decode rows"
    return (
        f"fitted to {count(advice.basis.num_forwards)} {setting.provenance} forwards of "
        f"{count(reach.tokens[0])} to {tokens(reach.tokens[1])}, {prefixes}, {decodes}; beyond that "
        f"extrapolated: {setting.label}"
    )


def _point(advice: Advice) -> str:
    point, told = advice.point, span_words(advice)
    together = f", in all {advice.num_traces} runs together" if advice.num_traces > 1 else ""
    if point.by_points:
        return f"{told}, of {count(point.num_sizes)} sizes of {advice.measured.layout}{together}"
    number, layout = advice.measured.num_sizes, advice.measured.layout
    sizes = f"{count(number)} size{'' if number == 1 else 's'} of {layout}{together and together + ','}"
    if advice.measured.status == "not_saturated":
        return f"{told}, of the cost model; over the {sizes} throughput still rises"
    return f"{told}, of the cost model; {sizes} {'is' if number == 1 else 'are'} too few to tell it"


def _row_of_interest(advice: Advice) -> PriceRow | None:
    """The recommended row, else the one that comes nearest to the limits."""
    if advice.choice.row is not None:
        return advice.choice.row
    return advice.choice.bindings[0].best if advice.choice.bindings else None


def _margins(advice: Advice, row: PriceRow) -> str:
    """Those of a row's numbers, each with what makes it that large."""
    told = []
    for name, words in LIMIT_WORDS.items():
        margin = advice.margins.of(row, name)
        if margin:
            told.append(f"{words} {margin * 100:.0f} % ({advice.margins.source(row, name)})")
    named = option_words(row.options)
    if not told:
        return f"of {named} none: no measured forward lies above the fit, which is known exactly"
    least = f", at least {RUN_TO_RUN * 100:.0f} %" if advice.basis.setting.provenance == "measured" else ""
    return (
        f"of {named}, {'; '.join(told)}: how far forwards lie above the fit, and how well it is known{least}"
    )


def _kv_unknown(advice: Advice) -> str:
    if advice.memory is None:
        return "unknown, as the trace tells no model"
    if advice.memory.on_cpu:
        return "unknown, as the run was on a CPU: other programs share its memory, and no size is told"
    return "unknown, as the size of the device's memory is"
