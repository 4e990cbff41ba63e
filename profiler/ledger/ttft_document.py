"""Ledgers of first tokens as JSON-safe values: whole nanoseconds, and requests under the user's names."""

from collections.abc import Mapping
from typing import Any

from engine.batch import StopReason
from profiler.ledger.ttft_parts import TtftKind, TtftLedger, TtftPart, TtftSum, TtftTotals

__all__ = ["ttft_document", "ttft_totals_document"]

_NO_REASON = "NOT_TOLD"


def ttft_document(ledger: TtftLedger) -> dict[str, Any]:
    """The time to first token of one request; the `part_ns` of `parts` sum to `ttft_ns`."""
    return {
        "arrival_ns": ledger.arrival_ns,
        "first_token_ns": ledger.first_token_ns,
        "ttft_ns": ledger.ttft_ns,
        "by_kind_ns": {kind.name: ledger.sum_ns([kind]) for kind in TtftKind},
        "culprits": [{"rid": each.name, "cost_ns": each.device_ns} for each in ledger.culprits],
        "holders": [{"rid": each.name, "cost_ns": each.device_ns} for each in ledger.holders],
        "parts": [_part(part) for part in ledger.parts],
        "split": ledger.split,
    }


def ttft_totals_document(totals: TtftTotals, top: int) -> dict[str, Any]:
    """The times to first token of all requests, summed; at most `top` rows of each list."""
    return {
        "requests": totals.requests,
        "waiting_ns": totals.waiting_ns,
        "by_kind_ns": _by_kind(totals.by_kind),
        "blocked_by_ns": _by_budget(totals.by_budget),
        "culprits": [
            {"rid": each.name, "cost_ns": each.cost_ns, "budget_ns": each.budget_ns}
            for each in totals.culprits[:top]
        ],
        "behind": [{"rid": each.name, "blocked_ns": each.blocked_ns} for each in totals.behind[:top]],
        "worst": [_sum(each) for each in totals.worst[:top]],
        "split": totals.split,
    }


def _sum(each: TtftSum) -> dict[str, Any]:
    return {
        "rid": each.name,
        "arrival_ns": each.arrival_ns,
        "first_token_ns": each.first_token_ns,
        "ttft_ns": each.ttft_ns,
        "by_kind_ns": _by_kind(each.by_kind),
        "blocked_by_ns": _by_budget(each.by_budget),
    }


def _part(part: TtftPart) -> dict[str, Any]:
    chunk = part.chunk
    return {
        "kind": part.kind.name,
        "part_ns": part.part_ns,
        "forward_id": part.forward_id,
        "budget": None if part.budget is None else part.budget.name,
        "behind": part.behind_name,
        "chunk": None if chunk is None else {"rid": chunk.name, "number": chunk.number, "of": chunk.of},
    }


def _by_kind(sums: Mapping[TtftKind, int]) -> dict[str, int]:
    return {kind.name: sums.get(kind, 0) for kind in TtftKind}


def _by_budget(sums: Mapping[StopReason | None, int]) -> dict[str, int]:
    return {_NO_REASON if reason is None else reason.name: ns for reason, ns in sums.items()}
