"""Ways to serve one closed workload: this engine, and three that transformers offers.

Each is built once and run once a round. What can be made beforehand (KV pools, a warmed-up manager) is made
outside the measured time, on all sides.
"""

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from random import Random
from typing import Any

import torch

from engine.clock import MonotonicClock
from engine.config import EngineConfig
from engine.engine import Engine
from engine.executors.device import DeviceExecutor
from engine.models.loader import LoadedModel
from engine.request import Request, SamplingParams

__all__ = ["Contestant", "ContinuousBatching", "OneByOne", "OurEngine", "PaddedBatches", "Work", "make_work"]

POOL_TOKENS = 8192  # twice what 8 running requests of this workload can fill
NO_EOS = -1


@dataclass(frozen=True, slots=True)
class Work:
    """Prompts, all queued at once, and how many tokens each must yield."""

    prompts: list[list[int]]
    output_lens: list[int]

    @property
    def output_tokens(self) -> int:
        """Tokens that count, whatever a contestant computes besides."""
        return sum(self.output_lens)


def make_work(
    requests: int, vocab_size: int, *, shortest: int = 16, longest: int = 256, seed: int = 0
) -> Work:
    """Random prompts; prompt and output lengths uniform between `shortest` and `longest`."""
    random = Random(seed)
    lengths = [
        (random.randint(shortest, longest), random.randint(shortest, longest)) for _ in range(requests)
    ]
    prompts = [[random.randrange(vocab_size) for _ in range(prompt)] for prompt, _ in lengths]
    return Work(prompts, [output for _, output in lengths])


class Contestant(ABC):
    """Serves a workload greedily, end-of-sequence ignored."""

    name: str

    @abstractmethod
    def serve(self, work: Work) -> tuple[float, list[list[int]]]:
        """(seconds, each request's output tokens)."""


class OurEngine(Contestant):
    """The engine of this repository, with a fresh scheduler, cache and pool every round."""

    def __init__(self, loaded: LoadedModel, *, running: int, chunk: int, mixed: bool) -> None:
        self.name = f"chunkscope (chunk {chunk}{', mixed' if mixed else ''})"
        self._loaded = loaded
        self._config = EngineConfig(
            chunked_prefill_size=chunk,
            enable_mixed_chunk=mixed,
            page_size=16,
            max_running_requests=running,
        ).resolve(max_total_tokens=POOL_TOKENS, context_length=loaded.shape.max_position_embeddings)

    def engine(self) -> Engine:
        """A fresh engine on the loaded model."""
        clock = MonotonicClock()
        return Engine(self._config, DeviceExecutor(self._loaded, self._config, clock), clock=clock)

    def serve(self, work: Work) -> tuple[float, list[list[int]]]:
        engine = self.engine()
        requests = [
            Request(i, str(i), prompt, SamplingParams(max_new_tokens=length, ignore_eos=True))
            for i, (prompt, length) in enumerate(zip(work.prompts, work.output_lens, strict=True))
        ]
        start = time.perf_counter()
        engine.run(requests)
        seconds = time.perf_counter() - start
        return seconds, [request.output_ids for request in requests]


class OneByOne(Contestant):
    """transformers' `generate`, a request at a time."""

    name = "transformers generate, one by one"

    def __init__(self, model: Any) -> None:
        self._model = model

    @torch.inference_mode()
    def serve(self, work: Work) -> tuple[float, list[list[int]]]:
        outputs = []
        start = time.perf_counter()
        for prompt, length in zip(work.prompts, work.output_lens, strict=True):
            ids = torch.tensor([prompt])
            generated = _generate(self._model, ids, torch.ones_like(ids), length)
            outputs.append(generated[0, len(prompt) :].tolist())
        return time.perf_counter() - start, outputs


class PaddedBatches(Contestant):
    """transformers' `generate` over batches in arrival order, padded left, run until the longest ends."""

    def __init__(self, model: Any, *, running: int) -> None:
        self.name = f"transformers generate, padded batches of {running}"
        self._model = model
        self._running = running

    @torch.inference_mode()
    def serve(self, work: Work) -> tuple[float, list[list[int]]]:
        outputs: list[list[int]] = []
        start = time.perf_counter()
        for first in range(0, len(work.prompts), self._running):
            prompts = work.prompts[first : first + self._running]
            lengths = work.output_lens[first : first + self._running]
            width = max(map(len, prompts))
            ids = torch.tensor([[0] * (width - len(prompt)) + prompt for prompt in prompts])
            mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
            generated = _generate(self._model, ids, mask, max(lengths))[:, width:].tolist()
            outputs += [row[:length] for row, length in zip(generated, lengths, strict=True)]
        return time.perf_counter() - start, outputs


class ContinuousBatching(Contestant):
    """What transformers' `generate_batch` runs, with each request's own length, which it cannot take."""

    def __init__(self, model: Any, *, running: int, chunk: int) -> None:
        from transformers import GenerationConfig
        from transformers.generation import ContinuousBatchingConfig

        self.name = f"transformers generate_batch (batch of {chunk} tokens)"
        self._model = model
        page_size = 256  # its default
        self._batching = ContinuousBatchingConfig(
            page_size=page_size,
            num_blocks=POOL_TOKENS // page_size,
            max_batch_tokens=chunk,
            max_requests_per_batch=running,
        )
        self._generation = GenerationConfig(do_sample=False, eos_token_id=NO_EOS, pad_token_id=0)

    @torch.inference_mode()
    def serve(self, work: Work) -> tuple[float, list[list[int]]]:
        with self._model.continuous_batching_context_manager(
            generation_config=self._generation, continuous_batching_config=self._batching
        ) as manager:
            start = time.perf_counter()
            names = [
                manager.add_request(prompt, max_new_tokens=length, eos_token_id=NO_EOS)
                for prompt, length in zip(work.prompts, work.output_lens, strict=True)
            ]
            finished: dict[str, list[int]] = {}
            while len(finished) < len(names):
                result = manager.get_result(timeout=1)
                if result is not None and result.is_finished():
                    finished[result.request_id] = list(result.generated_tokens)
                elif result is None and not manager.is_running():
                    raise RuntimeError("transformers' continuous batching ended early: see its log above")
            seconds = time.perf_counter() - start
        return seconds, [finished[name] for name in names]


def _generate(model: Any, ids: torch.Tensor, mask: torch.Tensor, length: int) -> torch.Tensor:
    generated: torch.Tensor = model.generate(
        ids, attention_mask=mask, max_new_tokens=length, do_sample=False, eos_token_id=None, pad_token_id=0
    )
    return generated
