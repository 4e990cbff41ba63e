"""Everything that decides what the Saturation screen shows."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from profiler.advice_choice import VALUES
from profiler.price_rows import Limits, Options, PriceRow
from ui.tui.limit_steps import next_decodes, next_limit

if TYPE_CHECKING:  # they load scipy, which the screen's thread does
    from profiler.advice import Advice
    from profiler.prefix_curve import PrefixCurve
    from profiler.saturation_board import SaturationBoard
    from profiler.saturation_report import SaturationReport

__all__ = ["DECODES", "KNOBS", "POLICIES", "SaturationView"]

POLICIES = {(False, 0): "prefill first", (True, 0): "mixed"}
"""Names of policies without an interval, by mixed and interval."""

DECODES = "decodes"
KNOBS = (*VALUES, DECODES)
"""What the arrows move: limits by their names, and the number of decodes that ride along."""


@dataclass(slots=True)
class SaturationView:
    """The state of the screen. What is None is not there yet, or cannot be had: `lacking` says why.

    `tried` is what was computed, `advice` the same under the limits and with the decodes wanted. `knob` is
    what the arrows move; `selected` is the row that ← and → move, the advised one if None.
    """

    name: str
    meta: Mapping[str, Any]
    board: "SaturationBoard | None" = None
    tried: "Advice | None" = None
    advice: "Advice | None" = None
    modelled: "PrefixCurve | None" = None  # what the cost model makes of sizes that no fit is of
    limits: Limits = field(default_factory=Limits)
    decodes: int | None = None  # in every mixed forward; None: as in the trace
    knob: str | None = None
    selected: Options | None = None
    lacking: str = ""
    working: str = ""
    working_s: float = 0.0
    message: str = ""
    growing: bool = False  # the trace is still being written

    @property
    def progress(self) -> str:
        """What is being computed and for how long, in whole seconds."""
        return f"{self.working} … {self.working_s:.0f} s" if self.working else ""

    @property
    def report(self) -> "SaturationReport | None":
        """The saturation report, once there is a board."""
        return self.board.report if self.board else None

    @property
    def advised(self) -> PriceRow | None:
        """The row to take under the limits."""
        return self.advice.choice.row if self.advice else None

    @property
    def advised_tokens(self) -> int | None:
        """Its chunk size; None for whole prompts, too."""
        return self.advised.options.chunk_tokens if self.advised else None

    @property
    def row(self) -> PriceRow | None:
        """The selected row, else the advised one, else the first."""
        rows = self.advice.rows if self.advice else ()
        chosen = next((row for row in rows if row.options == self.selected), self.advised)
        return chosen or (rows[0] if rows else None)

    @property
    def selected_tokens(self) -> int | None:
        """Chunk size of the selected row."""
        return self.row.options.chunk_tokens if self.row else None

    @property
    def policy(self) -> tuple[bool, int]:
        """Mixed and interval of the rows shown: those of the selected row."""
        if self.row is None:
            return (False, 0)
        options = self.row.options
        if options.chunk_tokens is None and self.selected is not None:
            return self.selected.mixed, self.selected.interval
        return options.mixed, options.interval

    @property
    def rows(self) -> tuple[PriceRow, ...]:
        """Rows of that policy and of whole prompts, by chunk size; whole prompts last."""
        rows = self.advice.rows if self.advice else ()
        found = [r for r in rows if r.options.chunk_tokens is None or _policy(r) == self.policy]
        return tuple(sorted(found, key=lambda row: row.options.chunk_tokens or float("inf")))

    @property
    def largest_margin(self) -> float:
        """The most that is added to a number shown before it is held against its limit, as a share.

        0 without limits.
        """
        if self.advice is None:
            return 0.0
        names = [name for name in VALUES if getattr(self.limits, name) is not None]
        margins = self.advice.margins
        return max((margins.of(row, name) for row in self.rows for name in names), default=0.0)

    def move(self, steps: int) -> None:
        """Select the row so many below."""
        rows, row = self.rows, self.row
        if row is not None:
            at = min(max(rows.index(row) + steps, 0), len(rows) - 1)
            self.selected = rows[at].options

    def next_policy(self) -> None:
        """The same chunk size under the next policy that has it."""
        if self.advice is None or self.row is None:
            return
        policies = sorted({_policy(row) for row in self.advice.rows})
        mixed, interval = policies[(policies.index(self.policy) + 1) % len(policies)]
        chunk = self.row.options.chunk_tokens
        same = [r for r in self.advice.rows if _policy(r) == (mixed, interval)]
        same = [r for r in same if r.options.chunk_tokens == chunk] or same
        self.selected = same[0].options

    def next_knob(self) -> None:
        """The next knob for the arrows, and after the last one none."""
        names = [None, *KNOBS]
        self.knob = names[(names.index(self.knob) + 1) % len(names)]

    def turn(self, steps: int) -> None:
        """The chosen knob up or down, else the first; a new limit begins at what the selected row takes."""
        if self.knob is None:
            self.next_knob()
        if self.knob == DECODES:
            self.set(decodes=next_decodes(self.decodes, steps))
        elif self.knob is not None:
            now: float | None = getattr(self.limits, self.knob)
            start = None if self.row is None else getattr(self.row, VALUES[self.knob])
            self.set(limits=replace(self.limits, **{self.knob: next_limit(now, steps, start)}))

    def reset(self) -> None:
        """No limit, or the trace's own decodes, where one of them is chosen."""
        if self.knob == DECODES:
            self.set(decodes=None)
        elif self.knob is not None:
            self.set(limits=replace(self.limits, **{self.knob: None}))

    def set(self, **changes: Any) -> None:
        """Change `tried`, `limits` or `decodes`, choose anew, and go back to the advised row."""
        for name, value in changes.items():
            setattr(self, name, value)
        self.selected, self.advice = None, self.tried
        if self.advice is not None and self.decodes is not None:
            from profiler.riding import riding  # loads scipy, as the advice did

            self.advice = riding(self.advice, self.decodes)
        if self.advice is not None:
            self.advice = self.advice.under(self.limits)

    def broken(self, row: PriceRow) -> frozenset[str]:
        """Limits that a row breaks with the margins of the cost model, as the choice takes them."""
        if self.advice is None:
            return frozenset()
        return frozenset(row.breaks(self.advice.margins.tightened(row, self.limits)))


def _policy(row: PriceRow) -> tuple[bool, int]:
    return row.options.mixed, row.options.interval
