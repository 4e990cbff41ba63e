"""The picture of a run at a glance: what is drawn is the run's, and names are no markup."""

from dataclasses import replace

import plotly.graph_objects as go
import pytest

from profiler.ledger.parts import GapDetail
from profiler.timeline.timeline import Timeline, open_timeline
from tests.support.three_runs import CHUNK_TOKENS, record_three_runs
from ui.palette import THEMES
from ui.web.figures.glance import COLUMNS, glance_figure

LIGHT = THEMES["light"]


@pytest.fixture(scope="module")
def timeline(tmp_path_factory: pytest.TempPathFactory) -> Timeline:
    return open_timeline(record_three_runs(tmp_path_factory.mktemp("glance"))["mixed"])


def drawn(timeline: Timeline, gap: GapDetail | None = None, budget: int | None = CHUNK_TOKENS) -> go.Figure:
    report = timeline.stall_report
    strip = timeline.strip(timeline.start_ns, timeline.end_ns, COLUMNS)
    wall = None if gap is None or report.longest is None else (report.longest, gap)
    ends = timeline.start_ns, timeline.end_ns
    return glance_figure(strip, report.over_time, budget, wall, ends, LIGHT)


def test_bars_are_the_forwards_decode_rows_below_prompts(timeline: Timeline) -> None:
    strip = timeline.strip(timeline.start_ns, timeline.end_ns, COLUMNS)
    decode, prefill = drawn(timeline).data[:2]
    assert len(decode.x) == int((strip.decode_tokens > 0).sum())
    assert len(prefill.x) == int((strip.extend_tokens > 0).sum())
    mixed = (strip.decode_tokens > 0) & (strip.extend_tokens > 0)
    assert mixed.any()
    tops = {
        row[0]: base + y for row, base, y in zip(prefill.customdata, prefill.base, prefill.y, strict=True)
    }
    full = strip.forward_id[strip.extend_tokens + strip.decode_tokens == CHUNK_TOKENS].tolist()
    assert {tops[forward] for forward in full} == {
        CHUNK_TOKENS
    }  # what is drawn higher to be seen takes no more
    assert all(start >= 0 for start in decode.x)


def test_the_waiting_below_is_that_of_the_ledger(timeline: Timeline) -> None:
    causes = timeline.stall_report.over_time
    waiting = [bar for bar in drawn(timeline).data if bar.yaxis == "y2"]
    spans_s = (causes.edges_ns[1:] - causes.edges_ns[:-1]) / 1e9
    total_s = sum(float((bar.y * spans_s).sum()) for bar in waiting)
    assert total_s == pytest.approx(timeline.stall_report.waiting_ns / 1e9)


def test_the_budget_is_a_line_and_its_number(timeline: Timeline) -> None:
    figure = drawn(timeline)
    [line] = figure.layout.shapes
    assert (line.y0, line.y1) == (CHUNK_TOKENS, CHUNK_TOKENS)
    assert "budget 128" in [note.text for note in figure.layout.annotations]
    assert not drawn(timeline, budget=None).layout.shapes


def test_labels_that_fit_name_the_culprits_as_text(timeline: Timeline) -> None:
    gap = timeline.worst_gap()
    assert gap is not None
    chunk = replace(gap.chunks[0], start_ns=timeline.start_ns, end_ns=timeline.end_ns, name="<b>x</b>")
    texts = [note.text for note in drawn(timeline, replace(gap, chunks=(chunk,))).layout.annotations]
    assert "<b>&lt;b&gt;x&lt;/b&gt;: 1 chunk</b>" in texts
    narrow = replace(chunk, end_ns=chunk.start_ns + 1)
    texts = [note.text for note in drawn(timeline, replace(gap, chunks=(narrow,))).layout.annotations]
    assert not any("chunk</b>" in text for text in texts)
    texts = [
        note.text for note in drawn(timeline, replace(gap, chunks=(replace(chunk, of=1),))).layout.annotations
    ]
    assert any(text.endswith(": whole prompt</b>") for text in texts)
