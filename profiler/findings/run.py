"""What the findings of one run are made of, read once: its forwards, options, saturation points, waits."""

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from engine.observer import EventKind
from profiler.findings.size_point import SizePoint, point_of_cost, point_of_report
from profiler.findings.thresholds import Thresholds
from profiler.findings.waits import Waits, waits_by_gaps, waits_by_ledger
from profiler.latency import Spread
from profiler.ledger.report import StallReport
from profiler.tables import TraceLike, frame
from profiler.wording import shortened
from traces.reader import Trace

if TYPE_CHECKING:
    from profiler.saturation_report import SaturationReport

__all__ = ["Run"]

_COLUMNS = (
    *("forward_id", "rank", "mode", "start_ns", "end_ns", "result_end_ns", "overlapped", "graph"),
    *("extend_tokens", "decode_tokens", "running_reqs", "absent_decode_reqs", "waiting_reqs"),
    *("chunk_budget_start_tokens", "stop_reason", "blocked_rid", "chunked_rid", "evicted_pages"),
    *("pages_total", "pages_free", "pages_evictable", "retracted_reqs"),
)


class Run:
    """A trace with what was already found of it. What is not given is computed when it is asked for."""

    def __init__(
        self,
        trace: TraceLike,
        thresholds: Thresholds,
        *,
        stalls: StallReport | None = None,
        itl: Spread | None = None,
        saturation: "SaturationReport | None" = None,
        decode_saturation: "SaturationReport | None" = None,
    ) -> None:
        self.trace = trace
        self.thresholds = thresholds
        self.stalls = stalls
        self.itl = itl
        self._saturation = saturation
        self._decode_saturation = decode_saturation

    @cached_property
    def forwards(self) -> pl.DataFrame:
        """Some columns of `forwards`, in order of rank and forward_id.

        `device_ns` is null where the device interval is unknown; `sat_out` tells forwards that a running
        request sat out for lack of KV. `waiting_decodes` run without a row in the forward, and are not ended
        by the result that is outstanding at its planning.
        """
        table = frame(self.trace, "forwards").select(*_COLUMNS).with_columns(pl.col("rank").fill_null(0))
        if table["rank"].n_unique() > 1 or not table["forward_id"].is_sorted():
            table = table.sort("rank", "forward_id")
        lasting = pl.col("end_ns") >= pl.col("start_ns")
        return self._with_ends(table).with_columns(
            device_ns=pl.when(lasting).then(pl.col("end_ns") - pl.col("start_ns")),
            sat_out=pl.col("forward_id").is_in(self.events(EventKind.SIT_OUT)["forward_id"].implode()),
        )

    def _with_ends(self, table: pl.DataFrame) -> pl.DataFrame:
        """With `waiting_decodes`; a request ends when the result of its last token has been processed."""
        ends = self.requests.select(pl.col("rank").fill_null(0), outstanding_ns="finish_ns").drop_nulls()
        ended = ends.group_by("rank", "outstanding_ns").agg(ending=pl.len().cast(pl.Int64))
        outstanding = pl.when("overlapped").then(pl.col("result_end_ns").shift(1).over("rank"))
        joined = table.with_columns(outstanding_ns=outstanding).join(
            ended, on=["rank", "outstanding_ns"], how="left", maintain_order="left"
        )
        waiting = (pl.col("absent_decode_reqs") - pl.col("ending").fill_null(0)).clip(lower_bound=0)
        return joined.with_columns(waiting_decodes=waiting).drop("outstanding_ns", "ending")

    def events(self, kind: EventKind) -> pl.DataFrame:
        """The events of one kind."""
        return self._events.filter(pl.col("kind") == kind.value)

    @property
    def has_events(self) -> bool:
        """Whether the trace has any events."""
        return not self._events.is_empty()

    @cached_property
    def requests(self) -> pl.DataFrame:
        """The table of that name."""
        return frame(self.trace, "requests")

    def names(self, rids: Iterable[int]) -> list[str]:
        """The user's names of requests, in their order, cut to a length that sentences can hold."""
        wanted = [int(rid) for rid in rids]
        known = self.requests.filter(pl.col("rid").is_in(wanted))
        of = dict(zip(known["rid"], known["name"], strict=True))
        return [shortened(of.get(rid) or str(rid)) for rid in wanted]

    def rows(self, first_id: int, last_id: int) -> pl.DataFrame:
        """Rows of forwards with these ids and between: forward_id, rid, role, extend_len."""
        trace = self.trace
        if isinstance(trace, Trace):  # reads no more than these by its index
            table = trace.read_forwards("rows", first_id, last_id)
        else:
            table = trace.table("rows")
        rows = pl.from_arrow(table.select(["forward_id", "rid", "role", "extend_len"]))
        assert isinstance(rows, pl.DataFrame)
        return rows.filter(pl.col("forward_id").is_between(first_id, last_id), pl.col("rid").is_not_null())

    def flag(self, option: str) -> bool | None:
        """A switch of the engine; None where meta.json does not tell."""
        value = self._options.get(option)
        return value if isinstance(value, bool) else None

    def number(self, option: str) -> float | None:
        """A number of the engine; None where meta.json does not tell, or for none."""
        value = self._options.get(option)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    def text(self, option: str) -> str | None:
        """A name that the engine was given; None where meta.json does not tell."""
        value = self._options.get(option)
        return value if isinstance(value, str) else None

    @property
    def chunk_tokens(self) -> int | None:
        """--chunked-prefill-size; None where chunking is off or the trace does not tell."""
        size = self.number("chunked_prefill_size")
        return int(size) if size is not None and size > 0 else None

    @property
    def page_size(self) -> int:
        """Tokens of a page; 1 where the trace does not tell."""
        return int(self.number("page_size") or 1)

    @cached_property
    def waits(self) -> Waits | None:
        """The longest gap and what is known beside it; None without gaps."""
        if self.stalls is not None and self.itl is not None:
            return waits_by_ledger(self.stalls, self.itl)
        return waits_by_gaps(self.trace, self.stalls, self.thresholds.hidden_wall_ratio)

    @cached_property
    def point(self) -> SizePoint | None:
        """How many tokens fill a forward: by forwards of one prompt, else by a simulated run's own cost."""
        return point_of_report(self._prompt_report) or point_of_cost(self.trace)

    @cached_property
    def decode_point(self) -> SizePoint | None:
        """How many decode rows fill a forward; None where the trace does not tell."""
        report = self._decode_saturation
        if report is None:
            from profiler.saturation_report import decode_report  # loads scipy

            report = decode_report(self.trace)
        return point_of_report(report)

    @property
    def _prompt_report(self) -> "SaturationReport":
        if self._saturation is not None:
            return self._saturation
        from profiler.saturation_report import saturation_report

        return saturation_report(self.trace)

    @cached_property
    def _events(self) -> pl.DataFrame:
        return frame(self.trace, "events")

    @property
    def _options(self) -> dict[str, Any]:
        told = self.trace.meta.get("engine")
        return told if isinstance(told, dict) else {}
