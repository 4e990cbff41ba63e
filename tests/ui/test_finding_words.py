"""Every severity has a glyph and a colour of its own."""

from dataclasses import fields

from rich.cells import cell_len

from profiler.findings.finding import Severity
from ui.finding_words import MARKS
from ui.palette import Theme


def test_every_severity_has_a_mark_of_its_own() -> None:
    assert set(MARKS) == set(Severity)
    for looks in ("glyph", "words", "colour"):
        assert len({getattr(mark, looks) for mark in MARKS.values()}) == len(Severity)


def test_a_mark_is_one_cell_in_a_colour_of_the_theme() -> None:
    known = {field.name for field in fields(Theme)}
    for mark in MARKS.values():
        assert cell_len(mark.glyph) == 1
        assert mark.colour in known
