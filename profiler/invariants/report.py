"""What a check found. Plain values: how they are drawn is left to others."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["CheckReport", "RuleResult", "Status", "Violation"]


class Status(StrEnum):
    """How a rule fared on a trace."""

    HELD = "held"
    VIOLATED = "violated"
    NOT_CHECKABLE = "not checkable"


@dataclass(frozen=True, slots=True)
class Violation:
    """One place where a rule does not hold; None where a part does not apply."""

    forward_id: int | None
    request: str | None  # the user's name, or the rid where the trace has none
    attempt: int | None
    numbers: tuple[tuple[str, int | float | str | None], ...]  # by name: what was found and what should be


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One rule on one trace."""

    name: str
    meaning: str
    status: Status
    checked: int  # forwards, rows or requests that the rule was held against
    violations: int
    first: Violation | None = None  # in forward order
    missing: tuple[str, ...] = ()  # "table.column" that the rule needs and the trace lacks
    reason: str | None = None  # why it is not checkable


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Every rule's result, in the order of the rules, and what the trace lost."""

    rules: tuple[RuleResult, ...]
    torn_bytes: int  # unreadable bytes after the last whole batch
    clean_end: bool  # whether the recording was ended and sealed by its writer

    @property
    def ok(self) -> bool:
        """Whether no rule is violated; rules that cannot be checked do not count."""
        return not self.having(Status.VIOLATED)

    def having(self, status: Status) -> tuple[RuleResult, ...]:
        """The rules that fared so."""
        return tuple(rule for rule in self.rules if rule.status is status)
