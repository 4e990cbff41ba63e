"""Workload files and the seeded generators."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import WorkloadError
from engine.workload import load_workload, random_ids, shared_prefix, uniform_requests
from engine.workload.own import parse_line

VOCAB = 1000


class Letters:
    """A tokenizer of one id per character: its code point."""

    def encode(self, sequence: str) -> SimpleNamespace:
        return SimpleNamespace(ids=[ord(char) for char in sequence if char != " "])


def write(path: Path, *lines: Any) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def load(path: Path, **kwargs: Any) -> Any:
    return load_workload(path, vocab_size=VOCAB, **kwargs)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "w.jsonl"


def test_reads_every_field(file: Path) -> None:
    write(
        file,
        {
            "rid": "a",
            "arrival_s": 1.5,
            "prompt_token_ids": [0, 999],
            "max_new_tokens": 7,
            "ignore_eos": True,
            "temperature": 0.7,
            "seed": 11,
            "stop_token_ids": [3, 4],
            "priority": -5,
        },
        {"rid": "b", "prompt_tokens": 20},
    )
    a, b = load(file).requests
    assert (a.rid, a.name, a.arrival_ns, list(a.prompt_token_ids)) == (0, "a", 1_500_000_000, [0, 999])
    assert (a.sampling.max_new_tokens, a.sampling.ignore_eos, a.sampling.temperature) == (7, True, 0.7)
    assert (a.sampling.seed, a.sampling.stop_token_ids) == (11, frozenset({3, 4}))
    assert (a.priority, b.priority) == (-5, 0)
    assert (b.rid, b.arrival_ns, b.prompt_len, b.sampling.max_new_tokens) == (1, 0, 20, 128)
    assert (b.sampling.ignore_eos, b.sampling.temperature, b.sampling.stop_token_ids) == (
        False,
        0.0,
        frozenset(),
    )


def test_where_counts_blank_lines(file: Path) -> None:
    file.write_bytes(
        b'\xef\xbb\xbf\n{"rid": "a", "prompt_tokens": 1}\r\n  \n{"rid": "b", "prompt_tokens": 1}'
    )
    workload = load(file)
    assert [workload.where(request) for request in workload.requests] == [f"{file}:2", f"{file}:4"]


def test_text_prompts_go_through_the_tokenizer(file: Path) -> None:
    write(file, {"rid": "a", "prompt": "ab"})
    assert list(load(file, tokenizer=Letters).requests[0].prompt_token_ids) == [97, 98]


def test_lengths_give_the_same_ids_again_and_others_for_another_seed_or_request(file: Path) -> None:
    write(file, {"rid": "a", "prompt_tokens": 50}, {"rid": "b", "prompt_tokens": 50})
    a, b = (list(r.prompt_token_ids) for r in load(file, seed=5).requests)
    assert a == list(load(file, seed=5).requests[0].prompt_token_ids)
    assert a != b
    assert a != list(load(file, seed=6).requests[0].prompt_token_ids)
    assert all(0 <= token < VOCAB for token in a + b)


def test_a_group_shares_its_first_tokens_and_no_more(file: Path) -> None:
    write(
        file,
        {"rid": "a", "prompt_tokens": 40, "prefix_group": "g", "prefix_tokens": 30},
        {"rid": "b", "prompt_tokens": 40, "prefix_group": "g", "prefix_tokens": 20},
        {"rid": "c", "prompt_tokens": 30, "prefix_group": "h", "prefix_tokens": 30},
    )
    a, b, c = (list(r.prompt_token_ids) for r in load(file).requests)
    assert a[:20] == b[:20]
    assert a[20:] != b[20:]
    assert len(c) == 30
    assert c[:20] != a[:20]


@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 2**63 - 1), st.text(min_size=1))
def test_a_shorter_prefix_starts_a_longer_one(short: int, more: int, seed: int, group: str) -> None:
    if any("\ud800" <= char <= "\udfff" for char in group):
        group = "g"
    long = shared_prefix(short + more, 49152, seed, group)
    assert long[:short] == shared_prefix(short, 49152, seed, group)


GOOD = {"rid": "a", "prompt_tokens": 5}

BAD_LINES = {
    "no rid": ({"prompt_tokens": 5}, "rid is missing"),
    "empty rid": ({"rid": "", "prompt_tokens": 5}, 'rid is ""'),
    "number as rid": ({"rid": 7, "prompt_tokens": 5}, "rid is 7"),
    "no prompt": ({"rid": "a"}, "no prompt given"),
    "two prompts": ({**GOOD, "prompt": "x"}, "prompt_tokens and prompt given"),
    "zero prompt": ({"rid": "a", "prompt_tokens": 0}, "prompt_tokens is 0"),
    "negative prompt": ({"rid": "a", "prompt_tokens": -3}, "prompt_tokens is -3"),
    "float prompt": ({"rid": "a", "prompt_tokens": 5.0}, "prompt_tokens is 5.0"),
    "bool prompt": ({"rid": "a", "prompt_tokens": True}, "prompt_tokens is true"),
    "text prompt length": ({"rid": "a", "prompt_tokens": "5"}, 'prompt_tokens is "5"'),
    "null prompt": ({"rid": "a", "prompt_tokens": None}, "prompt_tokens is null"),
    "huge prompt": ({"rid": "a", "prompt_tokens": 10**30}, "a number of 31 digits"),
    "empty text": ({"rid": "a", "prompt": ""}, 'prompt is ""'),
    "half a surrogate": ({"rid": "\ud800", "prompt_tokens": 5}, "half a surrogate"),
    "no ids": ({"rid": "a", "prompt_token_ids": []}, "not empty"),
    "ids no list": ({"rid": "a", "prompt_token_ids": "1"}, "a list of token ids"),
    "id beyond the vocabulary": ({"rid": "a", "prompt_token_ids": [1, VOCAB]}, "holds 1000"),
    "negative id": ({"rid": "a", "prompt_token_ids": [-1]}, "holds -1"),
    "float id": ({"rid": "a", "prompt_token_ids": [1.0]}, "holds 1.0"),
    "bool id": ({"rid": "a", "prompt_token_ids": [True]}, "holds true"),
    "stop id beyond": ({**GOOD, "stop_token_ids": [VOCAB]}, "stop_token_ids holds 1000"),
    "zero new tokens": ({**GOOD, "max_new_tokens": 0}, "max_new_tokens is 0"),
    "float new tokens": ({**GOOD, "max_new_tokens": 1.5}, "max_new_tokens is 1.5"),
    "negative arrival": ({**GOOD, "arrival_s": -0.1}, "arrival_s is -0.1"),
    "huge arrival": ({**GOOD, "arrival_s": 1e300}, "arrival_s is 1e+300"),
    "bool arrival": ({**GOOD, "arrival_s": False}, "arrival_s is false"),
    "text flag": ({**GOOD, "ignore_eos": "yes"}, "ignore_eos"),
    "number flag": ({**GOOD, "ignore_eos": 1}, "ignore_eos is 1"),
    "negative temperature": ({**GOOD, "temperature": -1}, "temperature is -1"),
    "negative seed": ({**GOOD, "seed": -1}, "seed is -1"),
    "half a priority": ({**GOOD, "priority": 0.5}, "priority is 0.5"),
    "huge priority": ({**GOOD, "priority": -(2**31)}, "from -2147483647 to 2147483647"),
    "huge seed": ({**GOOD, "seed": 2**63}, "seed is a number of 19 digits"),
    "misspelled key": ({**GOOD, "max_new_token": 4}, "did you mean max_new_tokens?"),
    "unknown key": ({**GOOD, "zzz": 4}, "the keys are rid"),
    "half a group": ({**GOOD, "prefix_group": "g"}, "belong together"),
    "other half": ({**GOOD, "prefix_tokens": 3}, "belong together"),
    "group with ids": (
        {"rid": "a", "prompt_token_ids": [1], "prefix_group": "g", "prefix_tokens": 1},
        "prompt_tokens only",
    ),
    "prefix beyond prompt": ({**GOOD, "prefix_group": "g", "prefix_tokens": 6}, "at most prompt_tokens, 5"),
    "a list": ([1, 2], "is no object"),
    "a number": (3, "is no object"),
}


@pytest.mark.parametrize(("line", "text"), BAD_LINES.values(), ids=BAD_LINES)
def test_a_wrong_line_is_named_with_its_field(file: Path, line: Any, text: str) -> None:
    write(file, {"rid": "fine", "prompt_tokens": 5}, line)
    with pytest.raises(WorkloadError) as caught:
        load(file, tokenizer=Letters)
    assert str(caught.value).startswith(f"{file}:2: ")
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


RAW_LINES = {
    "not UTF-8": (b'{"rid": "\xff"}', "not UTF-8"),
    "NaN": (b'{"rid": "a", "arrival_s": NaN}', "NaN is no number"),
    "infinity": (b'{"rid": "a", "arrival_s": -Infinity}', "-Infinity is no number"),
    "float beyond doubles": (
        b'{"rid": "a", "prompt_tokens": 1, "arrival_s": 1e400}',
        "arrival_s is Infinity",
    ),
    "torn": (b'{"rid": "a", ', "no JSON"),
    "two objects": (b'{"rid": "a"} {"rid": "b"}', "no JSON, Extra data"),
    "a key twice": (b'{"rid": "a", "rid": "b"}', '"rid" is given twice'),
    "deep": (b"[" * 100_000, "nested too deeply"),
    "endless number": (b'{"rid": "a", "seed": ' + b"9" * 5000 + b"}", "too many digits"),
    "zero byte": (b"\x00", "no JSON"),
}


@pytest.mark.parametrize(("raw", "text"), RAW_LINES.values(), ids=RAW_LINES)
def test_a_broken_line_is_named(file: Path, raw: bytes, text: str) -> None:
    file.write_bytes(raw)
    with pytest.raises(WorkloadError) as caught:
        load(file)
    assert str(caught.value).startswith(f"{file}:1: ")
    assert text in str(caught.value)


def test_a_rid_twice_names_both_lines(file: Path) -> None:
    write(file, GOOD, GOOD)
    with pytest.raises(WorkloadError, match=r"w\.jsonl:2: rid 'a' is taken by line 1"):
        load(file)


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_a_file_without_requests_is_refused(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(WorkloadError, match="holds no request"):
        load(file)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="no such file"):
        load(tmp_path / "none.jsonl")
    with pytest.raises(WorkloadError, match="is a directory"):
        load(tmp_path)


def test_text_needs_a_tokenizer_that_fits_the_model(file: Path) -> None:
    write(file, {"rid": "a", "prompt": "x"})
    with pytest.raises(WorkloadError, match=r":1: the model has no tokenizer"):
        load(file)
    write(file, {"rid": "a", "prompt": " "})
    with pytest.raises(WorkloadError, match="no token"):
        load(file, tokenizer=Letters)
    write(file, {"rid": "a", "prompt": "\u2603"})
    with pytest.raises(WorkloadError, match="knows only 1000"):
        load(file, tokenizer=Letters)


@given(st.binary(max_size=80) | st.text(max_size=80).map(str.encode))
def test_any_bytes_are_a_line_or_a_workload_error(raw: bytes) -> None:
    try:
        parse_line(raw, VOCAB)
    except WorkloadError as error:
        assert str(error)  # noqa: PT017


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(
    st.dictionaries(
        st.sampled_from(sorted({*GOOD, "prompt", "seed", "arrival_s", "temperature"})), JSON_VALUES
    )
)
def test_any_object_is_a_line_or_a_workload_error(fields: dict[str, Any]) -> None:
    try:
        line = parse_line(json.dumps({**GOOD, **fields}).encode(), VOCAB)
    except WorkloadError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert line.arrival_s >= 0
        assert line.temperature >= 0


def test_uniform_requests_stay_in_range_and_repeat() -> None:
    make = {"vocab_size": VOCAB, "prompt_tokens": (16, 18), "new_tokens": (1, 2), "seed": 3}
    requests = uniform_requests(50, **make)
    assert {r.prompt_len for r in requests} == {16, 17, 18}
    assert {r.sampling.max_new_tokens for r in requests} == {1, 2}
    assert all(r.arrival_ns == 0 and r.sampling.ignore_eos for r in requests)
    again = uniform_requests(50, **make)
    assert [list(r.prompt_token_ids) for r in again] == [list(r.prompt_token_ids) for r in requests]


def test_poisson_arrivals_keep_their_rate() -> None:
    requests = uniform_requests(
        400, vocab_size=9, prompt_tokens=(1, 1), new_tokens=(1, 1), requests_per_s=100.0
    )
    arrivals = [r.arrival_ns for r in requests]
    assert arrivals == sorted(arrivals)
    assert 3.2e9 < arrivals[-1] < 4.8e9


def test_random_ids_of_nothing_are_empty() -> None:
    assert len(random_ids(0, VOCAB, 0, 0)) == 0
