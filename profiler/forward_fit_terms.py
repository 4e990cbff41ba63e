"""The terms of a fitted curve: value, interval, what was expected, and which of the two says more."""

from dataclasses import astuple, dataclass

import numpy as np

from profiler.forward_fit import Posterior
from profiler.forward_fit_curve import TERMS, ForwardCurve
from profiler.forward_fit_prior import Prior, Work

__all__ = ["NORMAL_95", "Term", "terms_of"]

NORMAL_95 = 1.96  # standard deviations of a normal distribution that hold 95 % of it

_MEASURED, _PRIOR = 0.9, 0.3  # share of a term's variance that measuring took away
_UNITS = {"fixed": "s", "weights": "s", "compute": "s/token", "sharpness": None, "head": "s"}
_UNITS |= {"elementwise": "s/token", "behind_prefix": "s/token", "rows_with_logits": "s/row"}
_PER_PAIR = "s/pair"


@dataclass(frozen=True, slots=True)
class Term:
    """One parameter with its 95 % interval."""

    name: str  # of TERMS
    value: float
    low: float
    high: float
    unit: str | None
    expected: float  # before anything but the machine's overall slowness was measured
    source: str  # "measured", "prior", or "between"
    rate: float | None  # the FLOPs or bytes of the term by its time; None where it stands for neither
    rate_unit: str | None  # "FLOP/s" or "B/s"


def terms_of(found: Posterior, guess: ForwardCurve, prior: Prior, work: Work) -> tuple[Term, ...]:
    """The terms of `found`, in the order of TERMS; `guess` is the curve that `prior` expects."""
    errors = np.sqrt(np.diag(found.covariance))
    gained = 1 - errors**2 / np.diag(np.linalg.inv(prior.precision()))
    vector = found.curve.vector()
    low, high = (ForwardCurve.from_vector(vector + sign * NORMAL_95 * errors) for sign in (-1, 1))
    values = zip(*map(astuple, (found.curve, low, high, guess)), gained.tolist(), strict=True)
    return tuple(
        Term(
            name=name,
            value=value,
            low=lower,
            high=upper,
            unit=_UNITS.get(name, _PER_PAIR),
            expected=expected,
            source=_source(gain),
            rate=amount / value if (amount := work.flops.get(name) or work.moved.get(name)) else None,
            rate_unit="FLOP/s" if name in work.flops else "B/s" if name in work.moved else None,
        )
        for name, (value, lower, upper, expected, gain) in zip(TERMS, values, strict=True)
    )


def _source(gained: float) -> str:
    if gained >= _MEASURED:
        return "measured"
    return "prior" if gained < _PRIOR else "between"
