"""How forwards are laid out for kernels: blocks, splits and columns, all on the host."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.attention.block_shapes import DECODE, EXTEND, attention_blocks
from engine.attention.columns import flat_pages, page_starts, tiles, token_slots, upload
from engine.attention.decode_splits import MIN_SPLIT, head_tiles, split_cap, split_lens
from tests.support.ragged import Ragged, attention_shape

H100_CORES = 132


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int32)


@pytest.mark.parametrize(
    ("lengths", "count"),
    [([1] * 15 + [1000], 31), ([1152, 4224], 84), ([64] * 4, 4), ([], 0), ([0, 65], 2)],
)
def test_as_many_blocks_are_launched_as_the_rows_have(lengths: list[int], count: int) -> None:
    rows, blocks = tiles(np.zeros(len(lengths), dtype=np.int32), ints(*lengths), 64)
    assert len(rows) == len(blocks) == count


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), max_size=8), st.sampled_from([16, 64]))
def test_blocks_cover_each_row_once_and_the_longest_come_first(
    lengths: list[tuple[int, int]], block_m: int
) -> None:
    prefixes, extends = np.array(lengths, dtype=np.int32).reshape(-1, 2).T
    rows, blocks = tiles(prefixes, extends, block_m)
    made = set(zip(rows.tolist(), blocks.tolist(), strict=True))
    assert made == {(r, b) for r, (_, e) in enumerate(lengths) for b in range(math.ceil(e / block_m))}
    assert len(made) == len(rows)
    keys = [lengths[r][0] + min((b + 1) * block_m, lengths[r][1]) for r, b in zip(rows, blocks, strict=True)]
    assert keys == sorted(keys, reverse=True)


@given(
    st.lists(st.integers(0, 100_000), min_size=1, max_size=20),
    st.integers(1, 64),
    st.integers(1, 160),
    st.integers(1, 40),
)
def test_no_row_has_more_splits_than_the_cap(lengths: list[int], programs: int, cores: int, cap: int) -> None:
    per_split = split_lens(ints(*lengths), programs, cores, cap)
    assert (per_split >= 1).all()
    assert (-(-ints(*lengths) // per_split) <= cap).all()
    assert all(split % MIN_SPLIT == 0 for split, length in zip(per_split, lengths, strict=True) if length)


@pytest.mark.parametrize(
    ("lengths", "programs", "splits"),
    [
        ([8192], 8, 8),  # 132 * 7 / 8 programs are wanted of each: the cap
        ([8192] * 64, 8, 2),  # 132 * 7 / 512 = 1.8
        ([8192] * 256, 8, 1),
        ([100] * 4, 1, 4),  # splits of 32, the shortest
        ([8192, 1024], 100, 8),  # evens out: as many as the longest is times the shortest
    ],
)
def test_splits_follow_length_and_cores(lengths: list[int], programs: int, splits: int) -> None:
    per_split = split_lens(ints(*lengths), programs, H100_CORES, 8)
    assert math.ceil(lengths[0] / per_split[0]) == splits


def test_few_rows_may_be_split_further() -> None:
    assert split_cap(1, 8, H100_CORES) == 33
    assert split_cap(256, 8, H100_CORES) == 8


@pytest.mark.parametrize(
    ("num_heads", "num_kv_heads", "programs"), [(32, 8, 8), (32, 32, 32), (48, 2, 4), (128, 1, 8), (3, 1, 1)]
)
def test_heads_of_a_kv_head_share_programs(num_heads: int, num_kv_heads: int, programs: int) -> None:
    assert head_tiles(num_heads, num_kv_heads, 16) == programs


def test_a_newer_card_takes_the_newest_entry_below_it() -> None:
    assert attention_blocks(90, 128).extend == EXTEND[90, 128]
    assert attention_blocks(89, 96).extend == EXTEND[86, 128]
    assert attention_blocks(103, 80).extend == EXTEND[100, 128]
    assert attention_blocks(90, 128).decode == DECODE[80, 128]
    with pytest.raises(ValueError, match="heads of 320"):
        attention_blocks(90, 320)


def test_columns_name_each_token_s_slot_and_each_row_s_pages() -> None:
    made = Ragged(attention_shape(1, 1, 16), 4, [(3, 6), (4, 0), (8, 1)], 1, torch.float32)
    new = torch.cat([made.slots(0)[3:], made.slots(2)[8:]])
    assert token_slots(made.batch).tolist() == new.tolist()
    assert flat_pages(made.batch).tolist() == [*made.pages[0], *made.pages[1], *made.pages[2]]
    assert page_starts(made.batch).tolist() == [0, 3, 4]


@given(st.lists(st.lists(st.integers(-5, 2**31 - 1), max_size=9), min_size=1, max_size=5))
def test_columns_arrive_as_they_were_and_aligned(values: list[list[int]]) -> None:
    columns = {str(i): np.array(column, dtype=np.int64) for i, column in enumerate(values)}
    arrived = upload(columns, torch.device("cpu"))
    assert [arrived[name].tolist() for name in columns] == values
    assert len({column.data_ptr() % 16 for column in arrived.values() if len(column)}) <= 1
