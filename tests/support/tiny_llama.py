"""A small random Llama in memory, and forwards planned by hand over pages in random order."""

import random
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from engine.attention.kernels import AttentionKernel
from engine.attention.torch_paged import TorchPagedAttention
from engine.batch import ForwardBatch, ForwardMode, Role
from engine.clock import MonotonicClock
from engine.config import EngineConfig
from engine.executors.device import DeviceExecutor
from engine.executors.protocol import ForwardResult
from engine.kv_tensors import KVTensors
from engine.models.checkpoint import Checkpoint
from engine.models.layout import llama_tensors
from engine.models.llama import LlamaModel
from engine.models.loader import LoadedModel
from engine.request import Request, SamplingParams
from engine.shapes import ModelShape

__all__ = ["TINY_SHAPE", "Forwards", "TinyCheckpoint", "WatchedModel", "load_tiny"]

TINY_SHAPE = ModelShape(
    architecture="llama",
    name="tiny",
    num_layers=3,
    hidden_size=64,
    num_heads=4,
    num_kv_heads=2,
    head_dim=16,
    intermediate_size=96,
    vocab_size=211,
    max_position_embeddings=512,
    rope_theta=10_000.0,
    rms_norm_eps=1e-5,
)


@dataclass(frozen=True, slots=True)
class TinyCheckpoint(Checkpoint):
    """Weights large enough that attention prefers some keys and logits differ."""

    load_format: ClassVar[str] = "dummy"

    def tensors(self, dtype: torch.dtype, device: torch.device) -> dict[str, torch.Tensor]:
        generator = torch.Generator().manual_seed(5)
        tensors = {}
        for name, size in llama_tensors(self.shape):
            std = size[1] ** -0.5 if len(size) == 2 else 0.2
            tensor = torch.randn(size, generator=generator) * std + float(name.endswith("norm.weight"))
            tensors[name] = tensor.to(dtype).to(device)
        return tensors

    def tokenizer(self) -> None:
        return None


def load_tiny(
    shape: ModelShape = TINY_SHAPE, dtype: torch.dtype = torch.float32, *, pack: bool | None = None
) -> LoadedModel:
    """The small model, ready to run on the CPU."""
    checkpoint = TinyCheckpoint(Path("tiny"), shape, frozenset({0}))
    tensors = checkpoint.tensors(dtype, torch.device("cpu"))
    return LoadedModel(LlamaModel(shape, tensors, pack=pack), checkpoint)


class WatchedModel(LlamaModel):
    """A model that keeps the logits of its last forward."""

    logits: torch.Tensor

    def __init__(self, model: LlamaModel) -> None:
        self.__dict__.update(model.__dict__)

    def forward(self, *args: Any) -> torch.Tensor:
        self.logits = super().forward(*args)
        return self.logits


class Forwards:
    """Plans forwards over a pool whose pages are handed out in random order, and runs them."""

    def __init__(
        self,
        loaded: LoadedModel,
        page_size: int = 1,
        *,
        pool: int = 2048,
        seed: int = 0,
        kernel: AttentionKernel | None = None,
    ) -> None:
        config = EngineConfig(page_size=page_size, max_total_tokens=pool)
        config = config.resolve(max_total_tokens=pool, context_length=loaded.shape.max_position_embeddings)
        self.page_size = page_size
        self._model = WatchedModel(loaded.model)
        attention = None
        if kernel is not None:
            kv = KVTensors(loaded.shape, pool // page_size, page_size, loaded.dtype, loaded.device)
            attention = TorchPagedAttention(loaded.shape, kv, kernel)
        watched = replace(loaded, model=self._model)
        self.executor = DeviceExecutor(watched, config, MonotonicClock(), attention=attention)
        self._free = list(range(1, pool // page_size + 1))
        random.Random(seed).shuffle(self._free)
        self._pages: dict[int, array[int]] = {}

    @property
    def logits(self) -> torch.Tensor:
        """(rows with logits, vocabulary) of the last forward."""
        return self._model.logits.float()

    def add(self, prompt: Sequence[int], **sampling: Any) -> Request:
        """A new request, nothing of it computed."""
        request = Request(len(self._pages), f"r{len(self._pages)}", prompt, SamplingParams(**sampling))
        self._pages[request.rid] = array("i")
        return request

    def batch(
        self, extend: Iterable[tuple[Request, int]] = (), decode: Iterable[Request] = ()
    ) -> ForwardBatch:
        """One forward: each extend row computes so many next tokens of its request."""
        rows = [(request, count, self._role(request, count)) for request, count in extend]
        num_extend_seqs = len(rows)
        rows += [(request, 1, Role.DECODE) for request in decode]
        for request, count, _ in rows:
            self._reserve(request, request.prefix_len + count)
        requests = [request for request, _, _ in rows]
        ids = [t for r, count, _ in rows for t in r.tokens[r.prefix_len : r.prefix_len + count]]
        return ForwardBatch(
            forward_id=0,
            mode=_mode(num_extend_seqs, len(rows)),
            requests=requests,
            num_extend_seqs=num_extend_seqs,
            page_size=self.page_size,
            rids=_ints(r.rid for r in requests),
            attempts=_ints(0 for _ in rows),
            roles=np.array([role for _, _, role in rows], dtype=np.uint8),
            prefix_lens=_ints(r.prefix_len for r in requests),
            extend_lens=_ints(count for _, count, _ in rows),
            cached_tokens=_ints(0 for _ in rows),
            input_ids=_ints(ids),
            pages=[self._pages[r.rid] for r in requests],
        )

    def run(
        self, extend: Iterable[tuple[Request, int]] = (), decode: Iterable[Request] = ()
    ) -> ForwardResult:
        """Run one forward, move the requests' cursors and append the tokens."""
        batch = self.batch(extend, decode)
        result = self.executor.forward(batch)
        for request, count, token, middle in zip(
            batch.requests, batch.extend_lens.tolist(), result.next_token_ids, batch.is_middle, strict=True
        ):
            request.prefix_len += count
            if not middle:
                request.tokens.append(token)
        return result

    def prefill(self, request: Request, chunk: int) -> None:
        """Compute the whole prompt in chunks."""
        while request.prefix_len < request.prompt_len:
            self.run([(request, min(chunk, request.prompt_len - request.prefix_len))])

    def _reserve(self, request: Request, seq_len: int) -> None:
        pages = self._pages[request.rid]
        while len(pages) * self.page_size < seq_len:
            pages.append(self._free.pop())

    def _role(self, request: Request, count: int) -> Role:
        if request.prefix_len + count < request.prompt_len:
            return Role.MIDDLE if request.prefix_len else Role.FIRST
        return Role.LAST if request.prefix_len else Role.WHOLE


def _mode(num_extend: int, num_rows: int) -> ForwardMode:
    if not num_extend:
        return ForwardMode.DECODE
    return ForwardMode.EXTEND if num_extend == num_rows else ForwardMode.MIXED


def _ints(values: Iterable[int]) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.array(list(values), dtype=np.int32)
