"""The Overview page in a browser: from what is wrong to the chunk by keys, and all in the address."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from profiler.timeline.timeline import Timeline, open_timeline
from tests.support.served import served
from ui.web.app import create_app

ROWS = "#overview-stalls tbody tr"
CHOSEN = f"{ROWS}[aria-current]"


@pytest.fixture(scope="module")
def timelines(three_runs: dict[str, Path]) -> list[Timeline]:
    return [open_timeline(three_runs[name]) for name in ("chunked", "mixed")]


@pytest.fixture(scope="module")
def url(timelines: list[Timeline]) -> Iterator[str]:
    with served(create_app(timelines).server) as url:
        yield url


def query(page: Page) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlsplit(page.url).query).items()}


def wait_for_gap(page: Page, rid: int, token_index: int) -> None:
    page.wait_for_function(
        "([rid, tok]) => { const q = new URLSearchParams(location.search);"
        " return Number(q.get('rid')) === rid && Number(q.get('tok')) === tok; }",
        arg=[rid, token_index],
    )


def test_two_key_presses_lead_to_the_culprits_chunk(page: Page, url: str, timelines: list[Timeline]) -> None:
    timeline = timelines[0]
    first, second = timeline.stall_report.groups[:2]
    page.goto(f"{url}/overview?run=0")
    expect(page.locator(CHOSEN)).to_have_attribute("data-gap", f"{first.rids[0]},{first.token_index}")
    page.keyboard.press("ArrowDown")
    wait_for_gap(page, second.rids[0], second.token_index)
    expect(page.locator(f"{CHOSEN} a.stall")).to_be_focused()
    page.keyboard.press("ArrowUp")
    wait_for_gap(page, first.rids[0], first.token_index)

    page.keyboard.press("Enter")  # the ledger of the chosen stall
    chunk = page.locator("#stalls-chunks a").first
    expect(chunk).to_be_visible()
    assert urlsplit(page.url).path == "/stalls"
    assert query(page)["rid"] == str(first.rids[0])
    chunk.press("Enter")  # the culprit's chunk
    page.wait_for_selector("#timeline canvas")
    gap = timeline.gap(first.rids[0], first.token_index)
    assert gap is not None
    shown = query(page)
    assert urlsplit(page.url).path == "/compare"
    assert int(shown["t"]) in {chunk.start_ns - timeline.start_ns for chunk in gap.chunks}
    assert (shown["rid"], shown["tok"]) == (str(gap.rid), str(gap.token_index))


@pytest.mark.long
def test_another_run_and_theme_are_one_key_away_and_narrow_windows_do_not_scroll(
    page: Page, url: str
) -> None:
    page.set_viewport_size({"width": 1000, "height": 900})
    page.goto(f"{url}/overview?run=0&tok=x&theme=dark")
    expect(page.locator("#notices p")).to_have_count(1)
    expect(page.locator("#overview-answer")).to_contain_text("prefill always goes first")
    page.keyboard.press("2")
    expect(page.locator("#overview-answer")).to_contain_text("prompts ride along")
    page.wait_for_function("new URLSearchParams(location.search).get('run') === '1'")
    expect(page.locator("#overview-checks")).to_contain_text("invariants")
    expect(page.locator("#overview-glance .barlayer .point").first).to_be_attached()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.keyboard.press("t")
    page.wait_for_function("new URLSearchParams(location.search).get('theme') === 'light'")
    expect(page.locator("#overview-answer")).to_contain_text("prompts ride along")
