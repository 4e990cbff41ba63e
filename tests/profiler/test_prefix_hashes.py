"""Prefix hashes: equal as far as two prompts are."""

from array import array
from hashlib import blake2b
from struct import pack

from hypothesis import given
from hypothesis import strategies as st

from profiler.prefix_hashes import HASHED_TOKENS, prefix_hashes

tokens = st.lists(st.integers(0, 2**31 - 1), max_size=3 * HASHED_TOKENS)


@given(shared=tokens, a=tokens, b=tokens)
def test_two_prompts_share_hashes_as_far_as_whole_blocks_of_their_prefixes_agree(
    shared: list[int], a: list[int], b: list[int]
) -> None:
    one, other = prefix_hashes(shared + a).tolist(), prefix_hashes(shared + b).tolist()
    assert len(one) == len(shared + a) // HASHED_TOKENS
    for k in range(min(len(one), len(other))):
        end = (k + 1) * HASHED_TOKENS
        assert (one[k] == other[k]) == ((shared + a)[:end] == (shared + b)[:end])


def test_a_hash_is_blake2b_of_the_one_before_and_the_block() -> None:
    prompt = array("i", range(1000, 1000 + 2 * HASHED_TOKENS + 5))
    first = blake2b(pack("<64i", *prompt[:64]), digest_size=8).digest()
    second = blake2b(first + pack("<64i", *prompt[64:128]), digest_size=8).digest()
    assert prefix_hashes(prompt).tolist() == [int.from_bytes(h, "little") for h in (first, second)]
