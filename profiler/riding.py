"""What a price list becomes when a number of decodes rides along in every mixed forward."""

from dataclasses import astuple, replace

from engine.arithmetic import ForwardSums
from profiler.advice import Advice
from profiler.price_rows import ForwardCostModel, PriceRow
from profiler.price_sums import chunk_sums, decode_sums

__all__ = ["riding"]


def riding(advice: Advice, decodes: int) -> Advice:
    """The advice with forward times and longest waits as `decodes` decode rows make them.

    A mixed forward has the decode rows, each of the workload's median length, and a chunk of the longest
    prompt that is shorter by as many tokens. A row's longest wait is at least its last such forward. Rows
    that are not mixed, or whose chunk has no room, stay as they were; the choice keeps its limits.
    docs/metrics.md, "Saturation board".
    """
    context, prompt = advice.workload.request_tokens, advice.workload.longest_prompt
    rows = tuple(_row(row, advice.basis.cost, prompt, decode_sums(decodes, context)) for row in advice.rows)
    return replace(advice, rows=rows).under(advice.choice.limits)


def _row(row: PriceRow, cost: ForwardCostModel, prompt: int, decodes: ForwardSums) -> PriceRow:
    chunk = row.options.chunk_tokens
    if not row.options.mixed or chunk is None or chunk <= decodes.decode_tokens:
        return row
    size = min(chunk - decodes.decode_tokens, prompt)
    first, last = (cost.seconds(_together(chunk_sums(size, at), decodes)) for at in (0, prompt - size))
    wait = last if row.longest_wait_s is None else max(row.longest_wait_s, last)
    return replace(row, first_forward_s=first, last_forward_s=last, longest_wait_s=wait)


def _together(one: ForwardSums, other: ForwardSums) -> ForwardSums:
    return ForwardSums(*(a + b for a, b in zip(astuple(one), astuple(other), strict=True)))
