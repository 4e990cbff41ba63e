"""The Saturation page in a browser: price list, limits, tables, themes, and all of it in the address."""

import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from profiler.timeline.timeline import open_timeline
from tests.support.recorded import TINY
from tests.support.served import served
from tests.support.three_runs import record_three_runs
from traces.meta import update_sealed_meta
from traces.writer import TraceWriter
from ui.palette import THEMES
from ui.web.app import create_app
from ui.web.limit_query import steps
from ui.web.pages.saturation_layout import READING

POINTS = "#saturation-throughput .scatterlayer .point"
PEAKS = {"dtype": "bfloat16", "flops_per_s": 1e6, "bytes_per_s": 1e6}
"""Of a device so slow that forwards lie above its roof."""

FEW = (("decode-1", 0, 20, 30), ("decode-2", 0, 20, 30), ("long", 40_000_000, 300, 4))
"""Requests that are soon tried under every row's options."""


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Traces whose model is told, so that a model of forwards can be fitted to them."""
    found = record_three_runs(tmp_path_factory.mktemp("saturation"), FEW)
    hardware = {"device": "simulated", "name": "slow", "peaks": PEAKS}
    for path in found.values():
        update_sealed_meta(path, {"model": {**asdict(TINY), "dtype": "bfloat16"}, "hardware": hardware})
    return found


@pytest.fixture(scope="module")
def url(paths: dict[str, Path]) -> Iterator[str]:
    """Of four runs."""
    timelines = [open_timeline(paths[name]) for name in ("whole", "chunked", "mixed", "sweep")]
    with served(create_app(timelines).server) as address:
        yield f"{address}/saturation"


@pytest.fixture(scope="module")
def own_url(paths: dict[str, Path]) -> Iterator[str]:
    """Of one run alone."""
    with served(create_app([open_timeline(paths["mixed"])]).server) as address:
        yield f"{address}/saturation"


WATCH = """() => {
  const part = (name) => document.getElementById(`saturation-${name}`);
  globalThis.watched = [];
  const note = () => watched.push({
    ...Object.fromEntries(
      ["answer", "price", "advice", "prices", "prices-note"].map((name) => [name, part(name).textContent]),
    ),
    working: !part("working").hidden,
  });
  note();
  const all = { subtree: true, childList: true, characterData: true, attributes: true };
  new MutationObserver(note).observe(document.querySelector("main"), all);
}"""
"""Keeps what each change of the page leaves to be read."""


def prices(page: Page) -> Locator:
    return page.locator("#saturation-prices tbody tr")


def query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def css(colour: str) -> str:
    """As CSS gives it: rgb(1, 2, 3)."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgb({red}, {green}, {blue})"


def test_a_link_leads_to_a_run_and_another_leaves_nothing_of_it(page: Page, url: str) -> None:
    page.goto(f"{url}?sat=2&theme=dark")
    expect(page.locator("#saturation-batches-said")).to_contain_text("of decode rows alone")
    expect(page.get_by_label("Chunked + mixed")).to_be_checked()
    expect(page.locator(POINTS).first).to_be_visible()
    label = page.locator("#saturation-throughput .xtick text").first
    expect(label).to_have_css("fill", css(THEMES["dark"].muted))
    expect(page.locator("#saturation-advice")).to_contain_text("of all 4 runs together")
    page.evaluate(WATCH)
    page.locator("#saturation-run input").nth(3).check()
    expect(page.locator("#saturation-answer")).to_contain_text("tokens fill one forward. ")
    before, *after = page.evaluate("watched")
    assert before["advice"]
    blank = {"answer": READING, "price": "", "advice": "", "prices": "", "prices-note": "", "working": True}
    assert [seen for seen in after if seen["answer"] == READING][-1] == blank
    assert before["advice"] not in [seen["advice"] for seen in after[after.index(blank) :]]
    assert query(page)["sat"] == ["3"]
    page.get_by_text("Table of the sizes").click()
    rows = page.locator("#saturation-sizes tbody tr")
    expect(rows).to_have_count(10)
    expect(rows.last).to_contain_text("1,024")
    expect(page.locator("#saturation-batches")).to_contain_text("no forward here has decode rows alone")
    expect(page.get_by_text("Table of the batch sizes")).to_be_hidden()


def stop(key: str, text: str) -> str:
    """The stop of a slider that the address has so."""
    return str([step.text for step in steps(key)].index(text))


def drag_to(page: Page, slider: Locator, share: float) -> None:
    """Drag a slider's thumb from its right end."""
    box = slider.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] - 4, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * share, middle, steps=5)
    page.mouse.up()


