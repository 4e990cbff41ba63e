"""Workload files of others: recognised by content, read exactly, refused in one line."""

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import WorkloadError
from engine.lazy_prompt import LazyPrompt
from engine.workload import Workload, load_workload, random_ids
from engine.workload.prompts import block_ids
from tests.support.engines import make_engine

VOCAB = 50_000
DAY = datetime(2023, 11, 16, 18, 15, 46)


class Row(NamedTuple):
    """A recorded request; arrivals in units of 100 ns, which every format but Mooncake's can hold."""

    arrival: int
    prompt: int
    output: int


def azure(rows: Sequence[Row]) -> str:
    """TIMESTAMP has seven decimals."""
    lines = ["TIMESTAMP,ContextTokens,GeneratedTokens"]
    for row in rows:
        second, rest = divmod(row.arrival, 10**7)
        lines.append(f"{DAY + timedelta(seconds=second)}.{rest:07},{row.prompt},{row.output}")
    return "\r\n".join(lines)


def vidur(rows: Sequence[Row]) -> str:
    lines = ["arrived_at,num_prefill_tokens,num_decode_tokens"]
    lines += [f"{Decimal(row.arrival) / 10**7},{row.prompt},{row.output}" for row in rows]
    return "\n".join(lines) + "\n"


def vidur_untimed(rows: Sequence[Row]) -> str:
    lines = ["num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio"]
    lines += [f"{row.prompt},{row.output},{row.prompt + row.output},0.5" for row in rows]
    return "\n".join(lines) + "\n"


