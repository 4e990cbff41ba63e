"""Where docs/metrics.md defines each number of both UIs, and what it is in a sentence."""

from ui.ledger_entries import LEDGER_ENTRIES
from ui.metric_entry import MetricEntry

__all__ = ["ENTRIES", "MetricEntry", "explained", "state_entry"]


_LATENCY, _PICTURES, _COUNTS = "Latency", "Pictures", "Counts and peaks"
_MODEL, _PRICES, _BOARD = "Model of a forward", "Price list and advice", "Saturation board"
_GAPS, _STATE, _TRACE = "Gaps and stalls", "The state at a cursor", "The Trace page"

ENTRIES: dict[str, MetricEntry] = {
    **LEDGER_ENTRIES,
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
    # of a selection, a gap, a stall
    "selection": MetricEntry(
        "Exact sums over the forwards that start in the selection.", _PICTURES, "Sums of a selection"
    ),
    "gap": MetricEntry("The time between two tokens of a request.", _GAPS, "gap"),
    "stalls": MetricEntry("Gaps in which others' forwards ran, or prompts rode along.", _GAPS, "stall"),
    # of the scheduler
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
    "size_tokens": MetricEntry("Tokens of one forward of that size.", "Saturation", "T ="),
    "size_forwards": MetricEntry("How many forwards of that size the trace has.", "Saturation", "forwards"),
    "size_time": MetricEntry(
        "Time of a forward of that size on the device, as the trace has it: measured or simulated.",
        "Saturation",
        "d(f)",
    ),
    "size_rate": MetricEntry(
        "Median throughput of the forwards of that size, from their times: measured or simulated.",
        "Saturation",
        "median throughput",
    ),
    "fit": MetricEntry("Derived: the smooth throughput fitted to all sizes.", "Saturation", "fit(T)"),
    "fit_share": MetricEntry("Derived: the fit at that size as a share of its best.", "Saturation", "share"),
    "residual": MetricEntry("How far the sizes lie from the fit.", "Saturation", "residual"),
    "saturation_point": MetricEntry(
        "The fewest tokens with which a forward reaches 95 % of the best throughput.",
        "Saturation",
        "saturation point",
    ),
    "saturation_interval": MetricEntry("The point's 95 % interval.", "Saturation", "low"),
    "first_reach": MetricEntry("The first size measured at that line.", "Saturation", "first_reach"),
    "last_below": MetricEntry("The last size measured below it.", "Saturation", "last_below"),
    "plateau": MetricEntry("The best of the fit, with its 95 % interval.", "Saturation", "plateau"),
    "dips": MetricEntry(
        "Sizes clearly below the fit, as wave quantisation makes them; they do not move the point.",
        "Saturation",
        "dip",
    ),
    "decode_point": MetricEntry(
        "The fewest decode rows with which a forward reaches 95 % of the best throughput.",
        "Saturation",
        "decode",
    ),
    "layout": MetricEntry("What the forwards that were counted have in common.", "Saturation", "layout"),
    "not_covered": MetricEntry(
        "Forwards of which the point says nothing: larger than was measured, or of another layout.",
        "Saturation",
        "measured range",
    ),
    # of the model of a forward
    "model_formula": MetricEntry("The time of any forward, fitted to all of them.", _MODEL, "time"),
    "model_term": MetricEntry("A parameter of the fitted model.", _MODEL, "term"),
    "model_interval": MetricEntry("The parameter's 95 % interval.", _MODEL, "interval"),
    "model_expected": MetricEntry(
        "What was expected of the parameter before anything was measured.", _MODEL, "expected"
    ),
    "model_rate": MetricEntry("What the parameter stands for, as a rate of work or bytes.", _MODEL, "rate"),
    "model_bias": MetricEntry("The median miss: measured time against the model's.", _MODEL, "bias"),
    "model_typical": MetricEntry("The median size of a miss.", _MODEL, "typical"),
    "model_rms": MetricEntry("The root mean square of the misses.", _MODEL, "rms"),
    # of a price list
    "price_list": MetricEntry("What each set of scheduling options costs.", _PRICES),
    "choice": MetricEntry(
        "Of the options that keep the limits, those that lose least and hold decodes up least; simulated.",
        _PRICES,
        "Choice",
    ),
    "advice_point": MetricEntry(
        "Derived: the saturation point by the forwards of all runs of the setup together.", _PRICES, "Point"
    ),
    "workload": MetricEntry("The requests that are sent through the scheduler.", _PRICES, "Requests"),
    "cost_model": MetricEntry("What gives a forward its time in a trial.", _PRICES, "Cost model"),
    "margins": MetricEntry(
        "How much is added to a number before a limit is asked of it.", _PRICES, "Margins"
    ),
    "chunk_tokens": MetricEntry("--chunked-prefill-size.", _PRICES, "chunk"),
    "plateau_share": MetricEntry(
        "Derived by the cost model: a long prompt's throughput in such chunks, as a share of the best.",
        _PRICES,
        "plateau_share",
    ),
    "forwards_of_prompt": MetricEntry(
        "Forwards that the longest prompt is cut into, simulated.", _PRICES, "forwards"
    ),
    "first_forward": MetricEntry(
        "Derived by the cost model: the time of a chunk of the longest prompt without prefix.",
        _PRICES,
        "first_forward_s",
    ),
    "last_forward": MetricEntry(
        "Derived by the cost model: the time of a chunk behind the rest of the longest prompt.",
        _PRICES,
        "last_forward_s",
    ),
    "longest_wait": MetricEntry(
        "The longest time between two tokens of a request, simulated.", _PRICES, "longest_wait_s"
    ),
    "price_itl_p99": MetricEntry(
        "99 % of the times between tokens are shorter, simulated.", _PRICES, "itl_p99_s"
    ),
    "ttft_p99": MetricEntry(
        "99 % of the requests have their first token sooner, simulated.", _PRICES, "ttft_p99_s"
    ),
    "ttft_long": MetricEntry("Time to the longest prompt's first token, simulated.", _PRICES, "ttft_long_s"),
    "against_whole": MetricEntry(
        "How much later than with whole prompts the longest prompt's first token comes, simulated.",
        _PRICES,
        "against_whole",
    ),
    "price_output": MetricEntry(
        "Tokens a second of the whole workload, simulated.", _PRICES, "output_tokens_per_s"
    ),
    "kv_tokens": MetricEntry(
        "Derived: tokens of KV that the memory has room for beside weights and activations.",
        _PRICES,
        "kv_tokens",
    ),
    "riding": MetricEntry(
        "Decode rows in every mixed forward; the tried ones' own where it is not set.", _BOARD, "riding"
    ),
    "prefix_curve": MetricEntry(
        "Derived: forwards behind the longest prefix, by the model of a forward.", _BOARD, "dashed curve"
    ),
    # of memory and FLOPs
    "activation_bytes": MetricEntry(
        "Derived, from what was measured or from shapes: the most memory that a forward takes beside "
        "weights and KV.",
        "Memory",
        "activation",
    ),
    "kept_free": MetricEntry("Derived: memory that is kept from weights and KV.", "Memory", "kept free"),
    "memory_requests": MetricEntry(
        "Derived: requests of the trace's median length that the KV pool holds.", "Memory", "requests"
    ),
    "flops_total": MetricEntry("FLOPs of all forwards of the trace.", "FLOPs conventions", "exact"),
    "flops_ratio": MetricEntry("The total as a multiple of the exact one.", "FLOPs conventions", "_ratio"),
    # of the roofline
    "ceilings": MetricEntry("The most that the machine did when it was measured.", "Ceilings", "gemm"),
    "forward_time": MetricEntry(
        "Time of the forward or operator on the device, as the trace has it: measured or simulated.",
        "Symbols",
        "d(f)",
    ),
    "forward_tokens": MetricEntry("Prompt tokens and decode rows of the forward.", _COUNTS, "extend_tokens"),
    "mode": MetricEntry("What the forward held: prompts, decode rows, or both.", _COUNTS, "forwards_by_mode"),
    "mode_forwards": MetricEntry(
        "How many forwards of that mode the trace has.", _COUNTS, "forwards_by_mode"
    ),
    "intensity": MetricEntry(
        "Derived: the FLOPs of a point for each byte that it moves.", "Roofline", "intensity"
    ),
    "flops_per_s": MetricEntry(
        "Derived: the FLOPs of a point for each second of its time on the device.", "Roofline", "flops_per_s"
    ),
    "roof_share": MetricEntry(
        "Derived: the FLOP/s of a point as a share of what the roof allows at its intensity.",
        "Roofline",
        "roof_share",
    ),
    "above_roof": MetricEntry(
        "Points above what the roof allows: counting, clock or ceiling is wrong, or a cache helped.",
        "Roofline",
        "above_roof",
    ),
    "operator_time": MetricEntry(
        "The operator's part of the time of all operators drawn.", "Roofline", "time_share"
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
