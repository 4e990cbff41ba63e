"""The device executor: results in row order, times, memory, and draws that batching does not change."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.clock import MonotonicClock
from engine.config import EngineConfig
from engine.errors import ConfigError
from engine.executors import memory
from engine.executors.device import DeviceExecutor
from engine.executors.protocol import NO_TOKEN
from engine.request import Request
from engine.transfer import columns_to_device
from tests.support.tiny_llama import TINY_SHAPE, Forwards, load_tiny

pytestmark = pytest.mark.usefixtures("one_thread")


def _prompt(length: int, seed: int = 0) -> list[int]:
    rng = random.Random(seed)
    return [rng.randrange(TINY_SHAPE.vocab_size) for _ in range(length)]


def test_middle_chunks_yield_no_token_and_other_rows_one_each() -> None:
    forwards = Forwards(load_tiny())
    running = forwards.add(_prompt(5))
    forwards.prefill(running, 5)
    first, whole = forwards.add(_prompt(20, 1)), forwards.add(_prompt(6, 2))
    tokens = forwards.run([(first, 8), (whole, 6)], decode=[running]).next_token_ids
    assert tokens[0] == NO_TOKEN
    assert all(0 <= token < TINY_SHAPE.vocab_size for token in tokens[1:])
    assert (whole.output_len, running.output_len, first.output_len) == (1, 2, 0)


def test_a_huge_context_costs_no_more_than_the_pool() -> None:
    config = EngineConfig().resolve(max_total_tokens=64, context_length=2**31 - 1)
    DeviceExecutor(load_tiny(), config, MonotonicClock())


def test_times_lie_in_order_on_the_clock() -> None:
    forwards = Forwards(load_tiny())
    request = forwards.add(_prompt(30))
    first = forwards.run([(request, 30)])
    second = forwards.run(decode=[request])
    assert 0 < first.start_ns < first.end_ns < second.start_ns < second.end_ns


def test_the_scheduler_may_grow_a_row_after_a_forward() -> None:
    forwards = Forwards(load_tiny())
    request = forwards.add(_prompt(4))
    batch = forwards.batch([(request, 4)])
    result = forwards.executor.forward(batch)
    batch.pages[0].append(9)  # raises BufferError while anything looks into the array
    assert len(result.next_token_ids) == 1


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the resident peak is Linux's")
def test_the_peak_is_that_of_one_forward() -> None:
    forwards = Forwards(load_tiny())
    ballast = torch.ones(64 << 18)  # 64 MiB, freed before the forward
    del ballast
    result = forwards.run([(forwards.add(_prompt(8)), 8)])
    assert result.memory_allocated_bytes is not None
    assert result.memory_peak_bytes is not None
    # Linux counts resident pages per CPU and lags behind by up to some hundred pages.
    assert abs(result.memory_peak_bytes - result.memory_allocated_bytes) < 32 << 20


def test_an_unknown_peak_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory._ResidentMeter, "CLEAR_REFS", tmp_path / "absent" / "clear_refs")
    forwards = Forwards(load_tiny())
    result = forwards.run([(forwards.add(_prompt(3)), 3)])
    assert result.memory_peak_bytes is None
    monkeypatch.setattr(memory._ResidentMeter, "STATUS", tmp_path / "absent")
    monkeypatch.setattr(memory._ResidentMeter, "STATM", tmp_path / "absent")
    assert memory.memory_meter(torch.device("cpu")).read() == (None, None)


def _alone(forwards: Forwards, request: Request, count: int) -> None:
    forwards.prefill(request, 1000)
    for _ in range(count - 1):
        forwards.run(decode=[request])


def _in_company(forwards: Forwards, request: Request, count: int) -> None:
    others = [forwards.add(_prompt(n, n), temperature=0.5, seed=n) for n in (3, 25)]
    forwards.prefill(others[0], 2)
    forwards.run([(request, 9), (others[1], 25)], decode=[others[0]])
    forwards.run([(request, 11)], decode=others)
    for _ in range(count - 1):
        forwards.run(decode=[others[1], request])


def _after_retraction(forwards: Forwards, request: Request, count: int) -> None:
    _alone(forwards, request, count // 2)
    again = forwards.add(request.prompt_token_ids, temperature=0.9, seed=17)
    again.tokens.extend(request.tokens[request.prompt_len :])
    kept = len(again.tokens)
    forwards.run([(again, kept)])
    for _ in range(count - count // 2 - 1):
        forwards.run(decode=[again])
    request.tokens = again.tokens


@pytest.mark.parametrize("course", [_alone, _in_company, _after_retraction])
def test_draws_depend_on_seed_and_output_index_alone(course: Callable[[Forwards, Request, int], Any]) -> None:
    expected = Forwards(load_tiny(), page_size=4)
    request = expected.add(_prompt(20), temperature=0.9, seed=17)
    _alone(expected, request, 12)
    assert len(set(request.output_ids)) > 3
    forwards = Forwards(load_tiny(), page_size=16, seed=1)
    other = forwards.add(_prompt(20), temperature=0.9, seed=17)
    course(forwards, other, 12)
    assert other.output_ids == request.output_ids


@pytest.mark.parametrize("kind", ["cpu", "meta"])
def test_columns_keep_their_sizes_whatever_the_way(kind: str) -> None:
    columns = [np.array(values, dtype=np.int32) for values in ([3, 1, 2], [], [7])]
    sent = columns_to_device(columns, torch.device(kind))
    assert [(len(column), column.dtype) for column in sent] == [(n, torch.int64) for n in (3, 0, 1)]
    if kind == "cpu":
        assert [column.tolist() for column in sent] == [[3, 1, 2], [], [7]]
        sent[0][0] = 9
        assert columns[0][0] == 3  # a copy: input ids are filled in place


def test_an_open_config_is_refused() -> None:
    with pytest.raises(TypeError, match="resolve"):
        DeviceExecutor(load_tiny(), EngineConfig(), MonotonicClock())


def test_a_pool_larger_than_the_free_memory_is_refused_in_one_line() -> None:
    config = EngineConfig().resolve(max_total_tokens=2**31 - 1, context_length=64)
    with pytest.raises(ConfigError, match="--max-total-tokens 2147483647: the KV pool takes") as error:
        DeviceExecutor(load_tiny(), config, MonotonicClock())
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("page_size", [1, 16])
def test_the_whole_pool_can_be_used(page_size: int) -> None:
    forwards = Forwards(load_tiny(), page_size, pool=100)
    request = forwards.add(_prompt(100 // page_size * page_size))
    forwards.prefill(request, 30)
    roomy = Forwards(load_tiny(), page_size)
    expected = roomy.add(request.prompt_token_ids)
    roomy.prefill(expected, 100)
    assert request.output_ids == expected.output_ids
