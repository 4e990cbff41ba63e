"""Reads a Chrome trace back, and asks of it what viewers rely on."""

import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

Event = Mapping[str, Any]


def nanoseconds(microseconds: Decimal | int) -> int:
    """Exactly, as the file was parsed with decimals."""
    value = microseconds * 1000
    assert value == int(value)
    return int(value)


@dataclass(frozen=True)
class Chrome:
    """The events of a file."""

    events: list[Event]
    about: Mapping[str, Any]

    def of(self, phase: str, name: str | None = None) -> list[Event]:
        return [e for e in self.events if e["ph"] == phase and name in (None, e["name"])]

    def threads(self) -> dict[tuple[int, int], str]:
        """Name of each process and thread id."""
        return {(e["pid"], e["tid"]): e["args"]["name"] for e in self.of("M", "thread_name")}

    def slices_on(self, name: str) -> list[Event]:
        """Slices of the threads of this name."""
        named = {place for place, thread in self.threads().items() if thread == name}
        return [e for e in self.of("X") if (e["pid"], e["tid"]) in named]

    def around(self, end: Event) -> list[Event]:
        """Slices that enclose a flow's end."""
        return [
            e
            for e in self.of("X")
            if (e["pid"], e["tid"]) == (end["pid"], end["tid"]) and e["ts"] <= end["ts"] <= e["ts"] + e["dur"]
        ]


def read_chrome(path: Path) -> Chrome:
    text = (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode("ascii")
    document = json.loads(text, parse_float=Decimal, parse_constant=lambda name: 1 / 0)
    assert set(document) == {"displayTimeUnit", "otherData", "traceEvents"}
    return Chrome(document["traceEvents"], document["otherData"])


def assert_nested(events: Iterable[Event]) -> None:
    """On each thread any two slices are apart, or one holds the other."""
    threads = defaultdict(list)
    for event in events:
        threads[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for spans in threads.values():
        open_ends: list[Decimal] = []
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1], (start, end, open_ends[-1])
            open_ends.append(end)
