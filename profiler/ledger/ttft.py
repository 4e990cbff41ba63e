"""The time to first token of one request, taken apart."""

import numpy as np

from engine.batch import StopReason
from profiler.forward_table import UNKNOWN
from profiler.ledger.parts import Chunk
from profiler.ledger.ttft_parts import TtftKind, TtftLedger, TtftPart
from profiler.ledger.ttft_pieces import TtftPiece, prefill_pieces, queue_pieces
from profiler.ledger.ttft_rounds import NO_REASON
from profiler.ledger.ttft_source import TtftSource
from profiler.tables import TraceLike

__all__ = ["read_ttft", "ttft_ledger"]


def ttft_ledger(trace: TraceLike, rid: int) -> TtftLedger | None:
    """The time to first token of a request; None without an arrival, or a first token after it."""
    return read_ttft(TtftSource.of(trace), rid)


def read_ttft(source: TtftSource, rid: int) -> TtftLedger | None:
    """`ttft_ledger` for a caller who asks for more than one."""
    wait = int(source.waits.index(np.array([rid]))[0])
    if wait < 0:
        return None
    pieces = [*queue_pieces(source, wait), *prefill_pieces(source, wait)]
    return TtftLedger(
        rid=rid,
        name=source.name_of(rid),
        arrival_ns=int(source.waits.arrival_ns[wait]),
        first_token_ns=int(source.waits.first_token_ns[wait]),
        parts=tuple(_part(source, wait, piece) for piece in pieces if piece.ns),
        split=source.ledger.split.name,
    )


def _part(source: TtftSource, wait: int, piece: TtftPiece) -> TtftPart:
    forward_id = None if piece.forward == UNKNOWN else int(source.forwards.forward_id[piece.forward])
    chunk = None if piece.chunk == UNKNOWN else _chunk(source, piece)
    if piece.kind is not TtftKind.BLOCKED:
        return TtftPart(piece.kind, piece.ns, forward_id, chunk=chunk)
    rounds = source.rounds[int(source.waits.rank[wait])]
    reason, behind = int(rounds.reason[piece.number]), int(rounds.blocked_rid[piece.number])
    nobody = behind in (UNKNOWN, int(source.waits.rid[wait]))
    return TtftPart(
        piece.kind,
        piece.ns,
        forward_id,
        None if reason == NO_REASON else StopReason(reason),
        None if nobody else behind,
        None if nobody else source.name_of(behind),
        chunk,
    )


def _chunk(source: TtftSource, piece: TtftPiece) -> Chunk:
    chunks, forwards = source.ledger.chunks, source.forwards
    rid, prefix_len, of = (int(c[piece.chunk]) for c in (chunks.rid, chunks.prefix_len, chunks.of))
    return Chunk(
        rid=rid,
        name=source.name_of(rid),
        number=int(chunks.number[piece.chunk]),
        of=None if of == UNKNOWN else of,
        prefix_len=prefix_len,
        extend_end=prefix_len + int(chunks.extend_len[piece.chunk]),
        forward_id=int(forwards.forward_id[piece.forward]),
        start_ns=int(forwards.start_ns[piece.forward]),
        end_ns=int(forwards.end_ns[piece.forward]),
        in_gap_ns=piece.ns,
    )
