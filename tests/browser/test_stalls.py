"""The Stalls page in a browser: sums on screen, from a stall to its chunk, addresses, and little to show."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from profiler.timeline.timeline import Timeline, open_timeline
from tests.support.rewritten import rewrite
from tests.support.served import served
from tests.support.traces import decode_row, forward, request
from traces.writer import TraceWriter
from ui.palette import THEMES
from ui.web.app import create_app

NAMES = ("whole", "chunked", "mixed", "sweep")
LEDGER = "#stalls-ledger .ledger tr"
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


@pytest.fixture(scope="module")
def timelines(three_runs: dict[str, Path]) -> list[Timeline]:
    return [open_timeline(three_runs[name]) for name in NAMES]


@pytest.fixture(scope="module")
def url(timelines: list[Timeline]) -> Iterator[str]:
    with served(create_app(timelines).server) as address:
        yield address


def query(page: Page) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlsplit(page.url).query).items()}


def sums(rows: Locator) -> tuple[int, int]:
    """Nanoseconds of all rows but the last, and of the last, which is their sum."""
    told = [int(ns) for ns in rows.evaluate_all("rows => rows.map(row => row.dataset.ns)")]
    return sum(told[:-1]), told[-1]


def test_from_a_stall_to_its_costliest_chunk(page: Page, url: str, timelines: list[Timeline]) -> None:
    timeline = timelines[1]
    report = timeline.stall_report
    page.goto(f"{url}/stalls?run=1&theme=light")
    expect(page.locator("#stalls-answer")).to_contain_text("of waiting went to others' prefill")
    gap = timeline.worst_gap()
    assert gap is not None
    expect(page.locator("#stalls-ledger")).to_contain_text("gap, parts sum exactly")
    assert sums(page.locator(LEDGER)) == (gap.gap_ns, gap.gap_ns)
    legend = page.locator("#stalls-causes li").evaluate_all("items => items.map(item => item.dataset.ns)")
    assert sum(map(int, legend)) == report.waiting_ns

    second = page.locator("#stalls-worst tbody tr").nth(1)
    expect(page.locator("#stalls-worst tbody tr").first).to_have_class("selected")
    page.keyboard.press("ArrowDown")
    expect(second.locator("button")).to_be_focused()
    page.keyboard.press("Enter")
    expect(second).to_have_class("selected")
    expect(second.locator("button")).to_be_focused()
    group = report.groups[1]
    other = timeline.gap(group.rids[0], group.token_index)
    assert other is not None
    page.wait_for_url(f"**rid={other.rid}&tok={other.token_index}**")
    expect(page.locator("#stalls-ledger h2")).to_contain_text(f"token {other.token_index}")
    assert sums(page.locator(LEDGER)) == (other.gap_ns, other.gap_ns)
    expect(page.locator("#stalls-change")).to_contain_text("--enable-mixed-chunk")

    chunk = max(other.chunks, key=lambda each: each.in_gap_ns)
    links = page.locator("#stalls-chunks tbody a")
    links.first.focus()
    page.keyboard.press("ArrowDown")
    expect(links.nth(1)).to_be_focused()
    page.locator("#stalls-chunks tr.selected a").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/compare?**")
    expect(page.locator("#gap-panel .ledger")).to_be_visible()
    assert query(page) | {"t": str(chunk.start_ns - timeline.start_ns), "run": "1"} == query(page)
    assert query(page)["tok"] == str(other.token_index)
    assert sums(page.locator("#gap-panel .ledger tr")) == (other.gap_ns, other.gap_ns)
    expect(page.locator("#cursor-time")).to_have_text(f"{(chunk.start_ns - timeline.start_ns) / 1e9:.3f} s")
    own_ns = other.forwards[-1].start_ns - timeline.start_ns
    page.get_by_role("link", name="own decode").click()
    expect(page.locator("#cursor-time")).to_have_text(f"{own_ns / 1e9:.3f} s")
    page.go_back()
    page.wait_for_url("**/stalls?**")
    expect(page.locator("#stalls-ledger h2")).to_contain_text(f"token {other.token_index}")


@pytest.mark.long
def test_order_run_and_theme_stand_in_the_address(page: Page, url: str, timelines: list[Timeline]) -> None:
    page.goto(f"{url}/stalls?run=2&theme=light&order=lost")
    expect(page.locator("#stalls-worst th[aria-sort] button")).to_contain_text("lost in all")
    rows = page.locator("#stalls-worst tbody tr")
    lost = [int(ns) for ns in rows.evaluate_all("rows => rows.map(row => row.dataset.ns)")]
    assert lost == sorted(lost, reverse=True)
    page.locator("[data-sort=late]").click()
    expect(page.locator("#stalls-worst th[aria-sort] button")).to_contain_text("late by, each")
    assert "order" not in query(page)
    page.locator("[data-sort=lost]").click()
    page.wait_for_url("**order=lost**")
    page.get_by_text("Table of the spans").click()
    whole = page.locator("#stalls-spans tbody tr").last.locator("td")
    told = [int(ns) for ns in whole.evaluate_all("cells => cells.map(cell => cell.dataset.ns)")]
    assert sum(told) == timelines[2].stall_report.waiting_ns
    page.keyboard.press("t")
    label = page.locator("#stalls-over-time .xtick text").first
    red, green, blue = (int(THEMES["dark"].muted[i : i + 2], 16) for i in (1, 3, 5))
    expect(label).to_have_css("fill", f"rgb({red}, {green}, {blue})")

    page.locator(".stalls .choose button").nth(3).click()
    expect(page.locator("#stalls-answer")).to_contain_text("No request gave two tokens")
    expect(page.locator("#stalls-gaps")).to_be_hidden()
    page.keyboard.press("1")
    expect(page.locator("#stalls-gaps")).to_be_visible()
    expect(page.locator("#stalls-ledger")).to_contain_text("gap, parts sum exactly")
    page.wait_for_url("**run=0**")


def test_little_to_show_is_said_and_names_are_text(
    page: Page, three_runs: dict[str, Path], tmp_path: Path
) -> None:
    renamed = rewrite(three_runs["chunked"], tmp_path / "named.chunkscope", names={"long-1": HOSTILE})
    lacking = ("rows", "requests", "events", "pages", "kernels")
    bare = rewrite(three_runs["chunked"], tmp_path / "bare.chunkscope", without=lacking)
    with served(create_app([open_timeline(renamed), open_timeline(bare)]).server) as address:
        page.goto(f"{address}/stalls?run=0")
        expect(page.locator("#stalls-culprits")).to_contain_text("<img src=x")
        expect(page.locator("#stalls-ledger")).to_contain_text("<img src=x")
        assert page.title() == "Chunkscope"
        page.set_viewport_size({"width": 720, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= 720
        page.keyboard.press("2")
        expect(page.locator("#stalls-answer")).to_contain_text("No token is recorded")
        expect(page.locator("#stalls-ttft-section")).to_be_hidden()
        page.goto("about:blank")


@pytest.mark.long
def test_a_growing_trace_is_read_anew(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "live.chunkscope"
    with TraceWriter(path, {"provenance": "measured"}) as writer:
        grow(writer, 0)
        with served(create_app([open_timeline(path)], live=True).server) as address:
            page.clock.install()
            page.goto(f"{address}/stalls")
            expect(page.locator("#stalls-answer")).to_contain_text("No request gave two tokens")
            grow(writer, 1)
            page.clock.fast_forward(2_000)
            expect(page.locator("#live-badge")).to_contain_text("live")
            page.clock.fast_forward(11_000)
            expect(page.locator("#stalls-answer")).to_contain_text("Worst token: 10.0 ms")
            page.goto("about:blank")  # the page asks on, and the server ends here


def grow(writer: TraceWriter, token_index: int) -> None:
    """A forward of 10 ms, and the token that it gives the only request."""
    end_ns = 10_000_000 * (token_index + 1)
    for table, row in (
        ("forwards", forward(token_index, end_ns - 10_000_000, end_ns)),
        ("rows", decode_row(token_index, 0, token_index)),
        ("requests", request(0)),
    ):
        writer.append(table, {name: [value] for name, value in row.items()}, 1)
