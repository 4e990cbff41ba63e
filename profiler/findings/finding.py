"""One finding: what was seen, how sure the numbers are, and what would mend it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Finding", "FindingKind", "Severity"]


class FindingKind(StrEnum):
    """Each has an entry of its value's name in docs/metrics.md, "Findings"."""

    PREFILL_FIRST_STARVATION = "prefill_first_starvation"
    P99_HIDES_THE_WALL = "p99_hides_the_wall"
    CHUNK_SIZE = "chunk_size"  # far above or below the saturation point, or near its best
    FRAGMENTED_PREFILLS = "fragmented_prefills"  # tiny prefills that break decode
    KV_LIMITED_ADMISSION = "kv_limited_admission"
    RETRACTION_STORM = "retraction_storm"
    PREFIX_CACHE_THRASH = "prefix_cache_thrash"
    HOST_BOUND_DECODE = "host_bound_decode"
    DECODE_BATCH_PAST_SATURATION = "decode_batch_past_saturation"


class Severity(StrEnum):
    """How a finding is shown."""

    BAD = "bad"
    WATCH = "watch"
    FINE = "fine"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a trace shows. Ids are those of the trace; numbers carry their units in their names."""

    kind: FindingKind
    severity: Severity
    title: str  # "Prefill-first starvation"
    sentence: str  # what happened, with numbers
    evidence: str  # forwards, shares and the threshold that they passed
    numbers: Mapping[str, float | int | None]
    threshold: tuple[str, float]  # the option's name and its value
    forward_ids: tuple[int, ...]  # the forwards that show it, at most a few
    rids: tuple[int, ...]  # the requests concerned, of a silence those that waited, at most a few
    mend: str | None  # a sentence that names the option
    option: tuple[str, ...] | None  # as the command line takes it; a name alone where its value is open
    at_ns: int | None  # an instant that shows it
    lost_ns: int | None  # decode time lost to it: what findings of one severity are ordered by
