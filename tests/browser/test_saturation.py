"""The Saturation page in a browser: its run in the address, its table, its theme."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from profiler.timeline.timeline import open_timeline
from tests.support.served import served
from ui.palette import THEMES
from ui.web.app import create_app

POINTS = "#saturation-throughput .scatterlayer .point"


@pytest.fixture(scope="module")
def url(three_runs: dict[str, Path]) -> Iterator[str]:
    timelines = [open_timeline(three_runs[name]) for name in ("whole", "mixed", "sweep")]
    with served(create_app(timelines).server) as address:
        yield f"{address}/saturation"


def colour_of_axis(page: Page) -> str:
    """As CSS gives it: rgb(1, 2, 3)."""
    label = page.locator("#saturation-throughput .xtick text").first
    return str(label.evaluate("element => getComputedStyle(element).fill"))


def css(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgb({red}, {green}, {blue})"


def test_the_sweep_comes_first_and_a_link_leads_back_to_another_run(page: Page, url: str) -> None:
    page.goto(f"{url}?theme=light")
    expect(page.locator("#saturation-answer")).to_contain_text("tokens fill one forward")
    expect(page.locator(POINTS).first).to_be_visible()
    page.get_by_text("Table of the sizes").click()
    rows = page.locator("#saturation-sizes tbody tr")
    expect(rows).to_have_count(10)
    expect(rows.last).to_contain_text("1,024")
    page.get_by_label("Chunked + mixed").check()
    expect(page.locator("#saturation-answer")).to_contain_text("No saturation point")
    assert "sat=1" in page.url
    page.reload()
    expect(page.get_by_label("Chunked + mixed")).to_be_checked()
    expect(page.locator("#saturation-answer")).to_contain_text("No saturation point")


def test_figures_follow_the_theme(page: Page, url: str) -> None:
    page.goto(f"{url}?theme=dark")
    expect(page.locator(POINTS).first).to_be_visible()
    assert colour_of_axis(page) == css(THEMES["dark"].muted)
    page.keyboard.press("t")
    label = page.locator("#saturation-throughput .xtick text").first
    expect(label).to_have_css("fill", css(THEMES["light"].muted))
