"""The sentences at the top of the Compare page: the effect first, then its cause, both with numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from profiler.compare import CHUNKED, MIXED, WHOLE, compare
from profiler.open_silences import OpenSilences
from profiler.sentences import headline, still_silent, waited, who_holds, who_waits, why_waited
from ui.web.names import shown, with_shown_names
from ui.web.places import worst_gap
from ui.web.runs import Run, compared
from ui.words import plural

__all__ = ["Answer", "answer", "why_no_gap"]

_POLICIES = (WHOLE, CHUNKED, MIXED)
_SUMMARISED = 200_000  # forwards of all runs up to which a full summary is quick enough for a first picture


@dataclass(frozen=True, slots=True)
class Answer:
    """What a page says first, and what it says further."""

    effect: str
    cause: str
    more: tuple[str, ...] = ()


def answer(runs: Sequence[Run]) -> Answer:
    """Of the demo's three policies, each there once, how they compare; else the longest gap in words."""
    drawn = compared(runs)
    by_policy = {run.policy: run for run in drawn}
    once = len(by_policy) == len(drawn)
    forwards = sum(run.timeline.num_forwards for run in drawn)
    if once and all(policy in by_policy for policy in _POLICIES) and forwards <= _SUMMARISED:
        whole, chunked, mixed = (by_policy[policy].timeline.summary for policy in _POLICIES)
        more = compare(whole, chunked, mixed).sentences
        return Answer(headline(whole, chunked, mixed), who_waits(chunked, mixed), more)
    if not forwards:
        return Answer(_empty(drawn), _what_now(drawn))
    index, gap = worst_gap(runs)
    silent = _silent(drawn)
    if silent is not None and (gap is None or silent[1].longest_ns > gap.gap_ns):
        found = _with_shown_names(silent[1])
        return Answer(f"{still_silent(found)}{_where(silent[0], drawn)}.", who_holds(found))
    if gap is None:
        return Answer(why_no_gap(runs), _size(drawn))
    gap = with_shown_names(gap)
    return Answer(f"{waited(gap)}{_where(runs[index], drawn)}.", why_waited(gap))


def why_no_gap(runs: Sequence[Run]) -> str:
    """Why there is no gap to show: none happened, or the traces do not tell of tokens."""
    if any(run.timeline.kpis.output_tokens for run in compared(runs)):
        return "No request gave two tokens, so nobody waited between tokens."
    return "No token is recorded, so who waited for whom is not known."


def _silent(runs: Sequence[Run]) -> tuple[Run, OpenSilences] | None:
    """The run with the longest silence that has not ended, and who is silent there."""
    found = [(run, silent) for run in runs if (silent := run.timeline.open_silences) is not None]
    return max(found, key=lambda each: each[1].longest_ns, default=None)


def _with_shown_names(found: OpenSilences) -> OpenSilences:
    half_done = None if found.half_done is None else shown(found.half_done)
    return replace(found, name=shown(found.name), half_done=half_done)


def _where(run: Run, runs: Sequence[Run]) -> str:
    return f" in {run.heading}" if len(runs) > 1 else ""


def _empty(runs: Sequence[Run]) -> str:
    return "The trace holds no forward." if len(runs) == 1 else "The traces hold no forward."


def _what_now(runs: Sequence[Run]) -> str:
    if any(run.timeline.trace.live for run in runs):
        return "The picture appears with the first one."
    return "What is there is on the Trace page."


def _size(runs: Sequence[Run]) -> str:
    return ", ".join(f"{run.letter}: {plural(run.timeline.num_forwards, 'forward')}" for run in runs)
