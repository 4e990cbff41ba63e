"""The fitted model of a forward in words: its formula with what was found, and each term's evidence."""

from collections.abc import Sequence
from typing import NamedTuple

from profiler.forward_fit_terms import Term
from profiler.forward_model import ForwardModel
from ui.si_words import bandwidth, flop_rate
from ui.words import UNKNOWN, plural

__all__ = [
    "TermWords",
    "attention_words",
    "flops",
    "model_words",
    "residual_words",
    "short_time",
    "term_words",
]

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"), (1e-12, "ps"))
_SOURCES = {"measured": "measured", "prior": "expected, not seen here", "between": "partly measured"}
_NAMES = {
    "fixed": "fixed",
    "weights": "weights",
    "compute": "compute, a token",
    "sharpness": "sharpness of the change",
    "elementwise": "norms and the like, a token",
    "behind_prefix": "behind a prefix, a token",
    "pairs_prefix": "attention to the prefix, a pair",
    "pairs_causal": "attention within the chunk, a pair",
    "pairs_decode": "attention of decodes, a pair",
    "head": "reading the head",
    "rows_with_logits": "logits, a row",
}


class TermWords(NamedTuple):
    """One term as views write it."""

    name: str
    value: str
    interval: str
    expected: str
    source: str
    rate: str  # empty where it stands for none


def model_words(model: ForwardModel) -> str:
    """t(T) = 1.60 ms + smooth max(4.20 ms weights, T × 20.2 µs) + T × 1.30 µs + attention + logits."""
    fixed, weights, compute, elementwise = (
        short_time(model.term(name).value) for name in ("fixed", "weights", "compute", "elementwise")
    )
    matrices = f"smooth max({weights} weights, T × {compute})"
    return f"t(T) = {fixed} + {matrices} + T × {elementwise} + attention + logits"


def attention_words(model: ForwardModel) -> str:
    """What pairs cost, and where the two costs of prompts differ."""
    prefix, causal, decode = (
        short_time(model.term(name).value) for name in ("pairs_prefix", "pairs_causal", "pairs_decode")
    )
    return f"a pair of query and key: {prefix} to the prefix, {causal} within the chunk, {decode} of a decode"


def residual_words(model: ForwardModel) -> str:
    """How far forwards lie from the model."""
    overall = model.residuals[0]
    return (
        f"{overall.typical * 100:.1f} % typically, {overall.rms * 100:.1f} % root mean square, "
        f"over {plural(overall.forwards, 'forward')}"
    )


def term_words(model: ForwardModel) -> Sequence[TermWords]:
    """Every term, in the model's order."""
    return [_term(term) for term in model.terms]


def short_time(seconds: float) -> str:
    """A duration of any size with three digits: 4.20 ms, 20.2 µs, 13.1 ps."""
    scale, unit = next((each for each in _UNITS if seconds >= 0.9995 * each[0]), _UNITS[-1])
    value = seconds / scale
    return f"{value:,.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"


def flops(value: int | None) -> str:
    """A number of floating-point operations: 12.3 TFLOP."""
    return UNKNOWN if value is None else flop_rate(value).removesuffix("/s")


def _term(term: Term) -> TermWords:
    def of(value: float) -> str:
        return f"{value:.1f}" if term.unit is None else short_time(value)

    rate = (
        ""
        if term.rate is None
        else flop_rate(term.rate)
        if term.rate_unit == "FLOP/s"
        else bandwidth(term.rate)
    )
    return TermWords(
        _NAMES.get(term.name, term.name),
        of(term.value),
        f"{of(term.low)} to {of(term.high)}",
        of(term.expected),
        _SOURCES.get(term.source, term.source),
        rate,
    )
