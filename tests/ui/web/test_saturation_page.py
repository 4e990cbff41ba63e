"""The Saturation page: its parts for traces that have, lack or cannot give what it shows."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import dash
import pytest
from dash.development.base_component import Component
from plotly.utils import PlotlyJSONEncoder

from profiler.advice import Advice
from profiler.ceilings import Ceilings, GemmRate, Machine
from profiler.ceilings_store import keep_ceilings
from profiler.price_rows import Limits
from profiler.riding import riding
from profiler.timeline.timeline import Timeline, open_timeline
from tests.support.price_row import ROW
from tests.support.recorded import TINY
from tests.support.three_runs import record_three_runs
from traces.meta import update_sealed_meta
from traces.writer import TraceWriter
from ui.palette import THEMES
from ui.web.limit_query import Wanted, read_wanted, step_of, steps, words_of
from ui.web.pages import saturation
from ui.web.pages.saturation_advice import ADVICE_PARTS, advice_parts, marks_of, no_advice
from ui.web.pages.saturation_evidence import Evidence, EvidenceOf, chunk_marks
from ui.web.pages.saturation_limits import SLIDERS, texts_of
from ui.web.pages.saturation_prices import whole_list
from ui.web.pages.saturation_roof import ROOF_PARTS, roof_parts, unreadable_roof
from ui.web.pages.saturation_view import PARTS, parts_of, unreadable
from ui.web.urls import SaturationView, read_saturation

MACHINE = {"device": "cpu", "name": "<b>CPU</b>", "cores": 2, "threads": 2}
MODEL = {**asdict(TINY), "path": "it's/a model.gguf", "dtype": "float32", "num_params": 5}
NAMES = ("whole", "chunked", "mixed", "sweep")
LIGHT = THEMES["light"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for path in record_three_runs(folder).values():
        update_sealed_meta(path, {"provenance": "measured", "hardware": MACHINE, "model": MODEL})
    return folder


@pytest.fixture(scope="module")
def runs(folder: Path) -> list[Timeline]:
    return [open_timeline(folder / f"{name}.chunkscope") for name in NAMES]


@pytest.fixture(scope="module")
def evidence_of(runs: list[Timeline]) -> EvidenceOf:
    return EvidenceOf(runs)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def ceilings(dtype: str = "float32", load: float = 0.0) -> Ceilings:
    machine = Machine("cpu", str(MACHINE["name"]), 2)
    return Ceilings(machine, "2026-11-30T09:00:00+00:00", "2", (GemmRate(dtype, 1e9, 8),), 1e9, 8, load)


def plain(value: object) -> Any:
    """What the browser gets."""
    return json.loads(json.dumps(value, cls=PlotlyJSONEncoder, allow_nan=False))


def text(value: object) -> str:
    """All text of a component as the browser gets it, in order."""
    return "".join(_texts(plain(value)))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts(value["props"].get("children"))
    elif isinstance(value, list):
        for child in value:
            yield from _texts(child)


def ids(component: Component) -> set[str]:
    return {str(child.id) for child in component._traverse() if getattr(child, "id", None)}


def roof_of(evidence: Evidence, by: str = "forwards") -> dict[str, object]:
    return roof_parts(evidence.board, by, str(evidence.timeline.path), LIGHT)


@pytest.fixture(scope="module")
def advice(evidence_of: EvidenceOf) -> Advice:
    """Of the run with mixed chunks, whose workload is tried."""
    found = evidence_of.advise(2, Limits())
    assert isinstance(found, Advice)
    return found


def broken(table: Any) -> int:
    """Cells over a limit."""
    return sum(bool(cell.get("broken")) for row in table["rows"] for cell in row["cells"])


def test_the_page_has_a_place_for_every_part(runs: list[Timeline]) -> None:
    page = saturation.layout(runs, "light")
    assert {f"saturation-{part}" for part in (*PARTS, *ROOF_PARTS, *ADVICE_PARTS)} <= ids(page)
    every = [str(child.id) for child in page._traverse() if getattr(child, "id", None)]
    assert len(every) == len(set(every))
    assert "Reading the forwards" in text(page)
    for graph in (child for child in page._traverse() if type(child).__name__ == "Graph"):
        assert graph.config["showSendToCloud"] is False


def test_every_callback_speaks_of_what_the_page_has(runs: list[Timeline]) -> None:
    app = dash.Dash("test", suppress_callback_exceptions=True)
    app.layout = saturation.layout(runs, "light")
    saturation.register(app, runs, EvidenceOf(runs))
    known = ids(app.layout)
    told = [end["id"] for callback in app._callback_list for end in callback["inputs"] + callback["state"]]
    assert {*told} <= known
    assert len(app._callback_list) == 9


@pytest.mark.parametrize(
    ("search", "told"),
    [
        ("itl_max=110", "itl_max='110' is no duration: give one as in itl_max=110ms"),
        ("itl_p99=-1ms", "itl_p99='-1ms' is no duration"),
        ("ttft_p99=1e9s", "ttft_p99='1e9s' is no duration"),
        ("decodes=0", "decodes=0 is too small"),
        ("decodes=x", "decodes=x is not a whole number"),
        ("sat=4", "sat=4 is too large: give at most 3"),
        ("roof=<b>", "roof=<b> is none of forwards, operators"),
        ("policy=%0Ax", "policy=\\nx is none of prefill-first, mixed, interval"),
    ],
)
def test_a_bad_value_is_one_line_and_its_default_shown(search: str, told: str) -> None:
    view, notices = read_saturation(f"?{search}&theme=dark", 4)
    assert view == SaturationView()
    [line] = notices
    assert line.startswith(told)
    assert "\n" not in line


def test_an_address_is_read_exactly() -> None:
    search = "?sat=2&itl_max=113.5ms&itl_p99=900us&ttft_p99=1.4s&decodes=7&roof=operators&policy=mixed"
    view, notices = read_saturation(search, 4)
    assert notices == []
    assert view.wanted == Wanted(Limits(0.1135, 0.0009, 1.4), 7)
    assert (view.run, view.roof, view.policy) == (2, "operators", "mixed")
    written = texts_of(view.wanted)
    assert read_wanted(written) == (view.wanted, [])
    assert step_of("itl_max", view.wanted) == [step.text for step in steps("itl_max")].index("110ms")
    assert step_of("itl_p99", view.wanted) == 0
    assert steps("decodes")[step_of("decodes", view.wanted)].text in ("6", "8")


def test_every_stop_of_a_slider_is_a_limit_that_the_address_can_hold() -> None:
    for key in SLIDERS:
        for at, step in enumerate(steps(key)):
            wanted, wrong = read_wanted({key: step.text} if step.text else {})
            assert not wrong
            assert step_of(key, wanted) == at
            assert words_of(key, wanted) == step.words


def test_a_limit_between_two_stops_is_told_exactly() -> None:
    wanted, wrong = read_wanted({"itl_max": "500ms", "decodes": "7"})
    assert not wrong
    assert (words_of("itl_max", wanted), words_of("decodes", wanted)) == ("500 ms", "7")
    assert "500ms" not in [step.text for step in steps("itl_max")]


def test_the_sweep_is_shown_first(runs: list[Timeline], evidence_of: EvidenceOf) -> None:
    assert evidence_of.richest() == NAMES.index("sweep")
    assert EvidenceOf(runs[:1]).richest() == 0


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_a_sweep_answers_in_words_figures_and_tables(evidence_of: EvidenceOf, theme: Any) -> None:
    evidence = evidence_of(3)
    report, parts = evidence.board.report, parts_of(evidence, theme)
    assert set(parts) == set(PARTS)
    assert f"About {report.found.tokens} tokens fill one forward." in text(parts["answer"])
    assert "A chunk of 128 gives up" in text(parts["answer"])
    assert text(parts["badge"]).startswith("◇ measured · ")
    assert text(parts["sizes"]).count("tokens/s") == 1 + 2 * report.sizes.height
    assert "10 sizes × 1 to 3, 8 to 1,024 tokens" in text(parts["basis"])
    assert "t(T) = " in text(parts["basis"])
    assert "compute, a token" in text(parts["terms"])
    for name in ("throughput", "residuals", "memory"):
        assert plain(parts[name])["data"], name
    assert "naive" in text(parts["conventions"])
    assert f"prefill{evidence.board.modes['forwards'][0]}" in text(roof_of(evidence)["modes"])


def test_a_run_without_a_point_says_what_would_give_one(runs: list[Timeline]) -> None:
    evidence = EvidenceOf(runs[2:3])(0)
    parts = parts_of(evidence, LIGHT)
    assert text(parts["answer"]).startswith("No saturation point: ")
    assert "chunkscope sweep --model 'it'\"'\"'s/a model.gguf' -o" in text(parts["price"])
    assert "faint: with a prefix, or of several rows" in text(parts["throughput-caption"])
    assert "decode rows alone" in text(parts["batches-said"])
    assert "◆ mixed" in text(roof_of(evidence)["roofline-caption"])
    assert "no kernels were recorded" in json.dumps(plain(roof_of(evidence, "operators")["roofline"]))


def test_the_price_list_marks_what_to_take_and_what_breaks_a_limit(
    evidence_of: EvidenceOf, advice: Advice
) -> None:
    parts = advice_parts(evidence_of(2), advice, None)
    assert set(parts) == set(ADVICE_PARTS)
    row = advice.choice.row
    assert row is not None
    assert " ".join(row.options.arguments()) in text(parts["advice"])
    assert broken(parts["prices-data"]) == 0
    for name in ("prices-data", "all-prices-data"):
        assert [each["recommended"] for each in plain(parts[name])["rows"]].count(True) == 1
    assert len(plain(parts["all-prices-data"])["rows"]) == len(advice.rows)
    waits = sorted(each.longest_wait_s for each in advice.rows if each.longest_wait_s is not None)
    limited = advice.under(Limits(itl_max_s=waits[len(waits) // 2]))
    table = advice_parts(evidence_of(2), limited, "prefill-first")["prices-data"]
    margin = limited.margins
    over = [r for r in limited.rows if r.breaks(margin.tightened(r, limited.choice.limits))]
    shown = [r for r in over if not r.options.mixed and not r.options.interval]
    assert 0 < broken(table) == len(shown)
    assert marks_of(evidence_of(2), limited).limit_s == limited.choice.limits.itl_max_s


def test_each_number_of_the_price_list_stands_under_its_head(advice: Advice) -> None:
    table = whole_list(replace(advice, rows=(ROW,)))
    (row,) = table["rows"]
    heads = [head["text"] for head in table["heads"]]
    assert dict(zip(heads, [row["name"], *(cell["text"] for cell in row["cells"])], strict=True)) == {
        "chunk": "512",
        "policy": "mixed",
        "of best": "90 %",
        "first": "11.0 ms",
        "last": "22.0 ms",
        "longest wait": "33.0 ms",
        "ITL p99": "44.0 ms",
        "TTFT p99": "55.0 ms",
        "TTFT long": "66.0 ms",
        "vs whole": "+50 %",
        "activations": "88.0 MiB",
        "forwards": "64",
        "output": "77.0 tokens/s",
        "KV tokens": "99,000",
    }


def test_a_limit_that_nothing_keeps_is_named(evidence_of: EvidenceOf, advice: Advice) -> None:
    parts = advice_parts(evidence_of(2), advice.under(Limits(itl_max_s=1e-6)), None)
    assert text(parts["advice"]).startswith("✕ No option meets ITL max ")
    assert not any(each["recommended"] for each in plain(parts["prices-data"])["rows"])
    assert marks_of(evidence_of(2), advice.under(Limits(itl_max_s=1e-6))).recommended is None


def test_smaller_chunks_are_offered_only_where_they_may_keep_the_limits(
    evidence_of: EvidenceOf, advice: Advice
) -> None:
    def offered(limit_s: float, *, untried: bool) -> bool:
        limited = advice.under(Limits(itl_max_s=limit_s))
        assert limited.choice.row is None
        note = text(advice_parts(evidence_of(2), limited, None, untried=untried)["prices-note"])
        return "load the page anew" in note

    shortest = min(row.longest_wait_s or 1e9 for row in advice.rows)
    assert offered(0.9 * shortest, untried=True)
    assert not offered(0.9 * shortest, untried=False)
    assert not offered(1e-6, untried=True)  # a forward of decodes alone takes longer


def test_limits_that_no_row_keeps_have_smaller_chunks_tried(runs: list[Timeline]) -> None:
    evidence_of = EvidenceOf(runs[2:3])
    first = evidence_of.advise(0, Limits())
    assert isinstance(first, Advice)
    assert evidence_of.advise(0, Limits(itl_max_s=10.0)) is first
    smallest = min(row.options.chunk_tokens or 10**9 for row in first.rows)
    waits = [row.longest_wait_s or 0 for row in first.rows if row.options.chunk_tokens == smallest]
    tight = Limits(itl_max_s=0.9 * min(waits))
    assert first.choose(tight).row is None
    second = evidence_of.advise(0, tight)
    assert isinstance(second, Advice)
    assert len(second.rows) > len(first.rows)
    assert evidence_of.advise(0, tight) is second


def test_the_answer_of_all_runs_stands_in_for_a_runs_own(evidence_of: EvidenceOf, advice: Advice) -> None:
    assert text(advice_parts(evidence_of(2), advice, None)["answer"]).endswith(" by forwards of all runs.")
    assert advice_parts(evidence_of(3), advice, None)["answer"] is dash.no_update


def test_advice_by_the_forwards_of_several_runs_says_so(evidence_of: EvidenceOf, advice: Advice) -> None:
    assert advice.num_traces == 4
    assert "◇ of 4 runs together" in text(advice_parts(evidence_of(2), advice, None)["advice"])
    alone = replace(advice, num_traces=1)
    assert "together" not in text(advice_parts(evidence_of(2), alone, None)["advice"])


def test_decodes_that_ride_along_make_mixed_forwards_longer(advice: Advice) -> None:
    ridden = riding(advice, 32)
    mixed = [(row, new) for row, new in zip(advice.rows, ridden.rows, strict=True) if row.options.mixed]
    assert len([row for row, new in mixed if new != row]) > 2
    for row, new in zip(advice.rows, ridden.rows, strict=True):
        assert new.options == row.options
        assert (new.longest_wait_s or 0) >= (row.longest_wait_s or 0)
        assert new == row or row.options.mixed
    assert ridden.choice.limits == advice.choice.limits


def test_a_run_without_a_model_has_no_price_list_and_says_why(tmp_path: Path) -> None:
    bare = write_bare(tmp_path / "bare.chunkscope", {})
    reason = EvidenceOf([bare]).advise(0, Limits())
    assert isinstance(reason, str)
    assert text(no_advice(reason)["prices-note"]) == f"No price list: {reason}."
    assert text(no_advice(None)["prices-note"]) == ""


def test_no_ceilings_name_the_command_that_measures_them(folder: Path, evidence_of: EvidenceOf) -> None:
    told = text(roof_of(evidence_of(0))["ceilings"])
    assert told.startswith("No ceilings were measured for <b>CPU</b>, ")
    assert f"chunkscope ceilings --threads 2 {folder / 'whole.chunkscope'}" in told


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        (ceilings(), "fp32 1.00 GFLOP/s, copy 1.00 GB/s: measured on <b>CPU</b>, 2 threads, 2026-11-30"),
        (ceilings(load=3.0), "while other programs ran: may be too low"),
        (ceilings("bfloat16"), "are of bfloat16, not of float32"),
    ],
)
def test_kept_ceilings_are_the_roof(kept: Ceilings, told: str, runs: list[Timeline]) -> None:
    keep_ceilings(kept)
    evidence = EvidenceOf(runs)(1)
    parts = roof_of(evidence)
    assert told in text(parts["ceilings"])
    has_roof = kept.flops_per_s("float32") is not None
    assert ("ridge 1.00 FLOP/byte" in json.dumps(plain(parts["roofline"]))) is has_roof
    assert ("%" in text(parts["modes"])) is has_roof


def test_the_peaks_of_a_simulated_device_are_its_roof(tmp_path: Path) -> None:
    peaks = {"dtype": "bfloat16", "flops_per_s": 9.89e14, "bytes_per_s": 4.8e12}
    hardware = {"device": "simulated", "name": "<b>H200", "peaks": peaks}
    timeline = write_bare(tmp_path / "s.chunkscope", {"provenance": "simulated", "hardware": hardware})
    evidence = EvidenceOf([timeline])(0)
    assert evidence.board.roof is not None
    assert evidence.board.roof.ridge == pytest.approx(206, abs=0.1)
    parts = parts_of(evidence, LIGHT)
    told = text(parts["price"])
    assert told.startswith("A simulated sweep measures them. chunkscope sweep --model M --executor simulated")
    assert "--gpu '<b>H200' -o" in told
    told = text(roof_of(evidence)["ceilings"])
    assert told.startswith("bf16 989 TFLOP/s, memory 4.80 TB/s: peaks of the simulated <b>H200. ")


def test_a_sweep_that_is_shown_beside_is_named_and_none_is_advised(evidence_of: EvidenceOf) -> None:
    evidence = evidence_of(0)
    assert evidence.board.report.found.status != "ok"
    assert text(parts_of(evidence, LIGHT)["price"]) == "See D sweep, a sweep of the same model."
    assert evidence_of(3).sweep is None


def test_chunk_sizes_of_the_same_setup_are_marked(runs: list[Timeline]) -> None:
    [mark] = chunk_marks(runs, 3)
    assert (mark.tokens, mark.label) == (128, "chunk 128 in B, C")


def write_bare(path: Path, meta: Mapping[str, Any]) -> Timeline:
    with TraceWriter(path, meta):
        pass
    return open_timeline(path)


@pytest.mark.parametrize("meta", [{}, {"hardware": 3, "model": [], "engine": "x", "workload": None}])
def test_an_empty_trace_says_what_it_lacks(meta: dict[str, Any], tmp_path: Path) -> None:
    bare = write_bare(tmp_path / "bare.chunkscope", meta)
    assert chunk_marks([bare], 0) == []
    evidence = EvidenceOf([bare])(0)
    parts = {**parts_of(evidence, LIGHT), **roof_of(evidence)}
    assert "no forward here" in text(parts["answer"])
    assert "--model M -o" in text(parts["price"])
    assert "does not say" in text(parts["ceilings"])
    assert "meta.json tells no model" in text(parts["basis"])
    for name in ("throughput", "roofline", "residuals", "batches", "memory"):
        assert plain(parts[name])["data"] == []


def test_a_trace_that_cannot_be_read_says_why() -> None:
    parts = unreadable("t: corrupt trace", LIGHT)
    assert set(parts) == set(PARTS)
    assert text(parts["price"]) == "t: corrupt trace"
    assert set(unreadable_roof(LIGHT)) == set(ROOF_PARTS)


def test_a_growing_trace_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "t.chunkscope"
    with TraceWriter(path, {}) as writer:
        columns = {"mode": 0, "num_extend_seqs": 1, "prefix_tokens": 0, "extend_tokens": 5}
        columns |= {"start_ns": 0, "end_ns": 9}
        writer.append("forwards", {"forward_id": [0], **columns}, 1)
        evidence_of = EvidenceOf([open_timeline(path)])
        assert evidence_of(0).board.report.points.height == 1
        writer.append("forwards", {"forward_id": [1], **columns}, 1)
        assert evidence_of(0).board.report.points.height == 2
