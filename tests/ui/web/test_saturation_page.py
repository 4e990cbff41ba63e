"""The Saturation page: its parts for traces that have, lack or cannot give what it shows."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dash
import pytest
from dash.development.base_component import Component
from plotly.utils import PlotlyJSONEncoder

from profiler.ceilings import Ceilings, GemmRate, Machine
from profiler.ceilings_store import keep_ceilings
from profiler.timeline.timeline import Timeline, open_timeline
from tests.support.three_runs import record_three_runs
from traces.meta import update_sealed_meta
from traces.writer import TraceWriter
from ui.palette import THEMES
from ui.web.pages import saturation
from ui.web.pages.saturation_evidence import EvidenceOf, chunk_marks
from ui.web.pages.saturation_view import PARTS, parts_of, unreadable

MACHINE = {"device": "cpu", "name": "<b>CPU</b>", "cores": 2, "threads": 2}
MODEL = {"name": "tiny", "path": "it's/a model.gguf", "dtype": "float32", "num_params": 5}
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


def test_the_page_has_a_place_for_every_part(runs: list[Timeline]) -> None:
    page = saturation.layout(runs, "light")
    assert {f"saturation-{part}" for part in PARTS} <= ids(page)
    assert "Reading the forwards" in text(page)
    for graph in (child for child in page._traverse() if type(child).__name__ == "Graph"):
        assert graph.config["showSendToCloud"] is False


def test_every_callback_speaks_of_what_the_page_has(runs: list[Timeline]) -> None:
    app = dash.Dash("test", suppress_callback_exceptions=True)
    app.layout = saturation.layout(runs, "light")
    saturation.register(app, runs)
    known = ids(app.layout)
    told = [end["id"] for callback in app._callback_list for end in callback["inputs"] + callback["state"]]
    assert {*told} <= known
    assert len(app._callback_list) == 4


def test_the_sweep_is_shown_first(runs: list[Timeline], evidence_of: EvidenceOf) -> None:
    assert evidence_of.richest() == NAMES.index("sweep")
    assert EvidenceOf(runs[:1]).richest() == 0


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_a_sweep_answers_in_words_figures_and_tables(evidence_of: EvidenceOf, theme: Any) -> None:
    evidence = evidence_of(3)
    parts = parts_of(evidence, [], theme)
    assert set(parts) == set(PARTS)
    tokens = evidence.report.found.tokens
    assert f"About {tokens} tokens fill one forward." in text(parts["answer"])
    assert text(parts["badge"]).startswith("◇ measured · ")
    assert text(parts["sizes"]).count("tokens/s") == 1 + 2 * evidence.report.sizes.height
    assert "10 sizes × 1 to 3, 8 to 1,024 tokens" in text(parts["basis"])
    assert plain(parts["throughput"])["data"]
    assert f"prefill{evidence.modes['forwards'][0]}" in text(parts["modes"])


def test_a_run_without_a_point_says_what_would_give_one(evidence_of: EvidenceOf) -> None:
    parts = parts_of(evidence_of(2), [], LIGHT)
    assert text(parts["answer"]).startswith("No saturation point: ")
    assert "chunkscope sweep --model 'it'\"'\"'s/a model.gguf' -o" in text(parts["price"])
    assert "faint: with a prefix, or of several rows" in text(parts["throughput-caption"])
    assert "◆ mixed" in text(parts["roofline-caption"])


def test_no_ceilings_name_the_command_that_measures_them(folder: Path, evidence_of: EvidenceOf) -> None:
    told = text(parts_of(evidence_of(0), [], LIGHT)["ceilings"])
    assert told.startswith("No ceilings were measured for <b>CPU</b>, 2 threads. ")
    assert f"chunkscope ceilings --threads 2 {folder / 'whole.chunkscope'}" in told


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        (ceilings(), "<b>CPU</b>, 2 threads: fp32 1.00 GFLOP/s, copy 1.00 GB/s, measured 2026-11-30"),
        (ceilings(load=3.0), "while other programs ran: may be too low"),
        (ceilings("bfloat16"), "are of bf16, not of this run's dtype: none is drawn"),
    ],
)
def test_kept_ceilings_are_the_roof(kept: Ceilings, told: str, runs: list[Timeline]) -> None:
    keep_ceilings(kept)
    evidence = EvidenceOf(runs)(1)
    parts = parts_of(evidence, [], LIGHT)
    assert told in text(parts["ceilings"])
    has_roof = kept.flops_per_s("float32") is not None
    assert ("ridge 1.00 FLOP/byte" in json.dumps(plain(parts["roofline"]))) is has_roof
    assert ("%" in text(parts["modes"])) is has_roof


def test_the_peaks_of_a_simulated_device_are_its_roof(tmp_path: Path) -> None:
    peaks = {"dtype": "bfloat16", "flops_per_s": 9.89e14, "bytes_per_s": 4.8e12}
    hardware = {"device": "simulated", "name": "<b>H200", "peaks": peaks}
    timeline = write_bare(tmp_path / "s.chunkscope", {"provenance": "simulated", "hardware": hardware})
    evidence = EvidenceOf([timeline])(0)
    assert evidence.roof is not None
    assert evidence.roof.ridge == pytest.approx(206, abs=0.1)
    parts = parts_of(evidence, [], LIGHT)
    assert "A sweep would not: it measures this machine." in text(parts["price"])
    assert "chunkscope" not in text(parts["price"])
    told = text(parts["ceilings"])
    assert told.startswith("Peaks of the simulated <b>H200, each GPU: bf16 989 TFLOP/s, memory 4.80 TB/s. ")


def test_chunk_sizes_of_the_same_setup_are_marked(runs: list[Timeline]) -> None:
    [mark] = chunk_marks(runs, 3)
    assert (mark.tokens, mark.label) == (128, "chunk 128 in B, C")
    answer = text(parts_of(EvidenceOf(runs)(3), [mark], LIGHT)["answer"])
    assert "A chunk of 128 gives up" in answer


def write_bare(path: Path, meta: Mapping[str, Any]) -> Timeline:
    with TraceWriter(path, meta):
        pass
    return open_timeline(path)


@pytest.mark.parametrize("meta", [{}, {"hardware": 3, "model": [], "engine": "x", "workload": None}])
def test_an_empty_trace_says_what_it_lacks(meta: dict[str, Any], tmp_path: Path) -> None:
    bare = write_bare(tmp_path / "bare.chunkscope", meta)
    assert chunk_marks([bare], 0) == []
    parts = parts_of(EvidenceOf([bare])(0), [], LIGHT)
    assert "no forward here" in text(parts["answer"])
    assert "--model M -o" in text(parts["price"])
    assert "does not say what machine" in text(parts["ceilings"])
    for name in ("throughput", "roofline"):
        assert plain(parts[name])["data"] == []


def test_a_trace_that_cannot_be_read_says_why() -> None:
    parts = unreadable("t: corrupt trace", LIGHT)
    assert set(parts) == set(PARTS)
    assert text(parts["price"]) == "t: corrupt trace"


def test_a_growing_trace_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "t.chunkscope"
    with TraceWriter(path, {}) as writer:
        columns = {"mode": 0, "num_extend_seqs": 1, "prefix_tokens": 0, "extend_tokens": 5}
        columns |= {"start_ns": 0, "end_ns": 9}
        writer.append("forwards", {"forward_id": [0], **columns}, 1)
        evidence_of = EvidenceOf([open_timeline(path)])
        assert evidence_of(0).report.points.height == 1
        writer.append("forwards", {"forward_id": [1], **columns}, 1)
        assert evidence_of(0).report.points.height == 2
