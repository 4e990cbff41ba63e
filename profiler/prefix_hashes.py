"""Hashes of a prompt's prefixes: two prompts share a prefix where they share hashes, and no token is kept."""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

__all__ = ["HASHED_TOKENS", "prefix_hashes"]

HASHED_TOKENS = 64  # tokens a hash adds to the prefix
HASH_BYTES = 8
TOKEN_BYTES = 4


def prefix_hashes(token_ids: Sequence[int]) -> NDArray[np.uint64]:
    """One hash per whole block of 64 tokens; hash k stands for the first 64 (k + 1) tokens.

    Hash k is BLAKE2b, cut to 64 bits, of hash k - 1 and the block's tokens as little-endian int32. The same
    tokens give the same hashes in every process and on every machine.
    """
    blocks = np.asarray(token_ids, dtype="<i4").tobytes()
    step = HASHED_TOKENS * TOKEN_BYTES
    digest, digests = b"", []
    for at in range(0, len(blocks) - step + 1, step):
        digest = blake2b(digest + blocks[at : at + step], digest_size=HASH_BYTES).digest()
        digests.append(digest)
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
