"""What a ledger says, in the words of every view: the answer first, and a row's cells."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from profiler.ledger.report import StallGroup, StallReport
from ui.part_words import causes_ns
from ui.si_words import percent
from ui.words import clipped, count, seconds

__all__ = ["StallsAnswer", "culprit_shares", "names_words", "part_of", "stalls_answer"]

_RUN = 3  # names that follow each other from which on they are written r1–r3
_OWN = "own_decode"
_CHARGED = ("others_prefill", "mixed_extra")  # causes that are somebody's prompt
_WENT_TO = {"no_kv": "lack of KV", "deferred": "the interval", "not_told": "what the trace does not tell"}
_NUMBERED = re.compile(r"(.*?)(0|[1-9][0-9]{0,14})", re.DOTALL)

Show = Callable[[str], str]


class StallsAnswer(NamedTuple):
    """The answer's clauses, without their stops, so that a view may weigh them; None says nothing."""

    cause: str
    culprit: str | None
    worst: str | None

    @property
    def text(self) -> str:
        """All of it on one line."""
        head = "; ".join(clause for clause in (self.cause, self.culprit) if clause is not None)
        return f"{head}. {self.worst}." if self.worst is not None else f"{head}."


def stalls_answer(report: StallReport, show: Show = clipped) -> StallsAnswer:
    """What most of the waiting went to, who cost most, and the longest wait: a sum says little without it.

    Nobody is named where most of it was no prompt's doing.
    `show` makes a request's name fit to stand in a line.
    """
    if not report.gaps:
        return StallsAnswer(
            "No request gave two tokens: there is no wait between tokens to explain", None, None
        )
    lost = {cause: ns for cause, ns in causes_ns(report.by_kind).items() if cause.key != _OWN and ns > 0}
    worst = None if report.longest is None else f"Worst token: {seconds(report.longest.gap_ns / 1e9)}"
    if not lost:
        whole = seconds(report.waiting_ns / 1e9)
        return StallsAnswer(f"All {whole} of waiting went to own decode", None, worst)
    most = max(lost, key=lambda cause: lost[cause])
    amount = part_of(lost[most], report.waiting_ns)
    cause = f"{amount} of waiting went to {_WENT_TO.get(most.key, most.words)}"
    return StallsAnswer(cause, _culprit(report, show) if most.key in _CHARGED else None, worst)


def _culprit(report: StallReport, show: Show) -> str | None:
    """Who cost others most."""
    if not report.culprits:
        return None
    first = report.culprits[0]
    alone = " alone" if len(report.culprits) > 1 else ""
    return f"{show(first.name)}{alone} cost {seconds(first.cost_ns / 1e9)}"


def part_of(part_ns: int, whole_ns: int) -> str:
    """Two durations in the unit of the longer one: 9.59 of 17.51 s, 0.3 of 24.6 ms."""
    if round(whole_ns / 1e6) >= 1000:
        return f"{part_ns / 1e9:,.2f} of {whole_ns / 1e9:,.2f} s"
    return f"{part_ns / 1e6:.1f} of {whole_ns / 1e6:.1f} ms"


def names_words(names: Sequence[str], show: Show = clipped, most: int = 3) -> str:
    """Names in as few words as tell them: r1–r6; r1, r4; a, b, c and 12 more."""
    pieces = [piece for _, run in groupby(enumerate(names), key=_of_run) for piece in _pieces(run, show)]
    kept, left = pieces[:most], sum(size for _, size in pieces[most:])
    text = ", ".join(words for words, _ in kept)
    return f"{text} and {count(left)} more" if left else text


def _of_run(item: tuple[int, str]) -> tuple[str, int, bool]:
    """Equal for names that differ in a number that goes up by one from each to the next."""
    at, text = item
    match = _NUMBERED.fullmatch(text)
    return (text, at, False) if match is None else (match[1], int(match[2]) - at, True)


def _pieces(run: Iterable[tuple[int, str]], show: Show) -> list[tuple[str, int]]:
    """Words of a run of names, each with how many names it stands for."""
    names = [text for _, text in run]
    if len(names) >= _RUN:
        return [(f"{show(names[0])}–{show(names[-1])}", len(names))]
    return [(show(text), 1) for text in names]


def culprit_shares(group: StallGroup, show: Show = clipped, most: int = 2) -> str:
    """Whose chunks filled a gap, as shares of it: r7 76 %, r8 21 %."""
    named, left = group.culprits[:most], group.culprits[most:]
    whole_ns = max(1, group.gap_ns)
    shares = [f"{show(culprit.name)} {percent(culprit.device_ns / whole_ns)}" for culprit in named]
    if left:
        rest_ns = sum(culprit.device_ns for culprit in left)
        shares.append(f"{count(len(left))} more {percent(rest_ns / whole_ns)}")
    return ", ".join(shares)
