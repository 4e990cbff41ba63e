"""What a fitted curve rests on: its misses, the margins that they ask for, and how far the forwards reach."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engine.arithmetic import ForwardSums
from engine.batch import ForwardMode
from profiler.forward_features import LAYOUTS, Forwards

__all__ = ["Reach", "Residuals", "Spread", "reach_of", "residuals_of", "spread_of"]

Array = NDArray[np.float64]

_PREFIXES = (1, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 62)


@dataclass(frozen=True, slots=True)
class Residuals:
    """Misses of the fit over forwards of a kind, as log(measured / fit)."""

    kind: str  # "all", one of LAYOUTS, or a range of prefixes: "prefix 1,024 to 4,095"
    forwards: int
    bias: float  # median
    typical: float  # median of absolute values
    rms: float


@dataclass(frozen=True, slots=True)
class Spread:
    """Quantiles of measured / fit over forwards of one mode: the margin that a promise needs."""

    mode: str
    forwards: int
    p50: float
    p90: float
    p99: float
    max: float


@dataclass(frozen=True, slots=True)
class Reach:
    """Least and largest of what the fitted forwards had; of forwards beyond, the model only extrapolates."""

    tokens: tuple[int, int]
    prefix_tokens: tuple[int, int]  # before a new token of extend rows, on average over a forward
    decode_rows: tuple[int, int]
    pairs_prefix: tuple[int, int]
    pairs_causal: tuple[int, int]
    pairs_decode: tuple[int, int]

    def beyond(self, sums: ForwardSums) -> tuple[str, ...]:
        """Names of what a forward has more of than any fitted one; of tokens also less."""
        has = {
            "tokens": sums.tokens,
            "prefix_tokens": sums.pairs_prefix // max(1, sums.extend_tokens),
            "decode_rows": sums.decode_tokens,
            "pairs_prefix": sums.pairs_prefix,
            "pairs_causal": sums.pairs_causal,
            "pairs_decode": sums.pairs_decode,
        }
        more = {name for name, value in has.items() if value > getattr(self, name)[1]}
        if sums.tokens < self.tokens[0]:
            more.add("tokens")
        return tuple(name for name in has if name in more)


def residuals_of(forwards: Forwards, misses: Array) -> tuple[Residuals, ...]:
    """Of all forwards, then of each layout and each range of prefixes that has any; (forwards,) misses."""
    parts = {"all": np.ones(len(misses), dtype=np.bool_)}
    parts |= {name: forwards.layout == at for at, name in enumerate(LAYOUTS)}
    prefix = forwards.prefix_tokens
    for low, high in pairwise(_PREFIXES):
        upto = f"to {high - 1:,}" if high < _PREFIXES[-1] else "and more"
        parts[f"prefix {low:,} {upto}"] = (prefix >= low) & (prefix < high)
    return tuple(
        Residuals(
            kind=name,
            forwards=int(chosen.sum()),
            bias=float(np.median(misses[chosen])),
            typical=float(np.median(np.abs(misses[chosen]))),
            rms=float(np.sqrt(np.mean(misses[chosen] ** 2))),
        )
        for name, chosen in parts.items()
        if chosen.any()
    )


def spread_of(forwards: Forwards, ratios: Array) -> tuple[Spread, ...]:
    """Of each mode that has forwards; (forwards,) measured / fit."""
    parts = []
    for mode in ForwardMode:
        of_mode = ratios[forwards.mode == mode.value]
        if len(of_mode):
            p50, p90, p99 = np.quantile(of_mode, (0.5, 0.9, 0.99)).tolist()
            parts.append(Spread(mode.name, len(of_mode), p50, p90, p99, float(of_mode.max())))
    return tuple(parts)


def reach_of(forwards: Forwards) -> Reach:
    """The ranges of what forwards had."""
    return Reach(
        tokens=_range(forwards.column("tokens")),
        prefix_tokens=_range(forwards.prefix_tokens),
        decode_rows=_range(forwards.decode_tokens),
        pairs_prefix=_range(forwards.column("pairs_prefix")),
        pairs_causal=_range(forwards.column("pairs_causal")),
        pairs_decode=_range(forwards.column("pairs_decode")),
    )


def _range(values: Array) -> tuple[int, int]:
    return int(values.min()), int(values.max())
