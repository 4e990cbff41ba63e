"""The Replay screen: keys move a picture, and every change is painted at once."""

from collections.abc import Callable
from threading import Event
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Input

from traces.errors import TraceError
from ui.tui import moves
from ui.tui.canvas import Canvas
from ui.tui.colours import Inks
from ui.tui.details import gap_lines
from ui.tui.follower import TraceGrew, follow
from ui.tui.ink import Ink
from ui.tui.lane_window import move_selection, reveal
from ui.tui.layout import Layout, layout
from ui.tui.overlays import LinesOverlay, overlay_cells
from ui.tui.page import compose
from ui.tui.panel import panel_lines
from ui.tui.picture import Following, Picture
from ui.tui.prompt import Prompt
from ui.tui.replay_help import replay_help
from ui.tui.request_table import RequestTable
from ui.tui.text import Line
from ui.tui.view import Moment

__all__ = ["ReplayScreen"]

FRAME_S = 1 / 20
ZOOM = 1.5
PAN = 0.125
OVERLAY_CELLS = 60


class ReplayScreen(Screen[None]):
    """Owns the picture. `clock` gives seconds; playing moves the cursor by what passes on it."""

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "play"),
        Binding("right", "move('step', 1)"),
        Binding("left", "move('step', -1)"),
        Binding("right_square_bracket", "move('jump_to_stall', 1)"),
        Binding("left_square_bracket", "move('jump_to_stall', -1)"),
        Binding("plus,equals_sign,full_stop", "move('change_speed', 1)"),
        Binding("minus,comma", "move('change_speed', -1)"),
        Binding("w,W", "zoom(-1)"),
        Binding("s,S", "zoom(1)"),
        Binding("d,D", "pan(1)"),
        Binding("a,A", "pan(-1)"),
        Binding("f", "move('fit_trace')"),
        Binding("home", "edge(False)"),
        Binding("end", "edge(True)"),
        Binding("m", "move('put_mark')"),
        Binding("n", "move('next_match')"),
        Binding("down", "lane(1)"),
        Binding("up", "lane(-1)"),
        Binding("g", "ask('go to')"),
        Binding("slash", "ask('search')"),
        Binding("enter", "details"),
        Binding("r", "table"),
        Binding("2", "app.show('Stalls')"),
        Binding("3", "app.show('Saturation')"),
        Binding("question_mark", "help"),
        Binding("escape", "clear"),
    ]
    HINTS: ClassVar[dict[str, str]] = {
        "go to": "seconds, or #number of a forward",
        "search": "part of a request's name, or #number of a forward",
    }

    def __init__(self, picture: Picture, inks: Inks, clock: Callable[[], float], poll_s: float) -> None:
        super().__init__()
        self.picture = picture
        self._inks = inks
        self._clock = clock
        self._poll_s = poll_s
        self._stop = Event()
        self._shown_at_s = clock()

    def compose(self) -> ComposeResult:
        """The canvas, and a line to type on that is hidden at first."""
        yield Canvas(self._inks)
        yield Prompt()

    def on_mount(self) -> None:
        """Paint, and start to play and to follow."""
        self.set_interval(FRAME_S, self.tick)
        if self.picture.following is Following.LIVE:
            self._follow()

    def on_unmount(self) -> None:
        """Let the follower end."""
        self._stop.set()

    def on_resize(self) -> None:
        """Compose anew for the new size."""
        self.paint()

    def tick(self) -> None:
        """One frame: move the cursor by the time that passed."""
        now_s = self._clock()
        elapsed_s, self._shown_at_s = now_s - self._shown_at_s, now_s
        if moves.advance(self.picture, elapsed_s):
            self.paint()

    def paint(self) -> None:
        """Compose the picture and show what changed of it."""
        width, height = self.size
        if not width or not height:
            return
        try:
            lines = compose(self.picture, width, height)
        except TraceError as error:
            lines = [[(f" {error}", Ink.BAD)], [(" q quits", Ink.MUTED)]]
        self.query_one(Canvas).show(lines)

    def visit(self, moment: Moment) -> None:
        """Go to a moment of a request's wait."""
        self._apply(lambda: moves.visit(self.picture, moment))

    def action_play(self) -> None:
        """Space."""
        self._shown_at_s = self._clock()
        self._apply(lambda: moves.toggle_play(self.picture))

    def action_move(self, name: str, *steps: int) -> None:
        """A move of `ui.tui.moves` by name."""
        self._apply(lambda: getattr(moves, name)(self.picture, *steps))

    def action_zoom(self, direction: int) -> None:
        """In (-1) or out (1)."""
        self._apply(lambda: moves.zoom(self.picture, ZOOM**direction))

    def action_pan(self, direction: int) -> None:
        """To later (1) or earlier (-1)."""
        self._apply(lambda: moves.pan(self.picture, PAN * direction))

    def action_edge(self, end: bool) -> None:
        """To the start or the end."""
        self._apply(lambda: moves.to_edge(self.picture, end=end))

    def action_lane(self, direction: int) -> None:
        """The next lane below (1) or above (-1)."""
        place = self._place()
        if place is not None:
            self._apply(lambda: move_selection(self.picture, place.lane_rows, direction))

    def action_ask(self, question: str) -> None:
        """Open the line to type on."""
        self.picture.message = ""
        self.query_one(Prompt).put(question, self.HINTS[question])

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter on the line."""
        prompt = self.query_one(Prompt)
        prompt.close()
        if event.value.strip():
            answer = moves.go_to if prompt.question == "go to" else moves.search
            self._apply(lambda: answer(self.picture, event.value))

    def action_details(self) -> None:
        """The gap of the selected lane at the cursor; on a screen without a panel the state as well."""
        place = self._place()
        if place is None or not self.picture.source.timeline.num_forwards:
            return
        found: list[Line] = []

        def look() -> None:
            gap = moves.gap_at_cursor(self.picture)
            if gap is not None:
                meta = self.picture.source.timeline.trace.meta
                cells = overlay_cells(self.size.width)
                found.extend([*gap_lines(gap, meta, cells), []])
            if gap is not None or not place.wide:
                state = self.picture.source.state(self.picture.view.cursor_ns)
                found.extend(panel_lines(state, OVERLAY_CELLS))

        self._apply(look)
        if found:
            self.picture.message = ""
            self.app.push_screen(LinesOverlay(found, self._inks))

    def action_table(self) -> None:
        """The request table."""

        def chosen(rid: int | None) -> None:
            if rid is not None:
                self._apply(lambda: moves.select(self.picture, rid))

        self.app.push_screen(RequestTable(self.picture.source), chosen)

    def action_help(self) -> None:
        """The keys, and where each number is defined."""
        self.app.push_screen(LinesOverlay(replay_help(overlay_cells(self.size.width)), self._inks))

    def action_clear(self) -> None:
        """Close the line to type on, or else clear mark, selection and message."""
        prompt = self.query_one(Prompt)
        if prompt.display:
            prompt.close()
            return
        self.picture.mark_ns = self.picture.rid = self.picture.top = None
        self._apply(lambda: None)

    def on_trace_grew(self, event: TraceGrew) -> None:
        """News from the follower."""
        if event.following is not self.picture.following:
            self.picture.message = event.following.sentence
        self.picture.following = event.following
        if event.error:
            self.picture.message = self._brief(event.error)
        moves.trace_grew(self.picture)
        self.paint()

    @work(thread=True, exclusive=True)
    def _follow(self) -> None:
        follow(self.picture.source, self.post_message, self._stop, self._poll_s)

    def _apply(self, move: Callable[[], object]) -> None:
        """Make a move: its message replaces the last one, and the selected lane stays in sight."""
        self.picture.message = ""
        try:
            before = self.picture.rid
            move()
            place = self._place()
            if place is not None and self.picture.rid != before:
                reveal(self.picture, place.lane_rows)
        except TraceError as error:
            self.picture.message = self._brief(str(error))
        self.paint()

    def _place(self) -> Layout | None:
        return layout(*self.size, self.picture.source.timeline.num_requests)

    def _brief(self, error: str) -> str:
        """An error's line with the trace's name for its path, which would fill the row."""
        path = self.picture.source.timeline.path
        return error.replace(str(path), path.name)
