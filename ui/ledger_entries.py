"""Where docs/metrics.md defines the numbers of ledgers, stalls and findings."""

from ui.metric_entry import MetricEntry

__all__ = ["LEDGER_ENTRIES"]

_LEDGER, _REPORT, _TTFT, _FINDINGS = "Gap ledger", "Stall report", "TTFT ledger", "Findings"

LEDGER_ENTRIES: dict[str, MetricEntry] = {
    "gap_ledger": MetricEntry(
        "Derived: every nanosecond of a gap, charged to what it went to; the parts sum to it exactly.",
        _LEDGER,
        "part",
    ),
    "late_by": MetricEntry(
        "Derived: how much later a token came than its own decode forwards needed.", _LEDGER, "Late by"
    ),
    "cause": MetricEntry("The largest part of a gap but for its own decode forwards.", _LEDGER, "cause"),
    "stall_group": MetricEntry(
        "Tokens that were late at one instant for one cause, as one row.", _LEDGER, "Groups"
    ),
    "lost": MetricEntry(
        "Derived: by how much the tokens of a row were late, all together.", _LEDGER, "lost_ns"
    ),
    "split": MetricEntry("What the time of a forward was shared by, among its chunks.", _LEDGER, "split"),
    "waiting": MetricEntry(
        "Derived: the sum of all gaps of all requests. The longest one stands beside it, as what cuts waits "
        "in pieces shortens that far more.",
        _REPORT,
        "waiting_ns",
    ),
    "causes": MetricEntry("Derived: waiting by what it went to; the causes sum to it.", _REPORT, "Causes"),
    "causes_over_time": MetricEntry(
        "Derived: waiting by cause in equal spans of time; each request that waits counts.",
        _REPORT,
        "over_time",
    ),
    "victims": MetricEntry("Derived: what a request lost between its tokens.", _REPORT, "victims"),
    "culprit_cost": MetricEntry(
        "Derived: what a request's chunks cost all others together, between their tokens.",
        _REPORT,
        "culprits",
    ),
    "chunk_cost": MetricEntry(
        "Derived: what a chunk took of a gap, or of all gaps of others together.", _REPORT, "chunks"
    ),
    "ttft_ledger": MetricEntry(
        "Derived: every nanosecond from a request's arrival to its first token, charged to what it went to.",
        _TTFT,
    ),
    "ttft_causes": MetricEntry(
        "Derived: the times to first token of all requests, by what they went to.", _TTFT, "by_kind_ns"
    ),
    "blocked_by": MetricEntry(
        "Derived: the time in which a round did not admit a request, by the budget that ended it.",
        _TTFT,
        "blocked_by_ns",
    ),
    "ttft_culprit_cost": MetricEntry(
        "Derived: what a request's chunks cost the first tokens of others, for their budget or the device.",
        _TTFT,
        "budget_ns",
    ),
    "findings": MetricEntry(
        "Derived: what is wrong with a run, made where a number reaches its threshold.", _FINDINGS
    ),
    "finding_lost": MetricEntry(
        "Derived: the decode time that a finding puts down to its cause; findings may count the same time.",
        _FINDINGS,
        "lost_ns",
    ),
    "prefill_first_starvation": MetricEntry(
        "Prefill forwards in a row held decodes up.", _FINDINGS, "prefill_first_starvation"
    ),
    "p99_hides_the_wall": MetricEntry(
        "The longest gap is far above the 99th percentile.", _FINDINGS, "p99_hides_the_wall"
    ),
    "chunk_size": MetricEntry("The chunk size against the saturation point.", _FINDINGS, "chunk_size"),
    "fragmented_prefills": MetricEntry(
        "Small prefill forwards broke decodes again and again.", _FINDINGS, "fragmented_prefills"
    ),
    "kv_limited_admission": MetricEntry(
        "Requests waited for room in the KV pool.", _FINDINGS, "kv_limited_admission"
    ),
    "retraction_storm": MetricEntry(
        "Requests gave their KV back and were computed anew.", _FINDINGS, "retraction_storm"
    ),
    "prefix_cache_thrash": MetricEntry(
        "Prefixes were evicted and computed again.", _FINDINGS, "prefix_cache_thrash"
    ),
    "host_bound_decode": MetricEntry(
        "The device waited for the host between decode forwards.", _FINDINGS, "host_bound_decode"
    ),
    "decode_batch_past_saturation": MetricEntry(
        "Decode batches were larger than what fills a forward.", _FINDINGS, "decode_batch_past_saturation"
    ),
}
"""By the number's key; part of `ui.metric_entries.ENTRIES`."""
