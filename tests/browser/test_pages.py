"""The web UI in a browser: pages, keys, links, panels, and what names and addresses cannot do to it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from profiler.tables import frame
from profiler.timeline.timeline import Timeline, open_timeline
from tests.support.rewritten import rewrite
from tests.support.served import served
from traces.reader import open_trace
from traces.writer import TraceWriter
from ui.state_words import state_lines
from ui.web.app import create_app
from ui.words import seconds

HOSTILE = {
    "decode-1": "<img src=x onerror=\"document.title='owned'\">",
    "decode-2": "[bold red]x[/] \x1b[31mred\x1b[0m \u202eback",
    "decode-3": "n" * 10_240,
    "decode-4": "שלום עולם",
    "long-1": "</script><script>document.title='owned'</script>",
}
CANVAS = "#timeline canvas"


@dataclass(frozen=True)
class Site:
    """Traces and where they are shown."""

    url: str
    timelines: Sequence[Timeline]

    def opened(self, page: Page, path: str = "/compare", query: str = "") -> Page:
        page.goto(f"{self.url}{path}{query}")
        page.wait_for_selector("main:not(.loading)")
        if path == "/compare":
            page.wait_for_selector(CANVAS)
        return page


def show(paths: Sequence[Path]) -> Iterator[Site]:
    timelines = [open_timeline(path) for path in paths]
    with served(create_app(timelines).server) as url:
        yield Site(url, timelines)


@pytest.fixture(scope="module")
def site(three_runs: dict[str, Path]) -> Iterator[Site]:
    yield from show([three_runs[name] for name in ("whole", "chunked", "mixed", "sweep")])


@pytest.fixture(scope="module")
def lacking(three_runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A trace of forwards alone, and one of nothing at all."""
    folder = tmp_path_factory.mktemp("lacking")
    forwards_only = rewrite(
        three_runs["chunked"],
        folder / "forwards-only.chunkscope",
        without=("rows", "requests", "events", "pages", "kernels"),
    )
    tables = ("forwards", "rows", "requests", "events", "pages", "kernels")
    nothing = rewrite(three_runs["chunked"], folder / "nothing.chunkscope", without=tables)
    yield from show([forwards_only, nothing])


def query(page: Page) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlsplit(page.url).query).items()}


def wait_for_query(page: Page, *keys: str) -> dict[str, str]:
    page.wait_for_function(
        "keys => keys.every((key) => new URLSearchParams(location.search).has(key))", arg=list(keys)
    )
    return query(page)


@pytest.mark.parametrize("path", ["/compare", "/saturation", "/trace"])
def test_each_page_opens(page: Page, site: Site, path: str) -> None:
    site.opened(page, path)
    expect(page.locator("main h1")).not_to_be_empty()
    expect(page.locator(f'nav a[data-page="{path}"]')).to_have_attribute("aria-current", "page")
    expect(page.locator(".badge").first).to_contain_text("◇ simulated")


def test_each_page_opens_on_traces_that_lack_tables(page: Page, lacking: Site) -> None:
    lacking.opened(page, query="?sat=1")
    expect(page.locator("#gap-panel")).to_contain_text("No gap is chosen")
    expect(page.locator(".kpis tbody tr").nth(1)).to_contain_text("–")
    page.locator("nav a[data-page='/saturation']").click()
    expect(page.locator("main.saturation h1")).not_to_contain_text("Reading")
    page.locator("nav a[data-page='/trace']").click()
    expect(page.locator("main.trace h1")).to_contain_text("empty tables: rows, requests")
    expect(page.locator(".rules")).to_contain_text("the trace lacks")


def test_the_culprit_of_the_worst_gap_is_one_click_away(page: Page, site: Site) -> None:
    site.opened(page, query="?run=2")
    page.get_by_role("button", name="Worst of all").click()
    worst = max((t.worst_gap() for t in site.timelines[:3]), key=lambda gap: gap.gap_ns)
    panel = page.locator("#gap-panel")
    expect(panel.locator("h2")).to_contain_text(f"{worst.name} waited")
    expect(panel).to_contain_text(f"Prefill of {worst.culprits[0].name}")
    shown = wait_for_query(page, "rid", "tok")
    assert (int(shown["rid"]), int(shown["tok"])) == (worst.rid, worst.token_index)
    page.get_by_role("button", name="C Chunked + mixed").click()
    mixed = site.timelines[2].worst_gap()
    assert mixed is not None
    expect(panel.locator("h2")).to_have_text(
        f"{mixed.name} waited {seconds(mixed.gap_ns / 1e9)} for its token {mixed.token_index}"
    )


