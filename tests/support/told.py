"""An observer that keeps what an engine tells."""

from engine.observer import Event, EventKind, ForwardRecord
from engine.request import Request

__all__ = ["Told"]


class Told:
    """Events and forwards, in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.records: list[ForwardRecord] = []

    def on_request(self, request: Request) -> None:
        """Not kept."""

    def on_events(self, events: list[Event]) -> None:
        self.events += events

    def on_forward(self, record: ForwardRecord) -> None:
        self.records.append(record)

    def kinds(self) -> list[EventKind]:
        """The kinds of all events."""
        return [event.kind for event in self.events]

    def of(self, kind: EventKind) -> list[Event]:
        """The events of one kind."""
        return [event for event in self.events if event.kind is kind]
