"""One number's entry: a sentence, and where docs/metrics.md defines it."""

from typing import NamedTuple

__all__ = ["MetricEntry"]


class MetricEntry(NamedTuple):
    """A number's sentence; its heading in docs/metrics.md, up to the dash; the words that mark it there."""

    words: str
    heading: str
    key: str | None = None  # None: the whole section

    @property
    def place(self) -> str:
        """Where it is defined: docs/metrics.md, Latency: ttft_s."""
        return f"docs/metrics.md, {self.heading}" + (f": {self.key}" if self.key else "")
