"""The keys of the Stalls screen, and where docs/metrics.md defines each of its numbers."""

from ui.metric_entries import ENTRIES, MetricEntry
from ui.tui.help_page import help_lines
from ui.tui.text import Line

__all__ = ["stalls_help"]

KEYS = (
    ("↑  ↓", "choose a stall, or a chunk where the arrow ▸ stands"),
    ("Tab", "the arrows to the chunks, and back; the chunk that took most is chosen"),
    ("Enter", "the replay at the start of the stall, or at the chosen chunk's forward"),
    ("[  ]", "the stall of the list that began before, after this one"),
    ("s", "sort by late by, or by lost in all"),
    ("r", "one row for all who waited at one instant, or one for each request"),
    ("/  n", "search a name among those who waited and the culprits, next match"),
    ("c", "copy the row to the terminal's clipboard"),
    ("1  Esc", "the replay"),
    ("3", "the Saturation screen: what other chunk sizes and policies would cost"),
    ("q", "quit"),
)
_NUMBERS = (
    ("of waiting", "waiting"),
    ("bar, legend", "causes"),
    ("Worst token", "itl_longest"),
    ("×6", "stall_group"),
    ("late by", "late_by"),
    ("lost in all", "lost"),
    ("cause", "cause"),
    ("alone cost", "culprit_cost"),
    ("Ledger", "gap_ledger"),
    ("Culprits", "chunk_cost"),
    ("shared by", "split"),
)
"""What stands on the screen, and the key of its entry."""

_REPORT = ENTRIES["causes"].heading
_OWN_NUMBERS = (
    (
        "× own decode",
        MetricEntry("A gap over the decode part of its own forward.", _REPORT, "times own decode"),
    ),
    (
        "inside",
        MetricEntry(
            "Forwards with chunks that time of the gap is charged to, and how many of them lie in it.",
            _REPORT,
            "blamed forwards",
        ),
    ),
    (
        "mixed extra",
        MetricEntry(
            "Estimated: what prompts that ride along add to a forward of the same decode rows.",
            ENTRIES["stalls"].heading,
            "Mixed extra",
        ),
    ),
)
NUMBERS = (*((name, ENTRIES[key]) for name, key in _NUMBERS), *_OWN_NUMBERS)
"""What stands on the screen, and its entry."""


def stalls_help(cells: int) -> list[Line]:
    """The keys, then the numbers."""
    return help_lines(KEYS, NUMBERS, cells)
