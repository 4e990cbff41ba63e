"""Published workloads are recognised, and their requests are those of the file."""

import csv
import json
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.workload import Workload, load_workload

WORKLOADS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "workloads"
ARXIV = "vidur_arxiv_summarization_stats_llama2_tokenizer_filtered_v2.csv"

pytestmark = pytest.mark.skipif(not WORKLOADS.is_dir(), reason=f"no workloads at {WORKLOADS}")


def load(name: str, **options: object) -> Workload:
    return load_workload(WORKLOADS / name, vocab_size=128_256, **options)  # type: ignore[arg-type]


def from_azure(path: Path) -> Iterator[tuple[int, int, int]]:
    """(arrival in ns, prompt, output), by other means than the reader's."""
    start = None
    for row in csv.DictReader(path.read_text().splitlines()):
        whole, _, digits = row["TIMESTAMP"].partition(".")
        ticks = int(datetime.fromisoformat(whole + "+00:00").timestamp()) * 10**7 + int(digits)
        start = ticks if start is None else start
        yield (ticks - start) * 100, int(row["ContextTokens"]), int(row["GeneratedTokens"])


def from_vidur(path: Path) -> Iterator[tuple[int, int, int]]:
    for row in csv.DictReader(path.read_text().splitlines()):
        arrival_ns = round(Decimal(row.get("arrived_at", "0")) * 10**9)
        yield arrival_ns, int(row["num_prefill_tokens"]), int(row["num_decode_tokens"])


def from_mooncake(path: Path) -> Iterator[tuple[int, int, int]]:
    for line in map(json.loads, path.read_text().splitlines()):
        yield line["timestamp"] * 10**6, line["input_length"], line["output_length"]


def from_llmservingsim(path: Path) -> Iterator[tuple[int, int, int]]:
    for line in map(json.loads, path.read_text().splitlines()):
        yield line["arrival_time_ns"], line["input_toks"], line["output_toks"]


class Known(NamedTuple):
    """What a file is, and how else it can be read."""

    title: str
    requests: int
    read: Callable[[Path], Iterator[tuple[int, int, int]]]
    timed: bool = True


KNOWN = {
    "AzureLLMInferenceTrace_code.csv": Known("Azure LLM inference trace", 8_819, from_azure),
    "AzureLLMInferenceTrace_conv.csv": Known("Azure LLM inference trace", 19_366, from_azure),
    "mooncake_conversation_trace.jsonl": Known("Mooncake trace", 12_031, from_mooncake),
    "mooncake_synthetic_trace.jsonl": Known("Mooncake trace", 3_993, from_mooncake),
    "vidur_splitwise_code.csv": Known("Vidur trace", 8_819, from_vidur),
    "vidur_splitwise_conv.csv": Known("Vidur trace", 19_366, from_vidur),
    ARXIV: Known("Vidur trace", 28_257, from_vidur, timed=False),
    "llmservingsim_mixed_long.jsonl": Known("LLMServingSim workload", 608, from_llmservingsim),
    "sharegpt_llama31_300_lengths.jsonl": Known("LLMServingSim workload", 300, from_llmservingsim),
}


@pytest.mark.parametrize("name", KNOWN)
def test_every_request_is_read(name: str) -> None:
    known = KNOWN[name]
    start_s = time.process_time()
    workload = load(name)
    taken_s = time.process_time() - start_s
    assert (workload.title, workload.timed) == (known.title, known.timed)
    assert len(workload.requests) == known.requests
    read = [(r.arrival_ns, r.prompt_len, r.sampling.max_new_tokens) for r in workload.requests]
    assert read == list(known.read(WORKLOADS / name))
    assert not workload.empty_prompts
    assert not workload.empty_outputs
    assert taken_s < 3, "a workload is read in a second; three are a fault, not noise"


def test_mooncake_requests_share_the_prefixes_of_their_ids() -> None:
    path = WORKLOADS / "mooncake_conversation_trace.jsonl"
    requests = load(path.name, limit=60).requests
    ids = [json.loads(line)["hash_ids"] for line in path.read_text().splitlines()[:60]]
    prompts = [np.asarray(request.prompt_token_ids) for request in requests]
    for i in range(60):
        for k in range(i):
            shared_ids = _common(np.array(ids[i]), np.array(ids[k]))
            shared_tokens = _common(prompts[i], prompts[k])
            assert shared_tokens // 512 == shared_ids


def _common(a: NDArray[Any], b: NDArray[Any]) -> int:
    """The length of the common start of two arrays."""
    n = min(len(a), len(b))
    differ = np.flatnonzero(a[:n] != b[:n])
    return int(differ[0]) if len(differ) else n
