"""The keys of the replay, and where docs/metrics.md defines each of its numbers."""

from ui.metric_entries import ENTRIES, MetricEntry
from ui.tui.help_page import help_lines
from ui.tui.text import Line

__all__ = ["replay_help"]

KEYS = (
    ("Space", "play, pause"),
    ("+  -", "faster, slower: 0.1 to 100 times"),
    ("←  →", "previous, next forward"),
    ("[  ]", "previous, next stall of at least twice the request's median gap"),
    ("Home  End", "start, end of the trace"),
    ("W  S", "zoom in, out at the cursor"),
    ("A  D", "pan to earlier, later"),
    ("f", "fit: all of the trace; follow a growing one"),
    ("g", "go to a moment in seconds, or to a forward: #48"),
    ("m", "mark the cursor; the axis shows the time from there"),
    ("/  n", "search a request by name, next match"),
    ("↑  ↓", "select a lane"),
    ("Enter", "the selected lane's gap at the cursor, and the scheduler's state"),
    ("r", "table of requests"),
    ("2", "the Stalls screen: where the waiting went, and who took it"),
    ("3", "the Saturation screen: which chunk size, and what each costs"),
    ("Esc", "clear mark, selection and message; close a page"),
    ("q", "quit"),
)
_NUMBERS = (
    ("TTFT longest", "ttft_longest"),
    ("ITL longest", "itl_longest"),
    ("ITL p50", "itl_p50"),
    ("ITL p99", "itl_p99"),
    ("output", "output_rate"),
    ("queue max", "queue_longest"),
    ("KV peak", "kv_pages_peak"),
    ("budget fill", "budget_fill"),
    ("stall", "stalls"),
    ("gap", "gap"),
    ("Forward", "state"),
    ("Budgets", "budgets"),
    ("stopped by", "stop_reason"),
    ("inflight_middle_chunks", "inflight_middle_chunks"),
)
"""What stands on the screen, and the key of its entry."""

_STATE = ENTRIES["state"].heading
_KV_PAGES = (
    ("locked", MetricEntry("Pages of the prefix cache that running requests use.", _STATE, "locked")),
    ("private", MetricEntry("Pages that one request has for itself.", _STATE, "private")),
    ("evictable", MetricEntry("Pages of the prefix cache that nobody uses now.", _STATE, "evictable")),
    ("free", MetricEntry("Pages that hold nothing.", _STATE, "free")),
)
NUMBERS = (*((name, ENTRIES[key]) for name, key in _NUMBERS), *_KV_PAGES)
"""What stands on the screen, and its entry."""


def replay_help(cells: int) -> list[Line]:
    """The keys, then the numbers."""
    return help_lines(KEYS, NUMBERS, cells)
