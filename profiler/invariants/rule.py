"""What a rule is, and what it is held against."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import polars as pl
import polars.selectors as cs

from profiler.invariants.expressions import ATTEMPT, FORWARD
from profiler.invariants.page_replay import PageReplay, replay_pages
from profiler.tables import TraceLike, frame

__all__ = ["Finding", "Rule", "Tables", "ended_cleanly", "untold_options"]

EVENT_COLUMNS = ("t_ns", "forward_id", *ATTEMPT, "kind", "pages", "tokens", "detail")


class Finding(NamedTuple):
    """What a rule found: how much it looked at, and the places where it does not hold.

    `broken` has `forward_id`, `rid` and `attempt` where they apply; every other column is a number to show.
    """

    checked: int
    broken: pl.DataFrame


@dataclass(frozen=True, slots=True)
class Rule:
    """A named statement about a trace.

    `find` returns a text, the reason, where the rule cannot be checked although its columns are there. A rule
    `of_scheduler` is about this engine's decisions; the others hold whoever scheduled.
    """

    name: str
    meaning: str
    needs: tuple[str, ...]  # "table.column"
    find: "Callable[[Tables], Finding | str]"
    of_scheduler: bool = True


@dataclass(frozen=True)
class Tables:
    """A trace's tables with integers as int64, so that differences may be negative."""

    meta: Mapping[str, Any]
    forwards: pl.DataFrame  # in order of rank and forward
    rows: pl.DataFrame  # in order of rank and forward, without those whose forward was not written any more
    requests: pl.DataFrame
    events: pl.DataFrame  # in the order in which things happened
    pages: pl.DataFrame

    @staticmethod
    def of(trace: TraceLike) -> "Tables":
        """Read what rules need. Requests come first and rows last, since a growing trace goes on growing."""
        requests = _wide(frame(trace, "requests"))
        events = _wide(frame(trace, "events").select(*EVENT_COLUMNS))
        forwards = _wide(frame(trace, "forwards")).sort(FORWARD, maintain_order=True)
        rows = _wide(frame(trace, "rows")).sort(FORWARD, maintain_order=True)
        pages = _wide(frame(trace, "pages"))
        if not ended_cleanly(trace.meta):
            written = pl.col("forward_id") <= pl.lit(forwards["forward_id"].max(), dtype=pl.Int64)
            rows, pages = rows.filter(written), pages.filter(written)
        return Tables(trace.meta, forwards, rows, requests, events, pages)

    @cached_property
    def decided(self) -> pl.DataFrame:
        """The forwards whose decisions are all among the events.

        These are all; of a recording cut short those before the last that an event names.
        """
        if ended_cleanly(self.meta):
            return self.forwards
        last = self.events.group_by("rank").agg(last_told=pl.col("forward_id").max())
        told = self.forwards.join(last, on="rank", how="left", maintain_order="left")
        return told.filter(pl.col("forward_id") < pl.col("last_told")).drop("last_told")

    @cached_property
    def page_replay(self) -> PageReplay:
        """Page owners after each forward."""
        return replay_pages(self.pages, self.forwards)

    def option(self, name: str) -> Any:
        """An option of the engine as meta.json has it, None where it does not tell."""
        engine = self.meta.get("engine")
        return engine.get(name) if isinstance(engine, Mapping) else None

    def table(self, name: str) -> pl.DataFrame:
        """One of the tables by its name."""
        table = getattr(self, name)
        assert isinstance(table, pl.DataFrame)
        return table

    def lacks(self, needs: Sequence[str]) -> tuple[str, ...]:
        """Which of these the trace does not have: meta calls it missing, or says nothing and all is null."""
        return tuple(need for need in needs if self._lacks(*need.split(".")))

    def _lacks(self, table: str, column: str) -> bool:
        state = self.meta.get("columns", {}).get(table, {}).get(column)
        values = self.table(table)[column]
        unknown = len(values) > 0 and values.null_count() == len(values)
        return state == "missing" or (state is None and unknown)


def ended_cleanly(meta: Mapping[str, Any]) -> bool:
    """Whether the writer itself ended and sealed the trace, so that nothing can be missing at its end."""
    seal = meta.get("sealed")
    return isinstance(seal, Mapping) and seal.get("clean_end") is True


def untold_options(tables: Tables, *names: str) -> str | None:
    """Why a rule that asks for these options cannot be checked; None where meta.json tells them all."""
    untold = [name for name in names if tables.option(name) is None]
    return f"meta.json does not tell the engine's {', '.join(untold)}" if untold else None


def _wide(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(cs.integer().cast(pl.Int64))
