"""Any workload under any options: nothing leaks, nothing is lost, and batching never changes an output."""

from dataclasses import replace

from hypothesis import HealthCheck, given, settings

from engine.config import EngineConfig
from engine.engine import Engine
from engine.request import Request, SamplingParams
from tests.support.counts import ENGINE_EXAMPLES
from tests.support.hash_executor import HashExecutor, one_shot
from tests.support.watched_run import check_output, watched_run
from tests.support.workloads import Arrival, scenarios


@settings(max_examples=ENGINE_EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios())
def test_outputs_are_those_of_a_request_alone_with_and_without_overlap(
    scenario: tuple[EngineConfig, list[Arrival]],
) -> None:
    config, todo = scenario
    for disable in (False, True):
        for request in watched_run(replace(config, disable_overlap_schedule=disable), todo):
            check_output(request)


def test_one_shot_is_what_an_engine_gives_one_whole_request() -> None:
    config = EngineConfig(chunked_prefill_size=-1, max_total_tokens=500).resolve(
        max_total_tokens=500, context_length=500
    )
    engine = Engine(config, HashExecutor(500, 1))
    prompt = [5, 9, 2, 7] * 20
    request = Request(0, "alone", prompt, SamplingParams(max_new_tokens=40))
    engine.run([request])
    assert request.output_ids == one_shot(prompt, 40)
