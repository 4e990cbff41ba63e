"""About a second of forwards that tells how fast this machine is."""

from typing import TYPE_CHECKING

from engine.config import CHUNKING_OFF, EngineConfig
from engine.request import Request, SamplingParams
from engine.workload import random_ids
from ui.demo.sizing import DECODER_PROMPT_TOKENS, DECODERS, Speed

if TYPE_CHECKING:
    from engine.models.loader import LoadedModel

__all__ = ["measure_speed"]

PREFILL_TOKENS = 256
PREFILL_REPEATS = 2
DECODE_STEPS = 8
POOL_TOKENS = 2048


def measure_speed(loaded: "LoadedModel") -> Speed:
    """The best time of a decode forward of the demo's decoders, and of a prefill token in a forward of 256.

    The best, not the median: what else the machine does at the moment is not to shorten the demo's picture.
    """
    from engine.clock import MonotonicClock
    from engine.engine import Engine
    from engine.executors.device import DeviceExecutor

    config = EngineConfig(chunked_prefill_size=CHUNKING_OFF, disable_overlap_schedule=True).resolve(
        max_total_tokens=POOL_TOKENS, context_length=POOL_TOKENS
    )
    clock = MonotonicClock()
    executor = DeviceExecutor(loaded, config, clock)

    def forwards_s(count: int, prompt_tokens: int, output_tokens: int) -> list[float]:
        engine = Engine(config, executor, clock=clock)
        times: list[float] = []
        sampling = SamplingParams(max_new_tokens=output_tokens, ignore_eos=True)
        vocab_size = loaded.shape.vocab_size
        requests = [
            Request(rid, f"probe-{rid}", random_ids(prompt_tokens, vocab_size, 0, rid), sampling)
            for rid in range(count)
        ]
        engine.run(
            requests, lambda record: times.append((record.result.end_ns - record.result.start_ns) / 1e9)
        )
        return times

    forwards_s(1, 16, 2)  # the first forward of a process is slow
    decode_s = min(forwards_s(DECODERS, DECODER_PROMPT_TOKENS, 1 + DECODE_STEPS)[1:])
    prefill_s = min(forwards_s(1, PREFILL_TOKENS, 1)[0] for _ in range(PREFILL_REPEATS))
    return Speed(decode_s, prefill_s / PREFILL_TOKENS)
