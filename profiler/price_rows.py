"""What a set of scheduling options costs, as one row of a price list, and the limits that it may break."""

from dataclasses import dataclass
from typing import Protocol

from engine.arithmetic import ForwardSums
from engine.batch import ForwardBatch

__all__ = ["ForwardCostModel", "Limits", "Options", "PriceRow"]


class ForwardCostModel(Protocol):
    """How long a forward takes, known from its sums: a roofline, a fit, or a calculation on paper."""

    def seconds(self, sums: ForwardSums) -> float:
        """Seconds that a forward with these sums over its rows takes."""
        ...

    def forward_ns(self, batch: ForwardBatch) -> int:
        """Nanoseconds of one planned forward, for the simulated executor."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """What a person accepts, in seconds; None is no limit."""

    itl_max_s: float | None = None
    itl_p99_s: float | None = None
    ttft_p99_s: float | None = None


@dataclass(frozen=True, slots=True, order=True)
class Options:
    """The scheduling options that a price list compares."""

    chunk_tokens: int | None  # --chunked-prefill-size; None is whole prompts, -1 on the command line
    mixed: bool = False  # --enable-mixed-chunk
    interval: int = 0  # --prefill-decode-interval

    def arguments(self) -> tuple[str, ...]:
        """The options as the command line takes them."""
        size = -1 if self.chunk_tokens is None else self.chunk_tokens
        mixed = ("--enable-mixed-chunk",) if self.mixed else ()
        interval = ("--prefill-decode-interval", str(self.interval)) if self.interval else ()
        return ("--chunked-prefill-size", str(size), *mixed, *interval)


@dataclass(frozen=True, slots=True)
class PriceRow:
    """What `options` cost; None is unknown. docs/metrics.md, "Price list", defines every number.

    Forward times are of a chunk of the longest prompt by the cost model; waits and TTFT are those of the
    whole workload, sent through the scheduler on a simulated device.
    """

    options: Options
    plateau_share: float | None = None  # a long prompt's throughput in such chunks, as a share of the best
    forwards: int | None = None  # that the longest prompt is cut into
    first_forward_s: float | None = None  # without prefix
    last_forward_s: float | None = None  # behind the rest of the longest prompt
    longest_wait_s: float | None = None  # longest gap between two tokens of one request
    itl_p99_s: float | None = None
    ttft_p99_s: float | None = None
    ttft_long_s: float | None = None  # of the longest prompt
    against_whole: float | None = None  # ttft_long_s / that with whole prompts - 1
    output_tokens_per_s: float | None = None
    activation_bytes: int | None = None
    kv_tokens: int | None = None  # that the memory has room for beside weights and activations
    decode_forward_s: float | None = None  # longest forward of decode rows alone: no wait can be shorter

    def breaks(self, limits: Limits) -> tuple[str, ...]:
        """Names of the limits that are broken, of `itl_max_s`, `itl_p99_s` and `ttft_p99_s` in this order.

        What is unknown breaks nothing.
        """
        values = {
            "itl_max_s": self.longest_wait_s,
            "itl_p99_s": self.itl_p99_s,
            "ttft_p99_s": self.ttft_p99_s,
        }
        return tuple(
            name
            for name, value in values.items()
            if value is not None and (limit := getattr(limits, name)) is not None and value > limit
        )
