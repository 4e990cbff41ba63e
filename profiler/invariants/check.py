"""Goes through the rules on one trace."""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from engine.batch import ForwardMode, Outcome, Role, StopReason
from engine.observer import Owner
from engine.request import FinishReason
from profiler.invariants.admissions import ADMISSION_RULES
from profiler.invariants.batches import BATCH_RULES
from profiler.invariants.budgets import BUDGET_RULES
from profiler.invariants.cursor import CURSOR_RULES
from profiler.invariants.decisions import DECISION_RULES
from profiler.invariants.endings import ENDING_RULES
from profiler.invariants.forwards import FORWARD_RULES
from profiler.invariants.in_flight import IN_FLIGHT_RULES
from profiler.invariants.pages import PAGE_RULES
from profiler.invariants.pool import POOL_RULES
from profiler.invariants.queue import QUEUE_RULES
from profiler.invariants.report import CheckReport, RuleResult, Status, Violation
from profiler.invariants.requests import REQUEST_RULES
from profiler.invariants.rule import Finding, Rule, Tables, ended_cleanly
from profiler.invariants.sums import SUM_RULES
from profiler.invariants.tokens import TOKEN_RULES
from profiler.tables import TraceLike, request_names

__all__ = ["RULES", "check_trace"]

RULES: tuple[Rule, ...] = (
    *FORWARD_RULES,
    *BATCH_RULES,
    *IN_FLIGHT_RULES,
    *DECISION_RULES,
    *ADMISSION_RULES,
    *BUDGET_RULES,
    *QUEUE_RULES,
    *SUM_RULES,
    *POOL_RULES,
    *PAGE_RULES,
    *CURSOR_RULES,
    *TOKEN_RULES,
    *REQUEST_RULES,
    *ENDING_RULES,
)
ENUMS: Mapping[str, type[IntEnum]] = {
    "mode": ForwardMode,
    "role": Role,
    "previous_role": Role,
    "outcome": Outcome,
    "expected_outcome": Outcome,
    "stop_reason": StopReason,
    "finish_reason": FinishReason,
    "owner": Owner,
}
OWN_PROVENANCES = ("measured", "simulated")


def check_trace(trace: TraceLike, rules: Sequence[Rule] = RULES) -> CheckReport:
    """Hold rules against a trace, all unless told which; a TraceError of its reader goes through."""
    tables = Tables.of(trace)
    names = request_names(trace)
    return CheckReport(
        rules=tuple(_check(rule, tables, names) for rule in rules),
        torn_bytes=trace.torn_bytes,
        clean_end=ended_cleanly(trace.meta),
    )


def _check(rule: Rule, tables: Tables, names: Mapping[int, str]) -> RuleResult:
    provenance = tables.meta.get("provenance")
    if rule.of_scheduler and provenance not in OWN_PROVENANCES:
        return _not_checkable(rule, f"the scheduler is not this one: the trace is {provenance or 'unnamed'}")
    missing = tables.lacks(rule.needs)
    if missing:
        return _not_checkable(rule, f"the trace lacks {', '.join(missing)}", missing)
    found = rule.find(tables)
    if isinstance(found, str):
        return _not_checkable(rule, found)
    return _judge(rule, found, names)


def _judge(rule: Rule, found: Finding, names: Mapping[int, str]) -> RuleResult:
    if not found.checked:
        return _not_checkable(rule, "the trace holds nothing to hold it against")
    violations = len(found.broken)
    return RuleResult(
        rule.name,
        rule.meaning,
        Status.VIOLATED if violations else Status.HELD,
        found.checked,
        violations,
        first=_violation(found, names) if violations else None,
    )


def _violation(found: Finding, names: Mapping[int, str]) -> Violation:
    broken = found.broken
    if "forward_id" in broken.columns:
        broken = broken.sort("forward_id", nulls_last=True, maintain_order=True)
    values = broken.row(0, named=True)
    forward_id, rid, attempt = (values.pop(key, None) for key in ("forward_id", "rid", "attempt"))
    request = None if rid is None else names.get(rid, str(rid))
    return Violation(forward_id, request, attempt, tuple((key, _shown(key, values[key])) for key in values))


def _shown(column: str, value: Any) -> Any:
    """A value as it is, an enum's by its name."""
    return next((member.name for member in ENUMS.get(column, ()) if member.value == value), value)


def _not_checkable(rule: Rule, reason: str, missing: tuple[str, ...] = ()) -> RuleResult:
    return RuleResult(rule.name, rule.meaning, Status.NOT_CHECKABLE, 0, 0, missing=missing, reason=reason)
