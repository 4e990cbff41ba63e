"""The command of the sweep that a trace lacks."""

import shlex
from typing import Any

import pytest

from profiler.saturation_report import saturation_report
from tests.support.traces import MemoryTrace, prefill_trace
from ui.sweep_hint import sweep_hint

GPU = {"device": "simulated", "name": "H200 SXM", "devices": 8, "given": {"tflops": 800.0, "link_gb_s": 450}}


@pytest.mark.parametrize(
    ("meta", "options"),
    [
        ({}, "--model M"),
        ({"model": {"path": "it's a/model"}}, "--model 'it'\"'\"'s a/model'"),
        ({"provenance": "measured", "model": {"path": "m"}, "hardware": GPU}, "--model m"),
        ({"provenance": "simulated"}, "--model M --executor simulated --gpu NAME"),
        (
            {"provenance": "simulated", "model": {"path": "m"}, "hardware": {"name": "L4", "devices": 1}},
            "--model m --executor simulated --gpu L4",
        ),
        (
            {"provenance": "simulated", "model": {"path": "m"}, "hardware": GPU},
            "--model m --executor simulated --gpu 'H200 SXM' --tp 8 --peak-tflops 800 --link-bandwidth 450",
        ),
        (
            {"provenance": "simulated", "model": [], "hardware": 3},
            "--model M --executor simulated --gpu NAME",
        ),
    ],
)
def test_it_names_model_and_simulated_gpus_as_the_trace_does(meta: dict[str, Any], options: str) -> None:
    report = saturation_report(MemoryTrace({}))
    command = sweep_hint(report, meta)
    assert command == f"chunkscope sweep {options} -o sweep.chunkscope"
    assert shlex.split(command)[:2] == ["chunkscope", "sweep"]


def test_none_is_needed_where_the_point_is_known() -> None:
    sizes = [8, 16, 32, 64, 128, 256, 512, 1024, 2048]
    report = saturation_report(prefill_trace([(n, max(10**6, n * 10**4)) for n in sizes]), resamples=2)
    assert report.found.status == "ok"
    assert sweep_hint(report, {}) is None
