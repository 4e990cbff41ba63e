"""What must hold of the forwards that an engine tells of, one after the other."""

from engine.batch import MIDDLE_ROLES, Outcome, Role
from engine.cache.allocator import ceil_page
from engine.config import EngineConfig
from engine.observer import ForwardRecord
from profiler.invariants.live.broken import Place, hold

__all__ = ["HeldRecords"]


class HeldRecords:
    """Follows each attempt's cursor and each request's tokens from forward to forward."""

    def __init__(self, config: EngineConfig) -> None:
        self._config = config
        self._cursors: dict[tuple[int, int], int] = {}  # end of the last row by rid and attempt
        self._tokens: dict[int, int] = {}  # emitted by rid
        self._last_ns = 0  # when the result of the forward before had been processed

    def hold(self, record: ForwardRecord) -> None:
        """Hold the next forward against the rules; raises InvariantError."""
        place = Place(record.batch.forward_id)
        pool = record.plan.pool
        parts = pool.free + pool.evictable + pool.protected + pool.private
        hold("pool_conservation", parts == pool.total, place, parts=parts, total=pool.total)
        hold(
            "host_thread_order",
            self._last_ns <= record.result_start_ns <= record.result_end_ns,
            place,
            before_result_end_ns=self._last_ns,
            result_start_ns=record.result_start_ns,
        )
        self._last_ns = record.result_end_ns
        middle = [int(role) for role in record.batch.roles if role in MIDDLE_ROLES]
        hold("one_chunked_request", len(middle) <= 1, place, middle_chunks=len(middle))
        self._hold_budgets(record)
        for row in range(record.batch.num_rows):
            self._hold_row(record, row)

    def _hold_budgets(self, record: ForwardRecord) -> None:
        """Input and chunk budgets are charged the new tokens in whole pages."""
        start, end = record.plan.budget_start, record.plan.budget_end
        if start is None or end is None:
            return
        batch = record.batch
        extends = batch.extend_lens[: batch.num_extend_seqs].tolist()
        paged = sum(ceil_page(tokens, batch.page_size) for tokens in extends)
        charged = {"input": start.input - end.input}
        if start.chunk is not None and end.chunk is not None:
            charged["chunk"] = start.chunk - end.chunk
        for budget, tokens in charged.items():
            hold(
                "budgets_charged",
                tokens == paged,
                Place(batch.forward_id),
                budget=budget,
                charged=tokens,
                paged=paged,
            )

    def _hold_row(self, record: ForwardRecord, row: int) -> None:
        batch = record.batch
        request, role = batch.requests[row], Role(batch.roles[row])
        prefix, extend = int(batch.prefix_lens[row]), int(batch.extend_lens[row])
        attempt, outcome = int(batch.attempts[row]), Outcome(record.outcomes[row])
        at = Place(batch.forward_id, request.name, attempt)
        before = self._cursors.get((request.rid, attempt))
        starts = role in (Role.WHOLE, Role.FIRST)
        hold("row_lengths", extend >= 1, at, extend_len=extend)
        hold("chunk_roles", starts == (before is None), at, role=role.name, previous_end=before)
        hold("cursor_contiguous", before in (None, prefix), at, previous_end=before, prefix_len=prefix)
        self._cursors[request.rid, attempt] = prefix + extend
        index = int(record.token_index[row])
        if outcome is not Outcome.EMITTED:
            hold("outcomes", index == -1, at, outcome=outcome.name, token_index=index)
            return
        hold("middle_never_emits", role not in MIDDLE_ROLES, at, role=role.name, token_index=index)
        tokens = self._tokens.get(request.rid, 0)
        hold("token_sequence", index == tokens, at, token_index=index, expected_index=tokens)
        self._tokens[request.rid] = tokens + 1
