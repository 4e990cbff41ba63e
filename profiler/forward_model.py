"""`ForwardModel`: how long a forward takes, fitted to measured forwards, and how far it can be trusted."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arithmetic import ForwardSums
from engine.batch import ForwardMode
from engine.errors import ConfigError
from profiler.forward_features import Forwards, features_of, forwards_of, joined
from profiler.forward_fit import Groups, fit_curve, grouped
from profiler.forward_fit_curve import TERMS, ForwardCurve
from profiler.forward_fit_evidence import Reach, Residuals, Spread, reach_of, residuals_of, spread_of
from profiler.forward_fit_host import HostTime, host_time
from profiler.forward_fit_misfit import SizeMisfit, misfit_at, misfits_of
from profiler.forward_fit_prior import Rates, Work, expected, prior_of, work_of
from profiler.forward_fit_setting import Setting, shared_setting
from profiler.forward_fit_terms import NORMAL_95, Term, terms_of
from profiler.tables import TraceLike

__all__ = ["ForwardModel", "fit_forward_model"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ForwardModel:
    """A fitted `ForwardCurve` with its evidence; docs/metrics.md, "Model of a forward", defines it."""

    curve: ForwardCurve
    terms: tuple[Term, ...]
    residuals: tuple[Residuals, ...]  # of all forwards, then of the layouts and the prefixes that have any
    spread: tuple[Spread, ...]  # of the modes that have forwards
    reach: Reach
    host: HostTime
    setting: Setting
    rates: Rates  # peaks that the expectations were reckoned with
    slowness: float  # of measured times against these; the expectations were multiplied by it
    misfit: float  # standard deviation of log time that no scatter of equal forwards explains
    misfits: tuple[SizeMisfit, ...]  # the same by the tokens of a forward
    num_forwards: int
    num_groups: int
    covariance: tuple[tuple[float, ...], ...]  # of the curve's vector

    def seconds(self, sums: ForwardSums) -> float:
        """Device time of a forward with these sums."""
        return self.curve.one(sums)

    def interval(self, sums: ForwardSums) -> tuple[float, float]:
        """95 % interval of `seconds`: what the terms leave open, and the misfit of forwards of this size."""
        features = features_of(sums)[None]
        changes = self.curve.sensitivity(features)[0]
        misfit = misfit_at(self.misfits, sums.tokens)
        error = math.sqrt(changes @ np.array(self.covariance) @ changes + misfit**2)
        middle, factor = self.seconds(sums), math.exp(NORMAL_95 * error)
        return middle / factor, middle * factor

    def term(self, name: str) -> Term:
        """The term of that name, of TERMS."""
        return self.terms[TERMS.index(name)]

    def spread_of(self, mode: ForwardMode) -> Spread | None:
        """The spread of a mode; None if no fitted forward had it."""
        return next((spread for spread in self.spread if spread.mode == mode.name), None)

    def as_json(self) -> dict[str, Any]:
        """All that there is to know of it, as plain values."""
        return {
            "setting": self.setting.label,
            "provenance": self.setting.provenance,
            "forwards": self.num_forwards,
            "terms": [asdict(term) for term in self.terms],
            "residuals": [asdict(part) for part in self.residuals],
            "spread": [asdict(part) for part in self.spread],
            "reach": asdict(self.reach),
            "host": asdict(self.host),
            "expected_from": asdict(self.rates),
            "slowness": self.slowness,
            "misfit": self.misfit,
            "misfits": [asdict(part) for part in self.misfits],
        }


def fit_forward_model(traces: TraceLike | Sequence[TraceLike], *, rates: Rates | None = None) -> ForwardModel:
    """The model of all forwards of one or several traces that have a device time and that no profiler slowed.

    `rates` are peaks to expect times from, instead of those that the traces tell. Raises ConfigError if the
    traces differ in model, element type or hardware, tell no model, or have no forward that can be used.
    """
    of = list(traces) if isinstance(traces, Sequence) else [traces]
    setting = shared_setting(of)
    forwards = joined([forwards_of(trace, setting.shape) for trace in of])
    if not len(forwards):
        raise ConfigError("no forward has a device time and known rows: record a run that tells them")
    work = work_of(setting.shape, setting.element_bytes)
    rates = rates or setting.rates or _rates_seen(forwards, work)
    groups = grouped(forwards)
    guess = expected(work, rates, setting.shape.num_layers)
    slowness = _slowness(guess, groups)
    guess = guess.slower(slowness)
    prior = prior_of(guess)
    found = fit_curve(groups, prior, guess)
    misses = np.log(forwards.seconds / found.curve.seconds(forwards.features))
    return ForwardModel(
        curve=found.curve,
        terms=terms_of(found, guess, prior, work),
        residuals=residuals_of(forwards, misses),
        spread=spread_of(forwards, np.exp(misses)),
        reach=reach_of(forwards),
        host=host_time(of),
        setting=setting,
        rates=rates,
        slowness=slowness,
        misfit=found.misfit,
        misfits=misfits_of(groups, found.curve.seconds(groups.features), found.misfit),
        num_forwards=len(forwards),
        num_groups=len(groups),
        covariance=tuple(tuple(row) for row in found.covariance.tolist()),
    )


def _rates_seen(forwards: Forwards, work: Work) -> Rates:
    """The best rates of the forwards themselves, where nothing is known of the machine."""
    flops = forwards.column("tokens") * work.flops["compute"]
    read = work.moved["weights"] + forwards.column("head") * work.moved["head"]
    moved = read + forwards.column("pairs_decode") * work.moved["pairs_decode"]
    return Rates(
        float((flops / forwards.seconds).max()),
        float((moved / forwards.seconds).max()),
        "best rates of the forwards themselves",
    )


def _slowness(curve: ForwardCurve, groups: Groups) -> float:
    """Measured times against a curve's: the middle one of the layouts' medians."""
    ratios = groups.seconds / curve.seconds(groups.features)
    medians = [np.median(ratios[groups.layout == layout]) for layout in np.unique(groups.layout)]
    return float(np.median(medians))
