"""An engine that serves one batch of random requests after another, and who watches it."""

from itertools import count

from benchmarks.gpu.setting import Setting
from engine.clock import MonotonicClock
from engine.config import EngineConfig
from engine.engine import Engine
from engine.executors.device import DeviceExecutor
from engine.models.loader import LoadedModel, default_max_total_tokens, load_model
from engine.observer import EngineObserver, Event, ForwardRecord, NullObserver
from engine.request import Request, SamplingParams
from engine.workload import random_ids

__all__ = ["Both", "Kept", "Server", "load"]

CHUNK = 8192


class Kept(NullObserver):
    """Keeps every forward's record."""

    def __init__(self) -> None:
        self.records: list[ForwardRecord] = []

    def on_forward(self, record: ForwardRecord) -> None:
        self.records.append(record)


class Both:
    """Tells two observers."""

    def __init__(self, first: EngineObserver, second: EngineObserver) -> None:
        self._observers = first, second

    def on_request(self, request: Request) -> None:
        for observer in self._observers:
            observer.on_request(request)

    def on_events(self, events: list[Event]) -> None:
        for observer in self._observers:
            observer.on_events(events)

    def on_forward(self, record: ForwardRecord) -> None:
        for observer in self._observers:
            observer.on_forward(record)


class Server:
    """One executor, and an engine of its own for each batch: graphs stay, the prefix cache is off."""

    def __init__(self, setting: Setting, max_rows: int, prompt_tokens: int, new_tokens: int) -> None:
        """Serves up to `max_rows` requests at once, or as many as the memory beside the weights holds."""
        self.loaded = load(setting)
        self.clock = MonotonicClock()
        self._prompt_tokens = prompt_tokens
        self._new_tokens = new_tokens
        self._rids = count()
        context = prompt_tokens + new_tokens
        of_a_row = (-(-context // setting.page_size) + 2) * setting.page_size  # two pages to spare
        fitting = default_max_total_tokens(self.loaded, setting.page_size) // of_a_row
        self.max_rows = min(max_rows, fitting) if setting.on_gpu else max_rows
        pool = self.max_rows * of_a_row
        self._config = EngineConfig(
            chunked_prefill_size=CHUNK,
            page_size=setting.page_size,
            disable_radix_cache=True,
            max_running_requests=self.max_rows,
        ).resolve(max_total_tokens=pool, context_length=self.loaded.shape.max_position_embeddings)
        self._executor = DeviceExecutor(self.loaded, self._config, self.clock)

    def serve(self, rows: int, observer: EngineObserver) -> None:
        """Serve so many requests, all there at once: prompts in full chunks, then decode forwards of all."""
        engine = Engine(self._config, self._executor, clock=self.clock, observer=observer)
        sampling = SamplingParams(self._new_tokens, ignore_eos=True)
        vocab_size = self.loaded.shape.vocab_size
        for rid in [next(self._rids) for _ in range(rows)]:
            prompt = random_ids(self._prompt_tokens, vocab_size, 0, rid)
            engine.submit(Request(rid, str(rid), prompt, sampling))
        while engine.has_work:
            engine.step()


def load(setting: Setting) -> LoadedModel:
    """The model with random weights."""
    return load_model(setting.model, device=setting.device, dtype=setting.dtype)