def test_keys_change_the_range_in_the_address(page: Page, site: Site) -> None:
    site.opened(page)
    ranges = [(0, max(t.end_ns - t.start_ns for t in site.timelines[:3]))]
    for key in ("w", "w", "d", "a", "s"):
        page.keyboard.press(key)
        page.wait_for_function(
            "([t0, t1]) => { const q = new URLSearchParams(location.search);"
            " return q.has('t0') && (Number(q.get('t0')) !== t0 || Number(q.get('t1')) !== t1); }",
            arg=list(ranges[-1]),
        )
        ranges.append((int(query(page)["t0"]), int(query(page)["t1"])))
    (_, (_, w1), (w20, w21), (d0, d1), (a0, a1), (s0, s1)) = ranges
    assert w21 - w20 < w1  # W zooms in
    assert d0 > w20 and d1 > w21  # noqa: PT018 D to the right
    assert a0 < d0 and a1 < d1  # noqa: PT018 A to the left
    assert s1 - s0 > a1 - a0  # S zooms out


def test_a_dragged_selection_sums_what_the_trace_holds(page: Page, site: Site) -> None:
    site.opened(page)
    box = page.locator(CANVAS).last.bounding_box()
    assert box is not None
    y = box["y"] + 60
    page.mouse.move(box["x"] + 420, y)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, y, steps=2)
    page.mouse.move(box["x"] + 680, y, steps=2)
    page.mouse.up()
    page.wait_for_function(
        "() => { const sel = Chunkscope.state.get().sel?.join('-');"
        " return sel && new URLSearchParams(location.search).get('sel') === sel"
        " && document.querySelector('#sums-panel table')?.dataset.sel === sel; }"
    )
    start_ns, end_ns = map(int, query(page)["sel"].split("-"))
    rows = page.locator("#sums-panel tbody tr")
    expect(page.locator("#sums-panel .muted")).to_contain_text(
        f"{start_ns / 1e9:,.3f} to {end_ns / 1e9:,.3f}"
    )
    shown = {
        row.locator("th").inner_text(): [
            int(text.replace(",", "")) for text in row.locator("td").all_inner_texts()
        ]
        for row in rows.all()
        if row.locator("th").inner_text()
        in ("forwards", "prefill tokens", "decode tokens", "tokens given out")
    }
    for run, timeline in enumerate(site.timelines[:3]):
        first, last = timeline.start_ns + start_ns, timeline.start_ns + end_ns
        forwards = frame(open_trace(timeline.path), "forwards")
        inside = forwards.filter(forwards["start_ns"].is_between(first, last, closed="left"))
        results = forwards.select("forward_id", t_ns="result_end_ns")
        tokens = frame(open_trace(timeline.path), "rows").join(results, on="forward_id")
        given = tokens.filter(
            tokens["token_index"].is_not_null() & tokens["t_ns"].is_between(first, last, closed="left")
        )
        assert {label: values[run] for label, values in shown.items()} == {
            "forwards": inside.height,
            "prefill tokens": inside["extend_tokens"].sum(),
            "decode tokens": inside["decode_tokens"].sum(),
            "tokens given out": given.height,
        }


def test_a_link_restores_the_view(page: Page, site: Site) -> None:
    gap = site.timelines[1].worst_gap()
    assert gap is not None
    link = (
        f"?t0=100000000&t1=300000000&t=150000000&run=1&rid={gap.rid}&tok={gap.token_index}"
        "&sel=120000000-160000000&theme=dark"
    )
    site.opened(page, query=link)
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator("#cursor-time")).to_have_text("0.150 s")
    expect(page.locator("#gap-panel h2")).to_contain_text(gap.name)
    expect(page.locator("#sums-panel h3")).to_have_text("Selected 40.0 ms")
    page.locator("nav a[data-page='/trace']").click()
    expect(page.locator("main.trace")).to_be_visible()
    expect(page.locator("#chip-time")).to_have_text("0.150 s")
    assert query(page) == query_of(link)
    page.locator("nav a[data-page='/compare']").click()
    page.wait_for_selector(CANVAS)
    page.keyboard.press("w")
    page.wait_for_function("!location.search.includes('t0=100000000&')")
    shown = query(page)
    assert 100_000_000 < int(shown["t0"]) < int(shown["t1"]) < 300_000_000


def query_of(link: str) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(link.removeprefix("?")).items()}


