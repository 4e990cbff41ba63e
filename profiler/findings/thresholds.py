"""From which number on something counts as a finding. docs/metrics.md, "Findings", has the reasons."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields

from engine.errors import ConfigError

__all__ = ["Thresholds", "thresholds"]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """A finding is made where a number reaches its threshold. Shares are of 1; ratios have no unit."""

    starvation_forwards: int = 8  # prefill forwards in a row while decodes wait
    starvation_ratio: float = 20.0  # their device time / the median decode forward's
    hidden_wall_ratio: float = 5.0  # longest gap / p99 of gaps
    chunk_share: float = 0.9  # of the plateau, that a chunk must reach
    chunk_excess: float = 8.0  # tokens of a forward / upper end of the saturation point's interval
    fragment_share: float = (
        0.25  # tokens of a forward / those that would fill it: below this it is a fragment
    )
    fragment_forwards: int = 8  # fragments that interrupt decodes
    fragment_time_share: float = 0.05  # of the time in which decodes ran or waited for fragments
    kv_limited_share: float = 0.1  # of the forwards
    retractions_per_request: float = 0.1  # retractions / requests that ended
    recomputed_share: float = 0.1  # of all prompt tokens computed
    thrash_share: float = 0.1  # of all prompt tokens computed
    host_share: float = 0.2  # of the time between the ends of consecutive decode forwards
    past_saturation_share: float = 0.2  # of the device time of decode forwards


def thresholds(pairs: Mapping[str, str]) -> Thresholds:
    """Thresholds with those of `pairs` (a name and its value as text) set; dashes count as underscores.

    Raises ConfigError, one line, for a name that is none and for a value that is no number above 0.
    """
    kinds = {each.name: each.type for each in fields(Thresholds)}
    given: dict[str, float] = {}
    for told, text in pairs.items():
        name = told.replace("-", "_")
        if name not in kinds:
            raise ConfigError(f"--threshold {told!r} is not known: give one of {', '.join(kinds)}")
        given[name] = _value(name, text, whole=kinds[name] is int)
    return Thresholds(**given)  # type: ignore[arg-type]  # those that are whole are


def _value(name: str, text: str, *, whole: bool) -> float:
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        value = 0
    if not 0 < value < math.inf:
        kind = "a whole number" if whole else "a number"
        raise ConfigError(f"--threshold {name}={text!r}: give {kind} above 0")
    return value
