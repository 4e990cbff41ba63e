"""Rules that hold on every trace of a sound scheduler, and the check that goes through them."""

from profiler.invariants.check import RULES, check_trace
from profiler.invariants.report import CheckReport, RuleResult, Status, Violation

__all__ = ["RULES", "CheckReport", "RuleResult", "Status", "Violation", "check_trace"]
