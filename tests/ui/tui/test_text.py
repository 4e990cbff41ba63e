"""Text in cells: hostile names, clipping, ASCII."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from ui.tui.glyphs import to_ascii
from ui.tui.ink import Ink
from ui.tui.text import Line, between, clip, cut, fit, shown, span_length, wrapped

HOSTILE = (
    "<b>bold</b><script>alert(1)</script>",
    "[bold red]markup[/] [link=file:///etc]x[/link]",
    "\x1b[31mred\x1b]0;title\x07",
    "line\nbreak\ttab\r",
    "x" * 10_000,
    "\u0301" * 10_000,
    "שלום עולם",
    "\u202eevil\u202d",
    "汉字" * 50,
    "",
    "../../etc/passwd",
)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_name_keeps_to_its_cells(name: str) -> None:
    text = shown(name, 12)
    assert cell_len(text) <= 12
    assert len(text) <= 60
    assert all(c.isprintable() or c in "\u2068\u2069" for c in text)


def test_right_to_left_text_is_isolated() -> None:
    assert shown("שלום", 12) == "\u2068שלום\u2069"
    assert shown("abc", 12) == "abc"


def test_clipping_says_so() -> None:
    assert clip("abcdef", 6) == "abcdef"
    assert clip("abcdefg", 6) == "abcde…"
    assert clip("abc", 0) == ""


@given(st.lists(st.tuples(st.text(max_size=8), st.just(0)), max_size=5), st.integers(0, 20))
def test_fit_gives_exactly_its_cells(spans: list[tuple[str, int]], cells: int) -> None:
    named = [(shown(text, 20), ink) for text, ink in spans]
    assert span_length(fit(named, cells)) == cells


def test_the_right_end_wins() -> None:
    line = between([("a long left part", 0)], [("right", 0)], 12)
    assert "".join(text for text, _ in line) == "a long…right"


@given(st.text(max_size=20))
def test_ascii_is_ascii_and_as_wide(text: str) -> None:
    plain = to_ascii(text)
    assert plain.isascii()
    assert cell_len(plain) == cell_len(text)


def test_words_are_wrapped_at_spaces_and_keep_their_inks() -> None:
    said: Line = [("one two ", Ink.STRONG), ("three", Ink.ACCENT)]
    assert wrapped(said, 13) == [said]
    assert wrapped(said, 8) == [[("one two ", Ink.STRONG)], [("three", Ink.ACCENT)]]
    assert wrapped(said, 7) == [[("one two", Ink.STRONG)], [("three", Ink.ACCENT)]]
    assert wrapped([("a longest", Ink.TEXT)], 4) == [[("a", Ink.TEXT)], [("lon…", Ink.TEXT)]]
    assert wrapped([("", Ink.TEXT)], 4) == []


@given(st.lists(st.tuples(st.text("ab 漢", max_size=30), st.sampled_from([1, 2]))), st.integers(2, 40))
def test_wrapped_lines_fit_and_hold_every_word(spans: Line, cells: int) -> None:
    lines = wrapped(spans, cells)
    assert all(0 < span_length(line) <= cells for line in lines)
    text = "".join(text for text, _ in spans)
    if all(cell_len(word) <= cells for word in text.split()):
        assert "".join(part for line in lines for part, _ in line).replace(" ", "") == text.replace(" ", "")


def test_lines_that_are_cut_say_where_the_rest_is() -> None:
    lines: list[Line] = [[("one two", Ink.TEXT)], [("three four", Ink.TEXT)], [("five", Ink.TEXT)]]
    assert cut(lines, 3, 14, "… more") == lines
    kept, last = cut(lines, 2, 14, "… more")
    assert kept == lines[0]
    assert last == [("three", Ink.TEXT), (" … more", Ink.MUTED)]
    assert cut(lines, 0, 14, "… more") == []