def test_the_state_panel_says_what_replay_says(page: Page, site: Site) -> None:
    timeline = site.timelines[1]
    length = timeline.end_ns - timeline.start_ns
    site.opened(page, query="?run=1&t=0")
    for t in (0, length // 5, length // 3, length // 2, length - 1):
        page.evaluate("t => Chunkscope.state.set({ t }, 'test')", t)
        page.wait_for_selector(f"#state-lines[data-t='{t}'][data-run='1']", state="attached")
        rows = page.locator("#state-lines tr")
        shown = [tuple(row.locator("th, td").all_text_contents()) for row in rows.all()]
        assert shown == state_lines(timeline.state_at(timeline.start_ns + t))


def test_play_and_steps_move_the_cursor(page: Page, site: Site) -> None:
    timeline = site.timelines[0]
    site.opened(page, query="?run=0&t=0")
    page.keyboard.press("ArrowRight")
    first = timeline.forward_start(timeline.start_ns, 1)
    assert first is not None
    expect(page.locator("#cursor-time")).to_have_text(f"{(first - timeline.start_ns) / 1e9:.3f} s")
    page.keyboard.press("]")
    expect(page.locator("#gap-panel h2")).to_contain_text("waited")
    page.keyboard.press("Space")
    expect(page.locator("#do-play")).to_have_attribute("aria-pressed", "true")
    before = page.locator("#cursor-time").inner_text()
    expect(page.locator("#cursor-time")).not_to_have_text(before)
    page.keyboard.press("Space")
    expect(page.locator("#do-play")).to_have_attribute("aria-pressed", "false")


def test_names_are_text(page: Page, three_runs: dict[str, Path], tmp_path: Path) -> None:
    path = rewrite(three_runs["chunked"], tmp_path / "<b>t.chunkscope", names=HOSTILE)
    for site in show([path]):
        site.opened(page)
        expect(page.locator("#gap-panel h2")).to_contain_text("waited")
        panel = page.locator("#gap-panel").inner_text()
        assert HOSTILE["decode-1"][:40] in panel
        page.keyboard.press("/")
        page.locator("#search-text").fill("n" * 20)
        expect(page.locator("#search-found button")).to_have_count(1)
        page.locator("#search-found button").click()
        expect(page.locator("#gap-panel h2")).to_contain_text("nnn…")
        assert page.locator("img, main script, aside script").count() == 0
        assert page.title() == "Chunkscope"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        site.opened(page, "/trace")
        expect(page.locator("#trace-facts")).to_contain_text("<b>t.chunkscope")
        page.close()  # before its server


def test_a_malformed_address_is_named_and_the_default_shown(page: Page, site: Site) -> None:
    site.opened(page, query="?t0=NaN&run=99&t=1e400&sel=9&theme=%3Cscript%3E&x=%F0%9F")
    notices = page.locator("#notices p")
    expect(notices).to_have_count(5)
    wanted = ("theme=<script>", "run=99", "t0=NaN", "sel", "t=1e400")
    for line, named in zip(notices.all_inner_texts(), wanted, strict=True):
        assert named in line
    expect(page.locator("#gap-panel h2")).to_contain_text("waited")


def test_an_unknown_page_says_what_there_is(page: Page, site: Site) -> None:
    response = page.request.get(f"{site.url}/nowhere<b>")
    assert response.status == 404
    assert re.search(r"There is no page .*nowhere&lt;b&gt;.*/compare", response.text(), re.DOTALL)


def test_a_growing_trace_is_followed(page: Page, tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "growing.chunkscope", {"provenance": "measured"})
    timeline = open_timeline(writer.path)
    with served(create_app([timeline], live=True).server) as url:
        site = Site(url, [timeline])
        site.opened(page)
        expect(page.locator("h1")).to_have_text("The trace holds no forward.")
        expect(page.locator("#live-badge")).to_have_text("live")
        for i in range(3):
            start = 10_000_000 * i
            times = {"plan_start_ns": start, "plan_end_ns": start + 1, "start_ns": start + 2}
            ends = {"end_ns": start + 9_000_000, "result_end_ns": start + 9_000_001}
            writer.append("forwards", {"forward_id": i, "mode": 1, **times, **ends}, 1)
        expect(page.locator("h1")).to_contain_text("No token is recorded")
        assert page.evaluate("Chunkscope.state.get().t1") == timeline.end_ns - timeline.start_ns > 20_000_000
        assert page.evaluate("Chunkscope.state.facts().worst") is None
        writer.close()
        expect(page.locator("#live-badge")).to_have_text("ended")
        page.close()  # before its server
