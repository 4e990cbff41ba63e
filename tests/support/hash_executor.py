"""An executor without a model: KV slots hold hashes, a next token is a hash over its row's slots.

A wrong slot, an early free, a stale prefix or a leaked middle sample changes the output, however batched.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.batch import ForwardBatch
from engine.executors.protocol import NO_TOKEN, ForwardResult

VOCAB = 50
EOS = frozenset({3})


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A 64-bit finaliser (splitmix64)."""
    with np.errstate(over="ignore"):
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def slot_hashes(tokens: Sequence[int] | NDArray[np.int32], start: int) -> NDArray[np.uint64]:
    """What the KV slots of `tokens` at positions `start` onward hold."""
    ids = np.asarray(tokens, dtype=np.uint64)
    positions = np.arange(start, start + len(ids), dtype=np.uint64)
    with np.errstate(over="ignore"):
        return _mix(
            ids * np.uint64(0x9E3779B97F4A7C15) + positions * np.uint64(0xD1B54A32D192ED03) + np.uint64(1)
        )


def next_token(slots: NDArray[np.uint64]) -> int:
    """The token that follows a sequence with these slots."""
    with np.errstate(over="ignore"):
        total = slots.sum(dtype=np.uint64)
    return int(_mix(np.array([total], dtype=np.uint64))[0] % np.uint64(VOCAB))


def one_shot(prompt: Sequence[int], count: int) -> list[int]:
    """`count` output tokens of a prompt that runs alone and whole."""
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(next_token(slot_hashes(tokens, 0)))
    return tokens[len(prompt) :]


class HashForward:
    """A queued forward."""

    def __init__(self, executor: "HashExecutor", batch: ForwardBatch) -> None:
        self.batch = batch
        self.outcome: ForwardResult | None = None
        self._executor = executor

    def result(self) -> ForwardResult:
        self._executor.finish(self)
        assert self.outcome is not None
        return self.outcome


class HashExecutor:
    """Writes and reads slots only through the rows' pages, as a device would."""

    def __init__(self, num_pages: int, page_size: int) -> None:
        self.slots = np.zeros((num_pages + 1) * page_size, dtype=np.uint64)
        self._queue: deque[HashForward] = deque()
        self._last: list[int] = []  # samples of the forward before

    def launch(self, batch: ForwardBatch) -> "HashForward":
        """Queue a forward; it runs as late as it may, when its result is wanted."""
        pages = [row[:] for row in batch.pages]
        forward = HashForward(self, replace(batch, pages=pages))
        self._queue.append(forward)
        return forward

    def finish(self, forward: "HashForward") -> None:
        """Run what was launched up to `forward`."""
        while forward.outcome is None:
            following = self._queue.popleft()
            following.outcome = self.forward(following.batch)

    def forward(self, batch: ForwardBatch) -> ForwardResult:
        rows = [self._slots_of(batch, i) for i in range(batch.num_rows)]
        batch = self._with_awaited(batch)
        at = 0
        for i, slots in enumerate(rows):
            prefix, extend = int(batch.prefix_lens[i]), int(batch.extend_lens[i])
            self.slots[slots[prefix:]] = slot_hashes(batch.input_ids[at : at + extend], prefix)
            at += extend
        assert at == len(batch.input_ids)
        self._last = [next_token(self.slots[slots]) for slots in rows]
        return ForwardResult(self._last, 0, 0)

    def _with_awaited(self, batch: ForwardBatch) -> ForwardBatch:
        if batch.awaited_rows is None:
            return batch
        ids, ends = batch.input_ids.copy(), np.cumsum(batch.extend_lens)
        for row, awaited in enumerate(batch.awaited_rows.tolist()):
            if awaited >= 0:
                assert ids[ends[row] - 1] == NO_TOKEN
                ids[ends[row] - 1] = self._last[awaited]
        assert ids.min() >= 0
        return replace(batch, input_ids=ids)

    def _slots_of(self, batch: ForwardBatch, row: int) -> NDArray[np.int64]:
        size = batch.page_size
        seq_len = int(batch.prefix_lens[row] + batch.extend_lens[row])
        pages = np.array(batch.pages[row][: -(-seq_len // size)], dtype=np.int64)
        assert pages.min() > 0, "page 0 is padding"
        return (pages[:, None] * size + np.arange(size)).reshape(-1)[:seq_len]
