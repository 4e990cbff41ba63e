"""The runs that a session shows: their letters, titles and options, and how each one's writer fares."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from string import ascii_uppercase
from typing import Any

from engine.config import EngineConfig
from profiler.compare import CHUNKED, MIXED, WHOLE
from profiler.timeline.timeline import Timeline
from ui.web.names import shown
from ui.words import UNKNOWN

__all__ = ["MOST_RUNS", "Run", "Status", "badge", "compared", "make_runs", "provenance", "status"]

MOST_RUNS = 6
_DEMO_TITLES = {WHOLE: "Whole prompt", CHUNKED: "Chunked", MIXED: "Chunked + mixed"}
_ALWAYS = ("chunked_prefill_size", "enable_mixed_chunk")  # what policies are about, also when all agree


class Status(StrEnum):
    """How the writer of a trace fares."""

    LIVE = "live"
    ENDED = "ended"
    DIED = "writer died"


@dataclass(frozen=True, slots=True)
class Run:
    """One of the traces of a session."""

    index: int
    letter: str
    title: str
    policy: str | None  # of the demo
    options: str  # as SGLang's command line takes them
    sweep: bool  # forwards measured one by one: nothing to see on a time axis
    timeline: Timeline

    @property
    def heading(self) -> str:
        """Letter and title: A Whole prompt."""
        return f"{self.letter} {self.title}"


def make_runs(timelines: Sequence[Timeline]) -> tuple[Run, ...]:
    """The runs of a session, in the order given."""
    metas = [timeline.trace.meta for timeline in timelines]
    sweeps = [_is_sweep(timeline) for timeline in timelines]
    titles = _titles(timelines)
    options = [
        _options(meta, _same_kind(metas, sweeps, sweep)) for meta, sweep in zip(metas, sweeps, strict=True)
    ]
    return tuple(
        Run(i, ascii_uppercase[i], titles[i], _policy(metas[i]), options[i], sweeps[i], timeline)
        for i, timeline in enumerate(timelines)
    )


def compared(runs: Sequence[Run]) -> tuple[Run, ...]:
    """The runs that share the time axis: all but sweeps, or all where there is nothing but sweeps."""
    return tuple(run for run in runs if not run.sweep) or tuple(runs)


def status(timeline: Timeline) -> Status:
    """Whether the trace still grows, was ended by its writer, or lost it."""
    trace = timeline.trace
    if trace.sealed:
        return Status.ENDED if trace.meta["sealed"].get("clean_end") else Status.DIED
    return Status.LIVE if trace.live else Status.DIED


def provenance(timeline: Timeline) -> str:
    """Where a run's numbers come from: simulated · H200."""
    meta = timeline.trace.meta
    hardware = meta.get("hardware")
    name = hardware.get("name") if isinstance(hardware, Mapping) else None
    source = str(meta.get("provenance") or f"provenance {UNKNOWN}")
    return f"{source} · {shown(str(name))}" if name else source


def badge(runs: Sequence[Run]) -> str:
    """Where the numbers of all runs come from, each source once."""
    return " + ".join(dict.fromkeys(provenance(run.timeline) for run in runs))


def _policy(meta: Mapping[str, Any]) -> str | None:
    workload = meta.get("workload")
    policy = workload.get("demo") if isinstance(workload, Mapping) else None
    return policy if isinstance(policy, str) else None


def _is_sweep(timeline: Timeline) -> bool:
    """A closed loop in which no request gave two tokens."""
    workload = timeline.trace.meta.get("workload")
    closed = isinstance(workload, Mapping) and workload.get("kind") == "closed"
    return closed and timeline.worst_gap() is None


def _titles(timelines: Sequence[Timeline]) -> list[str]:
    """The demo's policy or the file's stem; with the folder where that alone is not unique."""
    policies = [_policy(timeline.trace.meta) for timeline in timelines]
    stems = [timeline.path.stem for timeline in timelines]
    plain = [_DEMO_TITLES.get(p or "", p or stem) for p, stem in zip(policies, stems, strict=True)]
    return [
        shown(title if plain.count(title) == 1 else f"{timeline.path.resolve().parent.name}/{stem}")
        for title, timeline, stem in zip(plain, timelines, stems, strict=True)
    ]


def _same_kind(
    metas: Iterable[Mapping[str, Any]], sweeps: Iterable[bool], sweep: bool
) -> list[Mapping[str, Any]]:
    return [meta for meta, is_sweep in zip(metas, sweeps, strict=True) if is_sweep == sweep]


def _options(meta: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> str:
    """A run's engine options: those about chunks, and all that differ between runs."""
    engines = [_engine(other) for other in others]
    mine = _engine(meta)
    names = [field.name for field in fields(EngineConfig)]
    wanted = [
        name for name in names if name in _ALWAYS or len({repr(engine.get(name)) for engine in engines}) > 1
    ]
    return " ".join(option for name in wanted if (option := _option(name, mine.get(name))))


def _engine(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    engine = meta.get("engine")
    return engine if isinstance(engine, Mapping) else {}


def _option(name: str, value: object) -> str:
    flag = f"--{name.replace('_', '-')}"
    if value is None or value is False:
        return ""
    return flag if value is True else f"{flag} {shown(str(value))}"
