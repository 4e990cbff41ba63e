"""The Saturation screen: charts as soon as forwards are fitted, prices when every option has been tried."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import Screen

from engine.errors import EngineError
from profiler.timeline.timeline import Timeline
from traces.errors import TraceError
from traces.reader import Trace, open_trace
from ui.tui.basis_page import basis_page
from ui.tui.canvas import Canvas
from ui.tui.colours import Inks
from ui.tui.overlays import LinesOverlay, overlay_cells
from ui.tui.saturation_help import saturation_help
from ui.tui.saturation_page import compose_saturation
from ui.tui.saturation_view import SaturationView

if TYPE_CHECKING:
    from profiler.advice import Advice
    from profiler.prefix_curve import PrefixCurve
    from profiler.saturation_board import SaturationBoard

__all__ = ["Fitted", "Priced", "SaturationScreen"]


TICK_S = 0.5
FITTING, PRICING = "fitting forwards", "trying every option on the workload"


class Fitted(Message):
    """The board is there, or why not."""

    def __init__(self, board: "SaturationBoard | None", lacking: str = "", *, growing: bool = False) -> None:
        super().__init__()
        self.board, self.lacking, self.growing = board, lacking, growing


class Priced(Message):
    """The advice is there, with the curve of its cost model, or why not."""

    def __init__(
        self, advice: "Advice | None", modelled: "PrefixCurve | None" = None, lacking: str = ""
    ) -> None:
        super().__init__()
        self.advice, self.modelled, self.lacking = advice, modelled, lacking


class SaturationScreen(Screen[None]):
    """Owns its view, and keeps it while another screen is shown.

    It opens the trace anew, so that no other thread reads by the same object. `clock` gives seconds.
    """

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1,escape", "app.show('Replay')"),
        Binding("2", "app.show('Stalls')"),
        Binding("right", "move(1)"),
        Binding("left", "move(-1)"),
        Binding("p", "policy"),
        Binding("l", "next_knob"),
        Binding("up", "turn(1)"),
        Binding("down", "turn(-1)"),
        Binding("0,backspace,delete", "reset"),
        Binding("tab", "panel"),
        Binding("enter", "basis"),
        Binding("u", "update"),
        Binding("question_mark", "help"),
    ]

    def __init__(self, timeline: Timeline, inks: Inks, clock: Callable[[], float]) -> None:
        super().__init__()
        trace = timeline.trace
        self._path: Path = trace.path
        self._inks = inks
        self._clock = clock
        self._began_s = clock()
        self._prices_first = False
        self.view = SaturationView(trace.path.name.removesuffix(".chunkscope"), trace.meta)

    def compose(self) -> ComposeResult:
        """The canvas."""
        yield Canvas(self._inks)

    def on_mount(self) -> None:
        """Begin to compute, and tell how long it takes."""
        self.set_interval(TICK_S, self.tick)
        self._begin()

    def on_screen_resume(self) -> None:
        """Show what came while another screen was shown."""
        self.paint()

    def tick(self) -> None:
        """Tell how long it takes."""
        if self.view.working and self.is_current:
            self.view.working_s = self._clock() - self._began_s
            self.paint()

    def on_resize(self) -> None:
        """Compose anew for the new size."""
        self.paint()

    def paint(self) -> None:
        """Compose the view and show what changed of it."""
        width, height = self.size
        if width and height:
            lines = compose_saturation(self.view, width, height, prices_first=self._prices_first)
            self.query_one(Canvas).show(lines)

    def on_fitted(self, event: Fitted) -> None:
        """Draw the charts."""
        self.view.board, self.view.lacking, self.view.growing = event.board, event.lacking, event.growing
        self.view.working = "" if event.board is None else PRICING
        self.paint()

    def on_priced(self, event: Priced) -> None:
        """Show the prices."""
        self.view.lacking, self.view.modelled, self.view.working = event.lacking, event.modelled, ""
        self.view.set(tried=event.advice)
        self.paint()

    def action_move(self, steps: int) -> None:
        """The next larger chunk (1) or smaller (-1)."""
        self._change(lambda: self.view.move(steps))

    def action_policy(self) -> None:
        """The next policy."""
        self._change(self.view.next_policy)

    def action_next_knob(self) -> None:
        """The next limit for the arrows, or the decodes."""
        self._change(self.view.next_knob)

    def action_turn(self, steps: int) -> None:
        """What is chosen up (1) or down (-1)."""
        self._change(lambda: self.view.turn(steps))

    def action_reset(self) -> None:
        """Take the chosen limit away."""
        self._change(self.view.reset)

    def action_panel(self) -> None:
        """Where there is room for one half only, the other one."""
        self._prices_first = not self._prices_first
        self.paint()

    def action_basis(self) -> None:
        """What the numbers rest on, in full."""
        if self.view.report is not None:
            self.app.push_screen(
                LinesOverlay(basis_page(self.view, overlay_cells(self.size.width)), self._inks)
            )

    def action_update(self) -> None:
        """Compute anew, for a trace that grows."""
        if self.view.working:
            self.view.message = "still working"
        elif self.view.growing or self.view.lacking:
            self.view.message = ""
            self._begin()
        else:
            self.view.message = "the trace is complete: there is nothing new in it"
        self.paint()

    def action_help(self) -> None:
        """The keys, and where each number is defined."""
        self.app.push_screen(LinesOverlay(saturation_help(overlay_cells(self.size.width)), self._inks))

    def _change(self, change: Callable[[], object]) -> None:
        self.view.message = ""
        change()
        self.paint()

    def _begin(self) -> None:
        """Compute in a thread that a program which ends does not wait for."""
        self._began_s, self.view.working, self.view.working_s = self._clock(), FITTING, 0.0
        Thread(target=self._compute, daemon=True).start()

    def _compute(self) -> None:
        """In a thread: the board, then the advice; each is shown when it is there."""
        from profiler.saturation_board import saturation_board  # loads scipy

        try:
            trace = open_trace(self._path)
            fitted = Fitted(saturation_board(trace), growing=not trace.sealed)
        except TraceError as error:
            self._tell(Fitted(None, self._brief(error)))
            return
        self._tell(fitted)
        self._tell(self._priced(trace))

    def _tell(self, message: Message) -> None:
        with suppress(RuntimeError):  # the application has ended, and its loop with it
            self.post_message(message)

    def _priced(self, trace: Trace) -> Priced:
        from profiler.advice import advise
        from profiler.prefix_curve import prefix_curve

        try:
            advice = advise(trace)
        except (TraceError, EngineError) as error:
            return Priced(None, lacking=self._brief(error))
        return Priced(advice, prefix_curve(advice.basis.cost, 1, advice.workload.longest_prompt, 0))

    def _brief(self, error: Exception) -> str:
        """An error's line with the trace's name for its path."""
        return str(error).replace(str(self._path), self._path.name)
