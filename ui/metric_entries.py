"""Where docs/metrics.md defines each number of both UIs, and what it is in a sentence."""

from typing import NamedTuple

__all__ = ["ENTRIES", "MetricEntry", "explained", "state_entry"]


class MetricEntry(NamedTuple):
    """A number's sentence; its heading in docs/metrics.md, up to the dash; the words that mark it there."""

    words: str
    heading: str
    key: str | None = None  # None: the whole section

    @property
    def place(self) -> str:
        """Where it is defined: docs/metrics.md, Latency: ttft_s."""
        return f"docs/metrics.md, {self.heading}" + (f": {self.key}" if self.key else "")


_LATENCY, _PICTURES, _COUNTS = "Latency", "Pictures", "Counts and peaks"
_GAPS, _STATE, _TRACE = "Gaps and stalls", "The state at a cursor", "The Trace page"

ENTRIES: dict[str, MetricEntry] = {
    # of a run
    "itl_longest": MetricEntry(
        "The longest time between two consecutive tokens of a request, over all requests.", _LATENCY, "itl_s"
    ),
    "itl_over_200ms": MetricEntry(
        "How many of all times between tokens were longer than 200 ms.", _PICTURES, "ITL > 200 ms"
    ),
    "itl_p50": MetricEntry("The median time between two tokens.", _LATENCY, "p50"),
    "itl_p99": MetricEntry(
        "99 % of the times between tokens were shorter. A few long gaps can hide behind it.", _LATENCY, "p99"
    ),
    "ttft_longest": MetricEntry(
        "The longest time from a request's arrival to its first token.", _LATENCY, "ttft_s"
    ),
    "queue_longest": MetricEntry(
        "The longest time from a request's arrival to the first forward that computed some of its prompt.",
        _PICTURES,
        "queue, longest",
    ),
    "output_rate": MetricEntry(
        "Tokens given out, over the time from the first arrival to the last token.",
        _LATENCY,
        "output_tokens_per_s",
    ),
    "largest_forward": MetricEntry(
        "The most tokens that one forward computed, prefill and decode together.",
        _COUNTS,
        "largest_forward_tokens",
    ),
    "activation_peak": MetricEntry(
        "The most memory that one forward added to what was held when it began.",
        _COUNTS,
        "activation_peak_bytes",
    ),
    "kv_pages_peak": MetricEntry("The most KV pages in use.", _COUNTS, "kv_pages_peak"),
    "budget_fill": MetricEntry(
        "How much of their chunk budget prefill forwards used.", _PICTURES, "budget fill"
    ),
    # of a selection, a gap, a stall, the cursor
    "selection": MetricEntry(
        "Exact sums over the forwards that start in the selection.", _PICTURES, "Sums of a selection"
    ),
    "gap": MetricEntry("The time between two tokens of a request.", _GAPS, "gap"),
    "gap_parts": MetricEntry(
        "What filled the gap; the parts sum to it exactly.", _PICTURES, "A gap taken apart"
    ),
    "chunk_cost": MetricEntry("A chunk's share of the device time in the gap.", _PICTURES, "costliest"),
    "stalls": MetricEntry("Gaps in which others' forwards ran, or prompts rode along.", _GAPS, "stall"),
    "state": MetricEntry("The scheduler as of the forward at the cursor.", _STATE),
    "budgets": MetricEntry("A budget before and after the forward was planned.", _STATE, "four budgets"),
    "inflight_middle_chunks": MetricEntry(
        "Middle chunks of the half-done request that are planned and not yet processed.",
        _STATE,
        "inflight_middle_chunks",
    ),
    "stop_reason": MetricEntry("Why admission ended in this forward.", _COUNTS, "stop_reason"),
    "answer": MetricEntry("When the sentences say shorter, hidden or about equal.", "The demo's words"),
    # of a trace
    "trace_facts": MetricEntry("What meta.json and the reader say of the trace.", _TRACE, "facts"),
    "table_rows": MetricEntry("Rows of all ranks.", _TRACE, "rows"),
    "table_bytes": MetricEntry("Size of the table's files.", _TRACE, "on disk"),
    "column_states": MetricEntry("Where each column's numbers come from.", _TRACE, "measured"),
    "rules": MetricEntry("How often a rule was checked, and how often it was broken.", _TRACE, "rules"),
    # of saturation: sizes
    "size_tokens": MetricEntry("Tokens of such a forward.", "Saturation", "T ="),
    "size_forwards": MetricEntry("Forwards of that size.", "Saturation", "forwards"),
    "size_time": MetricEntry("Their time on the device.", "Saturation", "d(f)"),
    "size_rate": MetricEntry("The median of their tokens a second.", "Saturation", "median throughput"),
    "fit": MetricEntry("The smooth throughput fitted to all sizes.", "Saturation", "fit(T)"),
    "fit_share": MetricEntry("The fit there as a share of its best.", "Saturation", "share"),
    "residual": MetricEntry("How far the sizes lie from the fit.", "Saturation", "residual"),
    "saturation_point": MetricEntry(
        "The fewest tokens with which a forward reaches 95 % of the best throughput.",
        "Saturation",
        "saturation point",
    ),
    "saturation_interval": MetricEntry("The point's 95 % interval.", "Saturation", "low"),
    "first_reach": MetricEntry("The first size measured at that line.", "Saturation", "first_reach"),
    "last_below": MetricEntry("The last size measured below it.", "Saturation", "last_below"),
    # of the roofline
    "ceilings": MetricEntry("The most that the machine did when it was measured.", "Ceilings", "gemm"),
    "forward_time": MetricEntry("Time on the device.", "Symbols", "d(f)"),
    "forward_tokens": MetricEntry("Prompt tokens and decode rows of the forward.", _COUNTS, "extend_tokens"),
    "mode_forwards": MetricEntry("Forwards of that mode.", _COUNTS, "forwards_by_mode"),
    "intensity": MetricEntry("Work for a byte moved.", "Roofline", "intensity"),
    "flops_per_s": MetricEntry("Work a second of device time.", "Roofline", "flops_per_s"),
    "roof_share": MetricEntry("Of what the roof allows at that intensity.", "Roofline", "roof_share"),
    "above_roof": MetricEntry(
        "Above what the roof allows: counting, clock or ceiling is wrong, or a cache helped.",
        "Roofline",
        "above_roof",
    ),
    "ridge": MetricEntry("The intensity at which the two ceilings meet.", "Roofline", "ridge"),
}
"""By the number's key; one number has one key wherever it stands."""

_STATE_LINES = {
    "total": "budgets",
    "current": "budgets",
    "input": "budgets",
    "chunk": "budgets",
    "Budgets": "budgets",
    "stopped by": "stop_reason",
    "inflight_middle_chunks": "inflight_middle_chunks",
}


def explained(key: str) -> str:
    """What the number is, and where that is defined. KeyError for a number without an entry."""
    entry = ENTRIES[key]
    return f"{entry.words} {entry.place}"


def state_entry(label: str) -> str:
    """The key of a line of the scheduler's state (`ui.state_words`), by its label."""
    return _STATE_LINES.get(label.strip(), "state")
