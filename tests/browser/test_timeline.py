"""The canvas timeline by itself in a browser: keys, drags and clicks, and what they tell the page."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from playwright.sync_api import Page

from profiler.timeline.timeline import Timeline, open_timeline
from tests.support.served import served
from tests.support.timeline_page import timeline_page

RUNS = ("whole", "chunked", "mixed")
GUTTER, PLOT = 134, 962
TITLE, DECODE_LANE = 18, 10
OVER = ".cs-timeline-body canvas >> nth=1"
HEAD = ".cs-timeline-head canvas"
PAINTED = """([x, y]) => document.querySelectorAll(".cs-timeline-body canvas")[1]
    .getContext("2d").getImageData(x, y, 1, 1).data[3] > 0"""


@pytest.fixture(scope="module")
def timelines(three_runs: dict[str, Path]) -> list[Timeline]:
    return [open_timeline(three_runs[name]) for name in RUNS]


@pytest.fixture(scope="module")
def address(timelines: list[Timeline]) -> Iterator[str]:
    with served(timeline_page(timelines, ("A Whole prompt", "B Chunked", "C Chunked + mixed"))) as address:
        yield address


@pytest.fixture
def shown(page: Page, address: str) -> Page:
    """The page once all bands are drawn."""
    with page.expect_response("**/2/walls"):
        page.goto(address)
    settle(page)
    return page


def settle(page: Page) -> None:
    """Wait until what was asked for is drawn: motion is reduced, so that the next frame has it."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def state(page: Page) -> dict[str, Any]:
    return page.evaluate("() => view.state()")


def x_of(page: Page, ns: float) -> float:
    """Pixel of an instant on the canvas."""
    now = state(page)
    return GUTTER + (ns - now["t0"]) / (now["t1"] - now["t0"]) * PLOT


def pixel(page: Page, selector: str, x: float, y: float) -> list[int]:
    """Colour of a canvas at a point."""
    script = "(c, [x, y]) => Array.from(c.getContext('2d').getImageData(x, y, 1, 1).data)"
    return page.locator(selector).evaluate(script, [round(x), round(y)])


def test_keys_and_minimap_change_the_range_and_the_page_is_told(
    shown: Page, timelines: list[Timeline]
) -> None:
    def span() -> int:
        return state(shown)["t1"] - state(shown)["t0"]

    whole = span()
    shown.keyboard.press("w")
    settle(shown)
    assert span() < whole
    zoomed = state(shown)
    shown.keyboard.press("d")
    settle(shown)
    panned = state(shown)
    assert panned["t0"] > zoomed["t0"]
    assert span() == zoomed["t1"] - zoomed["t0"]
    shown.keyboard.press("a")
    settle(shown)
    assert state(shown)["t0"] < panned["t0"]
    assert span() == panned["t1"] - panned["t0"]
    shown.keyboard.press("s")
    shown.keyboard.press("s")
    settle(shown)
    assert span() == whole
    told = shown.evaluate("() => seen.changes")
    assert told[-1] == state(shown)
    assert len(told) >= 4
    shown.evaluate("() => view.set({ t0: 0, t1: 100_000_000 })")
    settle(shown)
    shown.locator(HEAD).click(position={"x": GUTTER + PLOT / 2, "y": 6})
    settle(shown)
    now = state(shown)
    longest = max(timeline.end_ns - timeline.start_ns for timeline in timelines)
    assert now["t1"] - now["t0"] == 100_000_000
    assert (now["t0"] + now["t1"]) / 2 == pytest.approx(longest / 2, abs=longest / PLOT)


def test_a_dragged_selection_is_what_the_tables_sum_to(shown: Page, timelines: list[Timeline]) -> None:
    shown.locator(OVER).hover(position={"x": 500, "y": 60})
    shown.mouse.down()
    shown.locator(OVER).hover(position={"x": 700, "y": 80})
    shown.mouse.up()
    shown.locator(".cs-timeline-live", has_text="Selected").wait_for(state="attached")
    a, b = state(shown)["selection"]
    now = state(shown)
    assert a == pytest.approx(now["t0"] + (500 - GUTTER) / PLOT * (now["t1"] - now["t0"]), abs=2e6)
    forwards = pl.from_arrow(timelines[1].trace.table("forwards"))
    start = timelines[1].start_ns
    inside = forwards.filter(pl.col("start_ns").is_between(start + a, start + b, closed="left"))
    sums = shown.evaluate(f"() => fetch('/api/timeline/1/sums?t0={a}&t1={b}').then((r) => r.json())")
    assert sums["forwards"] == inside.height > 0
    assert sums["extend_tokens"] == inside["extend_tokens"].sum()
    assert sums["decode_tokens"] == inside["decode_tokens"].sum()
    shown.keyboard.press("Escape")
    settle(shown)
    assert state(shown)["selection"] is None


def test_a_click_on_a_stall_leads_to_the_culprits_chunk(shown: Page, timelines: list[Timeline]) -> None:
    worst = timelines[1].worst_gap()
    assert worst is not None
    assert worst.costliest is not None
    start = timelines[1].start_ns
    band = shown.locator(".cs-timeline-body").evaluate("(body) => body.clientHeight / 3")
    lanes = [ref.rid for ref in timelines[1].lane_refs(start, timelines[1].end_ns, 14)[0]]
    y = band + TITLE + lanes.index(worst.rid) * DECODE_LANE + DECODE_LANE / 2
    x = x_of(shown, (worst.start_ns + worst.end_ns) / 2 - start)
    chunk = x_of(shown, worst.costliest.start_ns - start) - 1, band + TITLE + 6 * DECODE_LANE + 10
    before = pixel(shown, OVER, *chunk)
    shown.locator(OVER).click(position={"x": x, "y": y})
    shown.wait_for_function(PAINTED, arg=[round(chunk[0]), round(chunk[1])])
    picked = shown.evaluate("() => seen.picks")
    assert [(p["kind"], p["run"], p["rid"], p["tok"]) for p in picked] == [
        ("gap", 1, worst.rid, worst.token_index)
    ]
    assert state(shown)["gap"] == {"run": 1, "rid": worst.rid, "tok": worst.token_index}
    assert state(shown)["run"] == 1
    assert before[3] == 0
    assert pixel(shown, OVER, *chunk) == [0x14, 0x18, 0x1C, 255]  # the edge around the chunk it points at


def test_state_and_theme_from_outside_are_taken_over_without_an_echo(shown: Page) -> None:
    wanted = {"t0": 50_000_000, "t1": 250_000_000, "cursor": 77_000_000, "gap": None, "run": 2}
    wanted["selection"] = [60_000_000, 90_000_000]
    shown.evaluate("(wanted) => view.set(wanted)", wanted)
    settle(shown)
    assert state(shown) == wanted
    assert shown.evaluate("() => seen.changes") == []

    def corner() -> list[int]:
        return pixel(shown, ".cs-timeline-body canvas >> nth=0", 600, 4)

    assert corner() == [0xF5, 0xF7, 0xF8, 255]
    shown.evaluate("() => { document.documentElement.dataset.theme = 'dark'; view.redrawTheme(); }")
    settle(shown)
    assert corner() == [0x17, 0x1C, 0x20, 255]