def mooncake(rows: Sequence[Row]) -> str:
    """Each request has blocks of its own."""
    lines, made = [], 0
    for row in rows:
        blocks = -(-row.prompt // 512)
        lines.append(
            {
                "timestamp": row.arrival,
                "input_length": row.prompt,
                "output_length": row.output,
                "hash_ids": list(range(made, made + blocks)),
            }
        )
        made += blocks
    return "".join(json.dumps(line) + "\n" for line in lines)


def llmservingsim(rows: Sequence[Row]) -> str:
    lines = [
        {"input_toks": row.prompt, "output_toks": row.output, "arrival_time_ns": row.arrival * 100}
        for row in rows
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


class Writer(NamedTuple):
    """How a format is written here, and what is read back."""

    title: str
    text: Callable[[Sequence[Row]], str]
    first_line: int  # of the first request
    unit_ns: int = 100


WRITERS = {
    "azure": Writer("Azure LLM inference trace", azure, 2),
    "vidur": Writer("Vidur trace", vidur, 2),
    "mooncake": Writer("Mooncake trace", mooncake, 1, unit_ns=1_000_000),
    "llmservingsim": Writer("LLMServingSim workload", llmservingsim, 1),
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workloads") / "no-name-that-tells"


def load(path: Path, text: str | bytes, **options: Any) -> Workload:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return load_workload(path, vocab_size=VOCAB, **options)


ROWS = st.lists(
    st.builds(Row, st.integers(0, 10**9), st.integers(1, 3000), st.integers(1, 5000)), min_size=1, max_size=6
)


@pytest.mark.parametrize("stem", WRITERS)
@given(rows=ROWS, blank=st.booleans(), mark=st.booleans())
def test_what_is_written_is_read_back(
    file: Path, stem: str, rows: list[Row], blank: bool, mark: bool
) -> None:
    writer = WRITERS[stem]
    text = writer.text(rows)
    workload = load(file, ("\ufeff" if mark else "") + ("\n \n" if blank else "") + text)
    assert (workload.title, workload.timed) == (writer.title, True)
    first = writer.first_line + (2 if blank else 0)
    start = min(row.arrival for row in rows) if stem == "azure" else 0
    for place, (row, request) in enumerate(zip(rows, workload.requests, strict=True)):
        assert request.arrival_ns == (row.arrival - start) * writer.unit_ns
        assert (request.prompt_len, request.sampling.max_new_tokens) == (row.prompt, row.output)
        assert (request.rid, request.name) == (place, f"{stem}-{first + place}")
        assert request.sampling.ignore_eos
        assert workload.where(request) == f"{file}:{first + place}"


@given(rows=ROWS)
def test_a_table_without_arrivals_starts_at_once(file: Path, rows: list[Row]) -> None:
    workload = load(file, vidur_untimed(rows))
    assert (workload.title, workload.timed) == ("Vidur trace", False)
    assert {r.arrival_ns for r in workload.requests} == {0}
    assert [(r.prompt_len, r.sampling.max_new_tokens) for r in workload.requests] == [
        (row.prompt, row.output) for row in rows
    ]


# -- prompts -------------------------------------------------------------------------------------------------


@given(
    st.lists(st.integers(0, 3) | st.integers(0, 2**64 - 1), min_size=1, max_size=4),
    st.lists(st.integers(0, 3) | st.integers(0, 2**64 - 1), min_size=1, max_size=4),
    st.integers(3, 512),
    st.integers(0, 2**63 - 1),
)
def test_prompts_share_tokens_exactly_where_they_share_blocks(
    file: Path, one: list[int], other: list[int], last: int, seed: int
) -> None:
    lines = [
        {"timestamp": 0, "output_length": 1, "hash_ids": ids, "input_length": 512 * (len(ids) - 1) + last}
        for ids in (one, other)
    ]
    a, b = (
        np.asarray(r.prompt_token_ids)
        for r in load(file, "\n".join(map(json.dumps, lines)), seed=seed).requests
    )
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        span = slice(512 * place, min(512 * (place + 1), len(a), len(b)))
        assert (a[span].tolist() == b[span].tolist()) == (left == right)


def test_the_radix_cache_finds_what_requests_share(file: Path) -> None:
    blocks = [[1, 2, 3], [1, 2, 4, 5], [6], [1, 2, 3], [1, 2, 4, 5, 7]]
    lines = [
        {"timestamp": i, "input_length": 512 * len(ids) - 100, "output_length": 2, "hash_ids": ids}
        for i, ids in enumerate(blocks)
    ]
    requests = load(file, "\n".join(map(json.dumps, lines))).requests
    engine = make_engine()
    for request in requests:
        engine.run([request])
    # A prompt's last token is computed whatever is cached, and a block that was cut is no whole one.
    assert [r.cached_tokens for r in requests] == [0, 2 * 512, 0, 3 * 512 - 101, 4 * 512 - 100]


def splitmix64(state: int, count: int) -> list[int]:
    """The published generator, one number at a time."""
    mask, out = 2**64 - 1, []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        out.append(z ^ (z >> 31))
    return out


def test_the_tokens_of_a_block_are_what_they_were() -> None:
    """The same trace gives the same prompts in every version, by the published generator."""
    assert splitmix64(1234567, 2) == [6457827717110365317, 3203168211198807973]
    (state,) = splitmix64(7, 1)
    (salt,) = splitmix64(5 - 0x9E3779B97F4A7C15 & 2**64 - 1, 1)
    (key,) = splitmix64((state ^ salt) - 0x9E3779B97F4A7C15 & 2**64 - 1, 1)
    assert block_ids(600, VOCAB, 5, [7, 8])[:512].tolist() == [t % VOCAB for t in splitmix64(key, 512)]


def test_given_token_ids_are_the_prompt(file: Path) -> None:
    line = {"input_toks": 3, "output_toks": 2, "arrival_time_ns": 5, "input_tok_ids": [9, 0, 49_999]}
    (request,) = load(file, json.dumps(line)).requests
    assert list(request.prompt_token_ids) == [9, 0, 49_999]


def test_prompts_depend_on_seed_and_place_alone(file: Path) -> None:
    rows = [Row(3, 40, 1), Row(2, 40, 1), Row(1, 40, 1)]
    all_, limited = load(file, azure(rows)), load(file, azure(rows), limit=2)
    assert [list(r.prompt_token_ids) for r in limited.requests] == [
        list(r.prompt_token_ids) for r in all_.requests[1:]
    ]
    assert list(all_.requests[0].prompt_token_ids) != list(all_.requests[1].prompt_token_ids)
    assert list(load(file, azure(rows), seed=1).requests[0].prompt_token_ids) != list(
        all_.requests[0].prompt_token_ids
    )


def test_a_lazy_prompt_reads_like_the_tokens_it_makes() -> None:
    made = random_ids(20, VOCAB, 0, 0)
    prompt = LazyPrompt(20, lambda: random_ids(20, VOCAB, 0, 0))
    assert len(prompt) == 20
    assert (list(prompt), prompt[3], prompt[-1], prompt[2:5]) == (list(made), made[3], made[-1], made[2:5])
    assert np.asarray(prompt).dtype == np.int32
    assert np.asarray(prompt, dtype="<i8").tolist() == list(made)
    assert not LazyPrompt(0, lambda: random_ids(0, VOCAB, 0, 0))


# -- limit and time scale ------------------------------------------------------------------------------------


@given(rows=ROWS, limit=st.integers(1, 7))
def test_a_limit_keeps_the_requests_that_arrive_first(file: Path, rows: list[Row], limit: int) -> None:
    kept = sorted(sorted(range(len(rows)), key=lambda i: rows[i].arrival)[:limit])
    workload = load(file, llmservingsim(rows), limit=limit)
    assert [r.name for r in workload.requests] == [f"llmservingsim-{i + 1}" for i in kept]
    assert [r.rid for r in workload.requests] == list(range(len(kept)))
    assert [workload.where(r) for r in workload.requests] == [f"{file}:{i + 1}" for i in kept]


@pytest.mark.parametrize("stem", WRITERS)
def test_a_time_scale_stretches_arrivals(file: Path, stem: str) -> None:
    text = WRITERS[stem].text([Row(0, 1, 1), Row(30, 1, 1)])
    unit = WRITERS[stem].unit_ns
    for scale, arrival in ((0.5, 15), (2.0, 60), (1, 30)):
        assert [r.arrival_ns for r in load(file, text, time_scale=scale).requests] == [0, arrival * unit]


def test_the_own_format_takes_limit_and_time_scale_too(file: Path) -> None:
    lines = [{"rid": c, "prompt_tokens": 2, "arrival_s": s} for c, s in (("a", 3), ("b", 1), ("c", 2))]
    workload = load(file, "\n".join(map(json.dumps, lines)), limit=2, time_scale=0.25)
    assert workload.title == "Chunkscope workload"
    assert [(r.name, r.arrival_ns) for r in workload.requests] == [("b", 250_000_000), ("c", 500_000_000)]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"limit": 0}, "--limit 0"),
        ({"limit": -2}, "--limit -2"),
        ({"time_scale": 0}, "--time-scale 0"),
        ({"time_scale": -1.0}, "--time-scale -1.0"),
        ({"time_scale": float("nan")}, "--time-scale nan"),
        ({"time_scale": float("inf")}, "--time-scale inf"),
        ({"time_scale": 1e300}, "--time-scale 1e+300 puts the arrival after 10000000 s"),
    ],
)
def test_a_wrong_limit_or_scale_is_named(file: Path, options: dict[str, Any], text: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        load(file, vidur([Row(0, 1, 1), Row(30, 1, 1)]), **options)
    assert text in str(caught.value)


# -- what records hold that cannot be served as it is --------------------------------------------------------


@pytest.mark.parametrize("stem", WRITERS)
def test_requests_without_tokens_are_counted(file: Path, stem: str) -> None:
    rows = [Row(0, 0, 4), Row(1, 7, 0), Row(2, 8, 3), Row(3, 0, 0)]
    writer = WRITERS[stem]
    workload = load(file, writer.text(rows))
    assert [(r.rid, r.prompt_len) for r in workload.requests] == [(0, 7), (1, 8)]
    assert [r.sampling.max_new_tokens for r in workload.requests] == [1, 3]
    assert workload.empty_prompts == [writer.first_line, writer.first_line + 3]
    assert workload.empty_outputs == [writer.first_line + 1]
    assert load(file, writer.text(rows), limit=2).empty_prompts == [writer.first_line]
    with pytest.raises(WorkloadError, match="holds no request with a prompt"):
        load(file, writer.text(rows[:1]))


def test_azure_dates_may_have_zones_and_any_decimals(file: Path) -> None:
    head = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    dates = [
        "2024-05-10 00:00:00.009930+00:00",
        "2024-05-10T00:00:00.009930001Z",
        "2024-05-10 02:00:01+02:00",
        "2024-02-29 23:59:59",
    ]
    workload = load(file, head + "\n".join(f'"{date}", 5 ,6' for date in dates))
    leap = 70 * 86400 + 1  # from the last date to the first, in seconds
    assert [r.arrival_ns for r in workload.requests] == [
        leap * 10**9 + 9_930_000,
        leap * 10**9 + 9_930_001,
        (leap + 1) * 10**9,
        0,
    ]


def test_numbers_as_writers_of_floats_leave_them(file: Path) -> None:
    text = (
        "num_decode_tokens,arrived_at,id,num_prefill_tokens\n7.0,5.1e-05,x,12.\n1,5.8926549999999995,y,3.00\n"
    )
    requests = load(file, text).requests
    assert [(r.arrival_ns, r.prompt_len, r.sampling.max_new_tokens) for r in requests] == [
        (51_000, 12, 7),
        (5_892_655_000, 3, 1),
    ]
    half = '{"timestamp": 27.4821, "input_length": 5, "output_length": 6}'
    assert [(r.arrival_ns, r.prompt_len) for r in load(file, half).requests] == [(27_482_100, 5)]


# -- refusals ------------------------------------------------------------------------------------------------

AZURE_HEAD = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,3,4\n"
VIDUR_HEAD = "arrived_at,num_prefill_tokens,num_decode_tokens\n0.5,3,4\n"
MOONCAKE = {"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [0, 1]}
LLMSERVINGSIM = {"input_toks": 3, "output_toks": 2, "arrival_time_ns": 5}

BAD_CELLS = {
    "no date": (AZURE_HEAD + "yesterday,3,4", 'TIMESTAMP is "yesterday": give a date and time'),
    "no such date": (AZURE_HEAD + "2023-02-30 18:15:46,3,4", 'TIMESTAMP is "2023-02-30 18:15:46"'),
    "no such zone": (AZURE_HEAD + "2023-02-03 18:15:46+99:99,3,4", "TIMESTAMP is"),
    "year 0": (AZURE_HEAD + "0000-02-03 18:15:46,3,4", "TIMESTAMP is"),
    "another century": (AZURE_HEAD + "2123-11-16 18:15:46,3,4", "s after the first"),
    "negative length": (
        AZURE_HEAD + "2023-11-16 18:15:46,-3,4",
        'ContextTokens is "-3": give a whole number',
    ),
    "half a token": (AZURE_HEAD + "2023-11-16 18:15:46,3,4.5", 'GeneratedTokens is "4.5"'),
    "huge length": (AZURE_HEAD + "2023-11-16 18:15:46,10000001,4", "from 0 to 10000000"),
    "endless length": (AZURE_HEAD + "2023-11-16 18:15:46,3," + "9" * 5000, "GeneratedTokens is"),
    "no length": (AZURE_HEAD + "2023-11-16 18:15:46,,4", 'ContextTokens is ""'),
    "other digits": (AZURE_HEAD + "2023-11-16 18:15:46,\u0663,4", "ContextTokens is"),
    "few cells": (AZURE_HEAD + "2023-11-16 18:15:46,3", "2 cells: the head names 3"),
    "many cells": (AZURE_HEAD + "2023-11-16 18:15:46,3,4,5", "4 cells: the head names 3"),
    "negative arrival": (VIDUR_HEAD + "-1,3,4", 'arrived_at is "-1": give seconds from 0'),
    "no arrival": (VIDUR_HEAD + "nan,3,4", 'arrived_at is "nan"'),
    "late arrival": (VIDUR_HEAD + "1e8,3,4", 'arrived_at is "1e8"'),
    "never": (VIDUR_HEAD + "1e99,3,4", 'arrived_at is "1e99"'),
    "underscores": (VIDUR_HEAD + "1_0,3,4", 'arrived_at is "1_0"'),
    "not UTF-8": (VIDUR_HEAD.encode() + b"\xff,3,4", "not UTF-8"),
    "a huge cell": (VIDUR_HEAD + "1" * 200_000 + ",3,4", "no CSV, field larger"),
}

BAD_FIELDS = {
    "no length": ({**MOONCAKE, "input_length": None}, "input_length is null"),
    "length left out": (
        {"timestamp": 1, "hash_ids": []},
        "input_length is missing: the format needs timestamp",
    ),
    "no time": ({"input_length": 1, "output_length": 1}, "timestamp is missing"),
    "negative time": ({**MOONCAKE, "timestamp": -1}, "timestamp is -1"),
    "text time": ({**MOONCAKE, "timestamp": "1"}, 'timestamp is "1"'),
    "late": ({**MOONCAKE, "timestamp": 10**14}, "from 0 to 10000000000"),
    "few blocks": ({**MOONCAKE, "hash_ids": [0]}, "hash_ids holds 1 ids: input_length 600 needs 2"),
    "many blocks": ({**MOONCAKE, "hash_ids": [0, 1, 2]}, "hash_ids holds 3 ids"),
    "no blocks": ({**MOONCAKE, "hash_ids": None}, "hash_ids is null"),
    "half a block": ({**MOONCAKE, "hash_ids": [0, 0.5]}, "hash_ids holds 0.5"),
    "negative block": ({**MOONCAKE, "hash_ids": [0, -1]}, "hash_ids holds -1"),
    "block beyond 64 bits": ({**MOONCAKE, "hash_ids": [0, 2**64]}, "hash_ids holds a number of 20 digits"),
    "flag as length": ({**LLMSERVINGSIM, "input_toks": True}, "input_toks is true"),
    "output left out": ({"input_toks": 1, "arrival_time_ns": 0}, "output_toks is missing"),
    "half a nanosecond": ({**LLMSERVINGSIM, "arrival_time_ns": 0.5}, "arrival_time_ns is 0.5"),
    "few ids": ({**LLMSERVINGSIM, "input_tok_ids": [1]}, "input_tok_ids holds 1 ids: input_toks says 3"),
    "foreign ids": ({**LLMSERVINGSIM, "input_tok_ids": [1, 2, VOCAB]}, "holds 50000"),
    "a session": ({"session_id": "s", "sub_requests": []}, "sub_requests, a session of chained calls"),
}


def refusal(path: Path, text: str | bytes) -> str:
    with pytest.raises(WorkloadError) as caught:
        load(path, text)
    line = str(caught.value)
    assert "\n" not in line
    assert len(line) < len(str(path)) + 250
    return line


@pytest.mark.parametrize(("text", "fault"), BAD_CELLS.values(), ids=BAD_CELLS)
def test_a_wrong_cell_is_named_with_file_and_line(file: Path, text: str | bytes, fault: str) -> None:
    line = refusal(file, text)
    assert line.startswith(f"{file}:3: ")
    assert fault in line


@pytest.mark.parametrize(("fields", "fault"), BAD_FIELDS.values(), ids=BAD_FIELDS)
def test_a_wrong_field_is_named_with_file_and_line(file: Path, fields: dict[str, Any], fault: str) -> None:
    fine = MOONCAKE if "input_length" in fields or "hash_ids" in fields else LLMSERVINGSIM
    line = refusal(file, f"{json.dumps(fine)}\n\n{json.dumps(fields)}")
    assert line.startswith(f"{file}:3: ")
    assert fault in line
    assert fault in refusal(file, json.dumps(fields))


@pytest.mark.parametrize(
    ("head", "fault"),
    [
        ("TIMESTAMP,ContextTokens", "column GeneratedTokens is missing: give TIMESTAMP, ContextTokens"),
        ("TIMESTAMP,ContextTokens,ContextTokens,GeneratedTokens", "column ContextTokens is there twice"),
        ("arrived_at,num_prefill_tokens", "column num_decode_tokens is missing"),
        ("num_decode_tokens,x", "column num_prefill_tokens is missing"),
        ("time,prompt,output", "no column is known: give TIMESTAMP"),
        ("5,100,20", "no column is known"),
        (b"\xff\xfet\x00,\x00", "not UTF-8"),
    ],
)
def test_a_head_that_names_no_workload(file: Path, head: str | bytes, fault: str) -> None:
    line = refusal(file, head)
    assert line.startswith(f"{file}:1: ")
    assert fault in line


def test_a_head_alone_is_no_workload(file: Path) -> None:
    assert "holds no request" in refusal(file, "TIMESTAMP,ContextTokens,GeneratedTokens\n")


@pytest.mark.parametrize("stem", WRITERS)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_in_one_line(file: Path, stem: str, data: st.DataObject) -> None:
    content = bytearray(WRITERS[stem].text([Row(5, 600, 3), Row(9, 40, 2)]).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content)))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    try:
        workload = load(file, bytes(content))
    except WorkloadError as error:
        assert str(error).startswith(str(file))  # noqa: PT017
        assert "\n" not in str(error)  # noqa: PT017
    else:
        for request in workload.requests:
            assert 0 < request.prompt_len == len(list(request.prompt_token_ids))
