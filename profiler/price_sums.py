"""Sums of forwards that nobody ran: a chunk of one prompt, and a batch of decode rows."""

from engine.arithmetic import ForwardSums

__all__ = ["chunk_sums", "decode_sums"]


def chunk_sums(tokens: int, prefix: int = 0, *, logits: bool = True) -> ForwardSums:
    """A forward of `tokens` of one prompt behind a prefix; a middle chunk has no logits."""
    pairs_causal = tokens * (tokens + 1) // 2
    return ForwardSums(tokens, 0, int(logits), tokens * prefix, pairs_causal, 0, prefix, prefix + tokens)


def decode_sums(rows: int, seq_len: int) -> ForwardSums:
    """A forward of decode rows that each attend to `seq_len` tokens, the new one included."""
    return ForwardSums(0, rows, rows, 0, 0, rows * seq_len, 0, rows * seq_len)
