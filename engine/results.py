"""What a forward's samples mean: tokens emitted, middle samples dropped, requests that end."""

from array import array

import numpy as np

from engine.batch import MIDDLE_ROLES, ForwardBatch, Outcome
from engine.cache import KVCache
from engine.event_log import EventLog
from engine.executors.protocol import NO_TOKEN, ForwardResult
from engine.observer import EventKind
from engine.request import FinishReason, Request
from engine.reserve import Reserve

__all__ = ["Results", "process_results"]


class Results:
    """The columns a processed forward adds, and the requests whose state changed."""

    def __init__(self, num_rows: int) -> None:
        self.outcomes = np.zeros(num_rows, dtype=np.uint8)
        self.token_index = np.full(num_rows, -1, dtype=np.int32)
        self.inflight_after_result = np.zeros(num_rows, dtype=np.uint8)
        self.changed: list[Request] = []  # gave their first token, or ended


def process_results(
    batch: ForwardBatch,
    result: ForwardResult,
    cache: KVCache,
    reserve: Reserve,
    events: EventLog,
    eos_token_ids: frozenset[int],
) -> Results:
    """Apply a forward's samples to its requests, in row order.

    A middle chunk's sample is dropped. A prefill that is complete hands its KV to the tree; a request that
    ends leaves its whole pages there. A decode row that goes on does neither. Under overlap a request may
    have ended, or given its KV back, since the forward was planned: its sample changes nothing. `reserve`
    follows the output of the requests it counts.
    """
    out = Results(batch.num_rows)
    index = array("i")
    outcomes = bytearray()
    counters = bytearray()
    attempts, roles = batch.attempts.tolist(), batch.roles.tolist()
    for i, request in enumerate(batch.requests):
        outcome = _outcome(request, attempts[i], roles[i])
        if roles[i] in MIDDLE_ROLES and outcome != Outcome.RETRACTED:
            request.inflight_middle_chunks -= 1
        index.append(request.output_len if outcome == Outcome.EMITTED else -1)
        if outcome == Outcome.EMITTED:
            _emit(request, result.next_token_ids[i], eos_token_ids)
            reserve.after_token(request)
            if request.finished:
                reserve.leave(request)
                events.add(EventKind.FINISH, request, tokens=request.output_len)
                cache.release(request, keep=True)
            elif i < batch.num_extend_seqs:
                cache.checkpoint(request, request.extend_end)
                events.add(EventKind.CHECKPOINT, request, tokens=request.protected_len)
                request.prefix_len = request.extend_end
            if request.finished or request.output_len == 1:
                out.changed.append(request)
        outcomes.append(outcome)
        counters.append(request.inflight_middle_chunks)
    out.outcomes[:] = outcomes
    out.token_index[:] = index
    out.inflight_after_result[:] = counters
    return out


def _outcome(request: Request, attempt: int, role: int) -> Outcome:
    """What becomes of the sample of a row planned in this role for this attempt."""
    if request.attempt != attempt:
        return Outcome.RETRACTED
    if request.finish_reason is not None:
        aborted = request.finish_reason is FinishReason.ABORT
        return Outcome.ABORTED if aborted else Outcome.FINISHED_DROPPED
    return Outcome.MIDDLE_DROPPED if role in MIDDLE_ROLES else Outcome.EMITTED


def _emit(request: Request, token: int, eos_token_ids: frozenset[int]) -> None:
    """Append one output token; length is tested first, then the model's and the request's own stop tokens."""
    assert token != NO_TOKEN, "a row that emits needs a token"
    request.tokens.append(token)
    if request.output_len >= request.max_new_tokens:
        request.finish_reason = FinishReason.LENGTH
    elif token in request.sampling.stop_token_ids:
        request.finish_reason = FinishReason.STOP
    elif token in eos_token_ids and not request.sampling.ignore_eos:
        request.finish_reason = FinishReason.EOS
