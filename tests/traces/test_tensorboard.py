"""The file for TensorBoard, as its plugin reads it: numbers, links and times."""

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.support.chrome import nanoseconds
from traces.errors import TraceError
from traces.tensorboard import APART_NS, DeviceKernel, OperatorCall, Step, write_tensorboard

HOSTILE = 'void <b>&"é\x00\n'


def kernel(start_ns: int, end_ns: int, name: str = "k", **args: Any) -> DeviceKernel:
    return DeviceKernel(name, start_ns, end_ns, stream=7, args=args)


STEPS = [
    Step(3, 10_000, 90_001, [OperatorCall("QKV", [kernel(10_500, 30_000), kernel(30_000, 30_001)])]),
    Step(
        4,
        90_001,
        200_000,
        [
            OperatorCall("O", [kernel(100_000, 120_000, HOSTILE, flops=12)], args={"layer": 1}),
            OperatorCall("OTHER", [kernel(150_000, 160_000)]),
        ],
        {"mode": "DECODE"},
    ),
    Step(5, 200_000, 200_000),
]


def written(path: Path, steps: list[Step], device: str = "a GPU") -> dict[str, Any]:
    count = write_tensorboard(path, device, steps)
    text = gzip.decompress(path.read_bytes()).decode("ascii")
    document: dict[str, Any] = json.loads(text, parse_float=Decimal, parse_constant=lambda name: 1 / 0)
    assert list(document)[-1] == "traceEvents"  # the plugin writes counters before the last bracket
    assert count == len(document["traceEvents"])
    return document


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return written(tmp_path_factory.mktemp("tb") / "w.pt.trace.json.gz", STEPS)


def of(document: dict[str, Any], category: str) -> list[dict[str, Any]]:
    return [event for event in document["traceEvents"] if event.get("cat") == category]


def span(event: dict[str, Any]) -> tuple[int, int]:
    return nanoseconds(event["ts"]), nanoseconds(event["ts"] + event["dur"])


def test_steps_are_named_by_number_and_end_before_the_next_begins(document: dict[str, Any]) -> None:
    steps = of(document, "user_annotation")
    assert [event["name"] for event in steps] == [f"ProfilerStep#{step.number}" for step in STEPS]
    assert [span(event) for event in steps[:2]] == [(10_000, 90_001 - APART_NS), (90_001, 200_000 - APART_NS)]
    assert span(steps[2]) == (200_000, 200_001)  # of no length, which the plugin would divide by
    assert steps[1]["args"]["mode"] == "DECODE"


def test_kernels_run_on_the_one_device(document: dict[str, Any]) -> None:
    kernels = of(document, "kernel")
    assert [span(event) for event in kernels] == [
        (10_500, 30_000),
        (30_000, 30_001),
        (100_000, 120_000),
        (150_000, 160_000),
    ]
    for event in kernels:
        assert (event["pid"], event["tid"]) == (event["args"]["device"], event["args"]["stream"]) == (0, 7)
    assert kernels[2]["name"] == HOSTILE
    assert kernels[2]["args"]["flops"] == 12
    assert document["deviceProperties"] == [{"id": 0, "name": "a GPU"}]
    names = {event["pid"]: event["args"]["name"] for event in document["traceEvents"] if event["ph"] == "M"}
    assert set(names) == {0, 1}


def test_each_kernel_has_a_launch_and_each_launch_an_operator(document: dict[str, Any]) -> None:
    operators = {event["args"]["External id"]: event["name"] for event in of(document, "cpu_op")}
    launches = {event["args"]["correlation"]: event for event in of(document, "runtime")}
    kernels = of(document, "kernel")
    assert len(operators) == 3
    assert len(launches) == len(kernels) == 4
    for event in kernels:
        launch = launches[event["args"]["correlation"]]
        assert launch["args"]["External id"] == event["args"]["External id"]
    assert [operators[event["args"]["External id"]] for event in kernels] == ["QKV", "QKV", "O", "OTHER"]


def test_no_launch_lies_within_a_step(document: dict[str, Any]) -> None:
    """Else the plugin stretches steps to their kernels, and leaves out last steps that have few."""
    steps = [span(event) for event in of(document, "user_annotation")]
    for event in of(document, "runtime"):
        start_ns, end_ns = span(event)
        assert not any(first <= start_ns and end_ns <= last for first, last in steps)


def test_an_operator_lasts_on_the_host_only_where_the_host_computed_it(
    document: dict[str, Any], tmp_path: Path
) -> None:
    assert all(event["dur"] == 0 for event in of(document, "cpu_op"))
    call = OperatorCall("NORM", [kernel(20, 30), kernel(35, 50)], on_host=True)
    on_host = written(tmp_path / "w.pt.trace.json.gz", [Step(0, 10, 90, [call])])
    assert [span(event) for event in of(on_host, "cpu_op")] == [(20, 50)]


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="absent/w: cannot be written"):
        write_tensorboard(tmp_path / "absent" / "w", "a GPU", STEPS)
    path = tmp_path / "w.pt.trace.json.gz"
    with pytest.raises(ZeroDivisionError):
        write_tensorboard(path, "a GPU", (Step(1 // i, 0, 1) for i in (1, 0)))
    assert not list(tmp_path.iterdir())
