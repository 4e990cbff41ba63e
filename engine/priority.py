"""Priorities: which request is more urgent, and who gives way to it when all request slots are taken."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from engine.config import EngineConfig
from engine.request import Request

__all__ = ["PriorityRules"]


@dataclass(frozen=True, slots=True)
class PriorityRules:
    """What a request's `priority` means to the scheduler."""

    enabled: bool
    preempt: bool
    low_values_first: bool
    threshold: int  # a victim is less urgent by more than this

    @classmethod
    def of(cls, config: EngineConfig) -> "PriorityRules":
        """The rules that the options ask for."""
        return cls(
            enabled=config.enable_priority_scheduling,
            preempt=config.enable_priority_scheduling and not config.disable_priority_preemption,
            low_values_first=config.schedule_low_priority_values_first,
            threshold=config.priority_scheduling_preemption_threshold,
        )

    def urgency(self, request: Request) -> int:
        """The larger, the sooner the request is served."""
        return -request.priority if self.low_values_first else request.priority

    def victims(
        self,
        candidate: Request,
        running: Iterable[Request],
        need_tokens: float,
        reserved_tokens: Callable[[Request], float],
    ) -> list[Request]:
        """Running requests whose reservations make up `need_tokens`, at least one; empty when none may.

        Taken are the least urgent, of these the last that arrived, of these the first in the batch.
        """
        chosen: list[Request] = []
        least = sorted((r for r in running if not r.finished), key=lambda r: (self.urgency(r), -r.arrival_ns))
        for request in least:
            if self.urgency(candidate) - self.urgency(request) <= self.threshold:
                break
            chosen.append(request)
            need_tokens -= reserved_tokens(request)
            if need_tokens <= 0:
                return chosen
        return []
