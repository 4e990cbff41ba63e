"""What a window lets see, against counting every query."""

from hypothesis import given
from hypothesis import strategies as st

from engine.arithmetic import forward_sums
from engine.batch import Role
from profiler.paper.seen import Seen, in_batch, in_sums
from tests.support.forward_rows import forward_of

windows = st.integers(1, 40)
extends = st.lists(st.tuples(st.just(Role.LAST), st.integers(0, 60), st.integers(1, 50)), max_size=4)
decodes = st.lists(st.tuples(st.just(Role.DECODE), st.integers(1, 90), st.just(1)), max_size=4)


def counted(rows: list[tuple[Role, int, int]], window: int) -> Seen:
    """Query by query: which keys lie in its window, and are they older than the row."""
    prefix_pairs = causal_pairs = decode_pairs = prefix_tokens = 0
    for role, prefix, extend in rows:
        keys_read = set()
        for query in range(prefix, prefix + extend):
            keys = range(max(0, query - window + 1), query + 1)
            if role is Role.DECODE:
                decode_pairs += len(keys)
                continue
            older = [key for key in keys if key < prefix]
            keys_read |= set(older)
            prefix_pairs += len(older)
            causal_pairs += len(keys) - len(older)
        prefix_tokens += len(keys_read)
    cut = [row for row in rows if row[0] is not Role.DECODE]
    return Seen(
        extend_rows=len(cut),
        extend_tokens=sum(extend for _, _, extend in cut),
        decode_tokens=len(rows) - len(cut),
        pairs_prefix=prefix_pairs,
        pairs_causal=causal_pairs,
        pairs_decode=decode_pairs,
        prefix_tokens=prefix_tokens,
    )


@given(extends, decodes, windows)
def test_every_row_is_seen_by_itself(
    extends: list[tuple[Role, int, int]], decodes: list[tuple[Role, int, int]], window: int
) -> None:
    rows = [*extends, *decodes]
    if rows:
        forward = forward_of(rows)
        assert in_batch(forward, forward_sums(forward), window) == counted(rows, window)


@given(st.integers(0, 60), st.integers(1, 50), st.integers(0, 3), st.integers(1, 90), windows)
def test_sums_tell_one_prompt_and_decode_rows_of_one_length(
    prefix: int, extend: int, decodes: int, length: int, window: int
) -> None:
    rows = [(Role.LAST, prefix, extend)] + [(Role.DECODE, length, 1)] * decodes
    assert in_sums(forward_sums(forward_of(rows)), window) == counted(rows, window)


@given(st.integers(1, 5), st.integers(0, 60), st.integers(1, 50), windows)
def test_sums_tell_prompts_that_are_alike(rows: int, prefix: int, extend: int, window: int) -> None:
    told = in_sums(forward_sums(forward_of([(Role.LAST, prefix, extend)] * rows)), window)
    exact = counted([(Role.LAST, prefix, extend)] * rows, window)
    for name in ("extend_rows", "pairs_prefix", "pairs_causal", "prefix_tokens"):
        assert abs(getattr(told, name) - getattr(exact, name)) < 1e-6, name


@given(extends, windows)
def test_a_window_never_lets_see_more(extends: list[tuple[Role, int, int]], window: int) -> None:
    if extends:
        sums = forward_sums(forward_of(extends))
        less, more = in_sums(sums, window), in_sums(sums, None)
        assert less.pairs_causal <= more.pairs_causal + 1e-6
        assert less.prefix_tokens <= more.prefix_tokens + 1e-6