def test_a_limit_marks_what_breaks_it_and_chooses_anew(page: Page, own_url: str) -> None:
    page.goto(f"{own_url}?theme=light")
    advice, words = page.locator("#saturation-advice"), page.locator("#saturation-itl-max-words")
    recommended = page.locator("#saturation-prices tr.recommended")
    expect(recommended).to_have_count(1)
    expect(page.locator("#saturation-working")).to_be_hidden()
    expect(page.locator("#saturation-prices")).not_to_contain_text("✕")
    taken = advice.locator("b").inner_text()
    page.keyboard.press("l")
    slider = page.locator("#saturation-itl-max")
    expect(slider).to_be_focused()
    drag_to(page, slider, 0.27)
    expect(prices(page).locator("td.lost").first).to_contain_text("✕")
    slider.fill(stop("itl_max", "13ms"))
    expect(words).to_have_text("13.0 ms")
    expect(advice.locator("b")).not_to_have_text(taken)
    expect(recommended).to_contain_text("32")
    expect(page.locator("#saturation-throughput")).to_contain_text("longest wait you accept 13.0 ms")
    assert slider.get_attribute("aria-valuetext") == "13.0 ms"
    page.wait_for_url("**itl_max=13ms**")

    last = prices(page).nth(5).locator("td").nth(2)
    before = last.inner_text()
    page.locator("#saturation-decodes").fill(stop("decodes", "96"))
    page.keyboard.press("ArrowRight")
    expect(page.locator("#saturation-decodes-words")).to_have_text("128")
    expect(last).not_to_have_text(before)
    page.get_by_label("mixed", exact=True).check()
    page.wait_for_url("**decodes=128**policy=mixed**")

    chosen, after = advice.inner_text(), last.inner_text()
    page.reload()
    expect(advice).to_have_text(chosen)
    expect(last).to_have_text(after)
    expect(words).to_have_text("13.0 ms")
    expect(page.get_by_label("mixed", exact=True)).to_be_checked()

    page.keyboard.press("t")
    label = page.locator("#saturation-throughput .xtick text").first
    expect(label).to_have_css("fill", css(THEMES["dark"].muted))
    expect(page.locator("#saturation-throughput")).to_contain_text("longest wait you accept 13.0 ms")
    slider.focus()
    page.keyboard.press("End")
    expect(words).to_have_text("none")
    expect(page.locator("#saturation-throughput")).not_to_contain_text("longest wait you accept")
    assert "itl_max" not in query(page)


def test_bad_values_are_one_line_each_and_every_chart_has_its_table(page: Page, own_url: str) -> None:
    page.goto(f"{own_url}?sat=9&itl_max=fast&decodes=0&roof=x&policy=y")
    expect(page.locator("#notices p")).to_have_count(5)
    page.keyboard.press("?")
    keys = page.locator("#help")
    expect(keys.get_by_text("to the sliders")).to_be_visible()
    expect(keys.get_by_text("light, dark")).to_be_visible()
    expect(keys.get_by_text("pan left, right")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.locator("#saturation-prices tr.recommended")).to_have_count(1)
    expect(page.locator("#saturation-itl-max-words")).to_have_text("none")
    above = page.locator("#saturation-above")
    expect(above).to_contain_text("points above the roof")
    expect(above.locator(".reasons li").first).to_contain_text("more FLOPs are counted")

    assert page.locator(".saturation summary").count() == 8
    for summary in page.locator(".saturation summary").all():
        summary.focus()
        page.keyboard.press("Enter")
    for behind in page.locator(".saturation details > .scroll").all():
        expect(behind.locator("th, dt").first).to_be_visible()
    expect(above.locator("tbody tr").first).to_contain_text("count")
    entries = page.locator(".saturation th[data-metric]").evaluate_all(
        "heads => heads.map(head => head.title)"
    )
    assert len(entries) > 40
    assert all(re.search(r"docs/metrics\.md, \w", entry) for entry in entries)

    page.get_by_label("of the operators").check()
    expect(page.locator("#saturation-roofline")).to_contain_text("no kernels were recorded")
    page.wait_for_url("**roof=operators**")


def test_a_trace_with_nothing_to_fit_says_so_and_a_live_one_is_read_anew(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "live.chunkscope"
    columns = {"mode": 0, "num_extend_seqs": 1, "prefix_tokens": 0, "extend_tokens": 5, "decode_tokens": 0}
    with TraceWriter(path, {}) as writer:
        writer.append("forwards", {"forward_id": [0], "start_ns": 0, "end_ns": 9, **columns}, 1)
        app = create_app([open_timeline(path)], live=True)
        with served(app.server) as address:
            page.clock.install()
            page.goto(f"{address}/saturation")
            expect(page.locator("#saturation-answer")).to_contain_text(
                "No saturation point: 1 size of forwards"
            )
            expect(page.locator("#saturation-prices-note")).to_contain_text("No price list: ")
            expect(page.locator("#saturation-basis")).to_contain_text("meta.json tells no model")
            more = {**columns, "extend_tokens": 7}
            writer.append("forwards", {"forward_id": [1], "start_ns": 9, "end_ns": 19, **more}, 1)
            page.clock.fast_forward(11_000)
            expect(page.locator("#saturation-answer")).to_contain_text("2 sizes of forwards")
            page.goto("about:blank")  # the page asks on, and the server ends here
