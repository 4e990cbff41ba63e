"""Where docs/metrics.md defines the numbers of ledgers, stalls and findings."""

from ui.metric_entry import MetricEntry

__all__ = ["LEDGER_ENTRIES"]

_LEDGER, _REPORT = "Gap ledger", "Stall report"

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
    "lost": MetricEntry("Derived: what all requests of a row lost, late by late.", _LEDGER, "lost_ns"),
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
}
"""By the number's key; part of `ui.metric_entries.ENTRIES`."""
