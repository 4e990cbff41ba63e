"""The Stalls screen: where the waiting went, the worst of it, and who took it; Enter leads to the instant."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input

from profiler.ledger.report import StallReport
from profiler.timeline.timeline import Timeline, open_timeline
from traces.errors import TraceError
from ui.tui.canvas import Canvas
from ui.tui.colours import Inks
from ui.tui.overlays import LinesOverlay, overlay_cells
from ui.tui.picture import Picture
from ui.tui.prompt import Prompt
from ui.tui.stalls_help import stalls_help
from ui.tui.stalls_page import compose_stalls
from ui.tui.stalls_table import row_text
from ui.tui.stalls_view import StallsView
from ui.tui.view import Moment

__all__ = ["Reported", "StallsScreen"]

TICK_S = 0.5
REST = 4  # a growing trace is read anew after so many times what that took, but no sooner than LEAST_REST_S
LEAST_REST_S = 2.0


class Reported(Message):
    """The ledger of the trace is there, or why not."""

    def __init__(self, timeline: Timeline | None, report: StallReport | None, lacking: str = "") -> None:
        super().__init__()
        self.timeline, self.report, self.lacking = timeline, report, lacking


class StallsScreen(Screen[None]):
    """Owns its view, and keeps it while another screen is shown. `visit` takes the replay to a place.

    It opens the trace anew, so that no other thread reads by the same object. `clock` gives seconds.
    """

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "app.show('Replay')"),
        Binding("3", "app.show('Saturation')"),
        Binding("down", "change('move', 1)"),
        Binding("up", "change('move', -1)"),
        Binding("right_square_bracket", "change('next_in_time', 1)"),
        Binding("left_square_bracket", "change('next_in_time', -1)"),
        Binding("tab", "change('next_panel')"),
        Binding("s", "change('next_order')"),
        Binding("r", "change('toggle_groups')"),
        Binding("n", "change('next_match')"),
        Binding("slash", "ask"),
        Binding("enter", "go"),
        Binding("c", "copy"),
        Binding("question_mark", "help"),
        Binding("escape", "close"),
    ]

    def __init__(
        self, picture: Picture, inks: Inks, clock: Callable[[], float], visit: Callable[[Moment], object]
    ) -> None:
        super().__init__()
        self._picture = picture
        self._path: Path = picture.source.timeline.path
        self._inks = inks
        self._clock = clock
        self._visit = visit
        self._began_s = clock()
        self._rest_until_s = 0.0
        self._version = 0
        self.view = StallsView()

    def compose(self) -> ComposeResult:
        """The canvas, and a line to type on that is hidden at first."""
        yield Canvas(self._inks)
        yield Prompt()

    def on_mount(self) -> None:
        """Begin to compute, and tell how long it takes."""
        self.set_interval(TICK_S, self.tick)
        self._begin()

    def on_screen_resume(self) -> None:
        """Show what came while another screen was shown."""
        self.paint()

    def tick(self) -> None:
        """Tell how long it takes; read a trace anew that has grown."""
        if not self.is_current:
            return
        now_s = self._clock()
        if self.view.working:
            self.view.working_s = now_s - self._began_s
        elif self._picture.source.version != self._version and now_s >= self._rest_until_s:
            self._begin()
        self.paint()

    def on_resize(self) -> None:
        """Compose anew for the new size."""
        self.paint()

    def paint(self) -> None:
        """Compose the view and show what changed of it."""
        width, height = self.size
        if width and height:
            self.query_one(Canvas).show(compose_stalls(self.view, self._picture, width, height))

    def on_reported(self, event: Reported) -> None:
        """Show the report, with the same wait chosen."""
        took_s = self._clock() - self._began_s
        self._rest_until_s = self._clock() + max(REST * took_s, LEAST_REST_S)
        self.view.working, self.view.lacking = False, event.lacking
        if event.timeline is not None and event.report is not None:
            self._change(self.view.show, event.timeline, event.report)
        self.paint()

    def action_change(self, name: str, *steps: int) -> None:
        """A change of the view by name."""
        self.view.message = ""
        self._change(getattr(self.view, name), *steps)
        self.paint()

    def action_ask(self) -> None:
        """Open the line to type on."""
        self.view.message = ""
        self.query_one(Prompt).put("search", "part of the name of a request that waited or took time")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter on the line."""
        self.query_one(Prompt).close()
        if event.value.strip():
            self._change(self.view.search, event.value)
        self.paint()

    def action_go(self) -> None:
        """To the chosen instant in the replay."""
        moment = self.view.moment
        if moment is not None:
            self._visit(moment)

    def action_copy(self) -> None:
        """The chosen row as text, to the terminal's clipboard."""
        if self.view.row is not None:
            self.app.copy_to_clipboard(row_text(self.view.row))
            self.view.message = "the row was sent to the terminal's clipboard"
        self.paint()

    def action_help(self) -> None:
        """The keys, and where each number is defined."""
        self.app.push_screen(LinesOverlay(stalls_help(overlay_cells(self.size.width)), self._inks))

    async def action_close(self) -> None:
        """Close the line to type on, or else go back to the replay."""
        prompt = self.query_one(Prompt)
        if prompt.display:
            prompt.close()
        else:
            await self.run_action("app.show('Replay')")

    def _change(self, change: Callable[..., object], *args: object) -> None:
        """Change the view; what cannot be read is told."""
        try:
            change(*args)
        except TraceError as error:
            self.view.message = self._brief(error)

    def _begin(self) -> None:
        """Compute in a thread that a program which ends does not wait for."""
        self._version = self._picture.source.version
        self._began_s, self.view.working, self.view.working_s = self._clock(), True, 0.0
        Thread(target=self._compute, daemon=True).start()

    def _compute(self) -> None:
        """In a thread: take every gap apart."""
        try:
            timeline = open_timeline(self._path)
            report = timeline.stall_report
            for row in report.groups[:1]:  # what every gap needs is made here, where nobody waits for it
                timeline.gap(row.rids[0], row.token_index)
            found = Reported(timeline, report)
        except TraceError as error:
            found = Reported(None, None, self._brief(error))
        with suppress(RuntimeError):  # the application has ended, and its loop with it
            self.post_message(found)

    def _brief(self, error: Exception) -> str:
        """An error's line with the trace's name for its path."""
        return str(error).replace(str(self._path), self._path.name)
