"""The real model through the whole engine: however a prompt is cut, tokens and logits are transformers'."""

from functools import cache
from pydoc_data.topics import topics

import pytest
import torch

from engine.batch import ForwardMode
from engine.clock import MonotonicClock
from engine.config import CHUNKING_OFF, EngineConfig
from engine.engine import Engine
from engine.executors.device import DeviceExecutor
from engine.models.loader import LoadedModel, load_model
from engine.observer import ForwardRecord
from engine.request import Request, SamplingParams
from tests.support.smollm2 import smollm2_checkpoint, smollm2_oracle, smollm2_path

NEW_TOKENS = 64
LENGTHS = (1, 17, 700, 3000)
CUTS = [(64, 1), (100, 1), (100, 4), (512, 1), (CHUNKING_OFF, 1)]
CASES = [
    pytest.param(
        length,
        chunk,
        page,
        mixed,
        id=f"{length}-chunk{chunk}-page{page}{'-mixed' if mixed else ''}",
        marks=[]
        if length < 3000 or chunk == CHUNKING_OFF or (chunk, page, mixed) == (100, 4, True)
        else [pytest.mark.long],
    )
    for length in (700, 3000)
    for chunk, page in CUTS
    for mixed in (False, True)
    if not (mixed and chunk == CHUNKING_OFF)
]


@cache
def _model(dtype: str = "float32") -> LoadedModel:
    return load_model(smollm2_path(), device="cpu", dtype=dtype)


@cache
def _prompt(length: int) -> list[int]:
    tokenizer = smollm2_checkpoint().tokenizer()
    assert tokenizer is not None
    text = "\n".join(topics[name] for name in sorted(topics)[: 1 + length // 100])
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    assert len(ids) >= length
    return ids[:length]


@cache
def _expected(length: int) -> list[int]:
    """transformers' greedy continuation."""
    oracle = smollm2_oracle()
    ids = torch.tensor([_prompt(length)])
    with torch.inference_mode():
        out = oracle.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            max_new_tokens=NEW_TOKENS,
            min_new_tokens=NEW_TOKENS,
        )
    tokens: list[int] = out[0, length:].tolist()
    return tokens


def _run(
    lengths: tuple[int, ...], chunk: int, page: int, mixed: bool
) -> tuple[list[Request], list[ForwardRecord]]:
    """Short prompts first, the long one a round later, so that mixing has something to mix."""
    loaded = _model()
    config = EngineConfig(
        chunked_prefill_size=chunk, page_size=page, enable_mixed_chunk=mixed, max_total_tokens=8192
    ).resolve(max_total_tokens=8192, context_length=loaded.shape.max_position_embeddings)
    clock = MonotonicClock()
    engine = Engine(config, DeviceExecutor(loaded, config, clock), clock=clock)
    sampling = SamplingParams(NEW_TOKENS, ignore_eos=True)
    requests = [Request(i, str(n), _prompt(n), sampling) for i, n in enumerate(lengths)]
    for request in requests[:-1]:
        engine.submit(request)
    records = [engine.step()]
    engine.submit(requests[-1])
    while engine.has_work:
        records.append(engine.step())
    return requests, [r for r in records if r is not None]


@pytest.mark.parametrize(("length", "chunk", "page", "mixed"), CASES)
def test_greedy_tokens_are_transformers(length: int, chunk: int, page: int, mixed: bool) -> None:
    requests, records = _run((1, 17, length), chunk, page, mixed)
    for request in requests:
        assert request.output_ids == _expected(request.prompt_len), f"prompt of {request.prompt_len} tokens"
    modes = {r.batch.mode for r in records}
    assert (ForwardMode.MIXED in modes) == mixed
    largest = max(len(r.batch.input_ids) for r in records)
    assert largest <= (length if chunk == CHUNKING_OFF else chunk)


class _LogitsOfLast:
    """Keeps what the model computed for the last token of each forward."""

    def __init__(self, loaded: LoadedModel) -> None:
        self.logits: list[torch.Tensor] = []
        self._forward = loaded.model.forward

    def __call__(self, *args: torch.Tensor) -> torch.Tensor:
        logits = self._forward(*args)  # type: ignore[arg-type]
        if len(logits):
            self.logits.append(logits[-1].float())
        return logits


def _last_logits(
    length: int, chunk: int, page: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> torch.Tensor:
    loaded = _model(dtype)
    config = EngineConfig(chunked_prefill_size=chunk, page_size=page).resolve(
        max_total_tokens=4096, context_length=4096
    )
    clock = MonotonicClock()
    watch = _LogitsOfLast(loaded)
    with monkeypatch.context() as patch:
        patch.setattr(loaded.model, "forward", watch)
        engine = Engine(config, DeviceExecutor(loaded, config, clock), clock=clock)
        engine.run([Request(0, "r", _prompt(length), SamplingParams(1))])
    (logits,) = watch.logits
    return logits


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-4), ("bfloat16", 3e-2)])
@pytest.mark.parametrize("length", [1, 17, 700, pytest.param(3000, marks=pytest.mark.long)])
def test_logits_are_those_of_one_shot_and_of_transformers(
    length: int, dtype: str, tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    with torch.inference_mode():
        oracle = smollm2_oracle(getattr(torch, dtype))
        want = oracle(torch.tensor([_prompt(length)]), logits_to_keep=1).logits[0, -1].float()
    whole = _last_logits(length, CHUNKING_OFF, 1, dtype, monkeypatch)
    for chunk, page in CUTS[:4]:
        chunked = _last_logits(length, chunk, page, dtype, monkeypatch)
        for other in (whole, want):
            assert (chunked - other).abs().max() <= tolerance * other.abs().max()
