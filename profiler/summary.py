"""The answers of a trace in one JSON-safe document. It composes the analyses and computes nothing itself."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from profiler.counts import count_run
from profiler.findings.find import findings
from profiler.findings.finding import Finding
from profiler.findings.thresholds import Thresholds
from profiler.kernel_coverage import KernelCoverage, kernel_coverage
from profiler.latency import latency
from profiler.ledger.parts import GapDetail
from profiler.ledger.why import main_cause
from profiler.saturation import Saturation
from profiler.saturation_report import decode_report, saturation_report
from profiler.tables import TraceLike, request_names
from profiler.worst_gap import culprit_forward_id, worst_gap

__all__ = ["summarize"]


_DEFAULTS = Thresholds()


def summarize(trace: TraceLike, thresholds: Thresholds = _DEFAULTS) -> dict[str, Any]:
    """What `stats --json` prints; docs/metrics.md defines every key. Unknown is None, times are seconds.

    `thresholds` say from which number on something counts as a finding.
    """
    felt = latency(trace)
    counts = count_run(trace)
    prompts, decodes = saturation_report(trace), decode_report(trace)
    found = findings(trace, thresholds, itl=felt.itl, saturation=prompts, decode_saturation=decodes)
    names = request_names(trace) if found else {}
    return {
        "provenance": trace.meta.get("provenance"),
        **asdict(counts),
        "output_tokens": felt.output_tokens,
        "output_tokens_per_s": felt.output_tokens_per_s,
        "ttft_s": asdict(felt.ttft),
        "itl_s": asdict(felt.itl),
        "waiting_s": felt.waiting_s,
        "worst_stall": _worst_stall(worst_gap(trace)),
        "findings": [_finding(each, names) for each in found],
        "saturation": _saturation(prompts.found),
        "decode_saturation": _saturation(decodes.found),
        "kernels": _kernels(kernel_coverage(trace)),
        "torn_bytes": trace.torn_bytes,
    }


def _worst_stall(gap: GapDetail | None) -> dict[str, Any]:
    """The longest gap; the same keys with nothing in them when there is none."""
    if gap is None:
        return {
            "gap_s": None,
            "rid": None,
            "token_index": None,
            "own_forward_id": None,
            "own_mode": None,
            "forward_ids": [],
            "modes": [],
            "culprit_rids": [],
            "culprit_forward_id": None,
            "cause": None,
            "cause_s": None,
            "mixed_extra_s": None,
        }
    cause = main_cause(gap)
    return {
        "gap_s": gap.gap_ns / 1e9,
        "rid": gap.name,
        "token_index": gap.token_index,
        "own_forward_id": gap.own_forward_id,
        "own_mode": gap.own_mode,
        "forward_ids": [forward.forward_id for forward in gap.forwards[:-1]],
        "modes": [forward.mode for forward in gap.forwards[:-1]],
        "culprit_rids": [culprit.name for culprit in gap.culprits],
        "culprit_forward_id": culprit_forward_id(gap),
        "cause": None if cause is None else cause.name,
        "cause_s": None if cause is None else gap.sum_ns([cause]) / 1e9,
        "mixed_extra_s": None if gap.mixed_extra_ns is None else gap.mixed_extra_ns / 1e9,
    }


def _finding(found: Finding, names: Mapping[int, str]) -> dict[str, Any]:
    name, value = found.threshold
    return {
        "kind": found.kind.value,
        "severity": found.severity.value,
        "title": found.title,
        "sentence": found.sentence,
        "evidence": found.evidence,
        "numbers": dict(found.numbers),
        "threshold": {name: value},
        "forward_ids": list(found.forward_ids),
        "rids": [names.get(rid, str(rid)) for rid in found.rids],
        "mend": found.mend,
        "option": None if found.option is None else list(found.option),
        "at_ns": found.at_ns,
        "lost_ns": found.lost_ns,
    }


def _kernels(found: KernelCoverage | None) -> dict[str, Any] | None:
    """Of the forwards that were watched; None where no kernel was recorded."""
    if found is None:
        return None
    return {
        "forwards": found.forwards,
        "device_s": found.device_ns / 1e9,
        "uncovered_share": found.uncovered_share,
        "operators_s": {name: ns / 1e9 for name, ns in found.operator_ns.items()},
    }


def _saturation(found: Saturation) -> dict[str, Any]:
    return {
        "tokens": found.tokens,
        "low": found.low,
        "high": found.high,
        "status": found.status,
        "fit_kind": found.fit_kind,
        "first_reach": found.first_reach,
        "last_below": found.last_below,
        "plateau": None if found.plateau is None else asdict(found.plateau),
        "dips": [asdict(dip) for dip in found.dips],
        "q": found.q,
        "layout": found.layout,
        "num_sizes": found.num_sizes,
        "num_points": found.num_points,
    }
