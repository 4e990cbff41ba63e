"""The sentences at the top of the Compare page: the effect first, then its cause, both with numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

from profiler.compare import CHUNKED, MIXED, WHOLE, compare
from profiler.sentences import headline, waited, who_waits, why_waited
from ui.web.names import with_shown_names
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
    shown = compared(runs)
    by_policy = {run.policy: run for run in shown}
    once = len(by_policy) == len(shown)
    forwards = sum(run.timeline.num_forwards for run in shown)
    if once and all(policy in by_policy for policy in _POLICIES) and forwards <= _SUMMARISED:
        whole, chunked, mixed = (by_policy[policy].timeline.summary for policy in _POLICIES)
        more = compare(whole, chunked, mixed).sentences
        return Answer(headline(whole, chunked, mixed), who_waits(chunked, mixed), more)
    if not forwards:
        return Answer(_empty(shown), _what_now(shown))
    index, gap = worst_gap(runs)
    if gap is None:
        return Answer(why_no_gap(runs), _size(shown))
    gap, run = with_shown_names(gap), runs[index]
    where = f" in {run.heading}" if len(shown) > 1 else ""
    return Answer(f"{waited(gap)}{where}.", why_waited(gap))


def why_no_gap(runs: Sequence[Run]) -> str:
    """Why there is no gap to show: none happened, or the traces do not tell of tokens."""
    if any(run.timeline.kpis.output_tokens for run in compared(runs)):
        return "No request gave two tokens, so nobody waited between tokens."
    return "No token is recorded, so who waited for whom is not known."


def _empty(runs: Sequence[Run]) -> str:
    return "The trace holds no forward." if len(runs) == 1 else "The traces hold no forward."


def _what_now(runs: Sequence[Run]) -> str:
    if any(run.timeline.trace.live for run in runs):
        return "The picture appears with the first one."
    return "What is there is on the Trace page."


def _size(runs: Sequence[Run]) -> str:
    return ", ".join(f"{run.letter}: {plural(run.timeline.num_forwards, 'forward')}" for run in runs)
