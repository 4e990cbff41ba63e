"""How a rule that does not hold is told: as an error that names it, where, and with which numbers."""

from typing import NamedTuple

from profiler.invariants.report import Violation

__all__ = ["NOWHERE", "InvariantError", "Place", "hold"]

Shown = int | float | str | None


class Place(NamedTuple):
    """Where a rule is held; None where a part does not apply."""

    forward_id: int | None = None
    request: str | None = None  # the user's name
    attempt: int | None = None


NOWHERE = Place()


class InvariantError(AssertionError):
    """A rule does not hold.

    Attributes:
        rule: its name; rules about what a trace tells, too, have the name they have in `chunkscope check`.
        violation: where, and the numbers.
    """

    def __init__(self, rule: str, violation: Violation) -> None:
        self.rule = rule
        self.violation = violation
        place = (
            ("forward", violation.forward_id),
            ("request", violation.request),
            ("attempt", violation.attempt),
        )
        where = ", ".join(f"{what} {value}" for what, value in place if value is not None)
        numbers = ", ".join(f"{name} {value}" for name, value in violation.numbers)
        super().__init__(f"{rule} at {where or 'the engine'}: {numbers}")


def hold(rule: str, holds: bool, place: Place = NOWHERE, **numbers: Shown) -> None:
    """Raise InvariantError unless `holds`; `numbers` are what was found and what should be."""
    if not holds:
        raise InvariantError(rule, Violation(*place, tuple(numbers.items())))
