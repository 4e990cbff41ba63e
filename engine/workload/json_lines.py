"""Workload files of others with one JSON object a line: Mooncake's traces and LLMServingSim's workloads."""

from array import array
from collections.abc import Sequence
from functools import partial

from engine.errors import WorkloadError
from engine.workload.entry import Format, Recorded, RecordedReader
from engine.workload.fields import MAX_ARRIVAL_S, MAX_LENGTH_TOKENS, Fields, decode_object
from engine.workload.prompts import BLOCK_TOKENS

__all__ = ["object_format"]

MAX_HASH_ID = 2**64 - 1


def object_format(first: bytes, vocab_size: int, seed: int) -> Format | None:
    """The format that a file's first line of JSON tells; None where it is none of others."""
    try:
        keys = decode_object(first).keys()
    except WorkloadError:
        return None  # whoever reads the line says what is wrong with it
    if "input_length" in keys or "hash_ids" in keys:
        parse = partial(_mooncake, vocab_size)
        return Format("Mooncake trace", RecordedReader("mooncake", parse, vocab_size, seed).read)
    if "input_toks" in keys or "sub_requests" in keys:
        parse = partial(_llmservingsim, vocab_size)
        return Format("LLMServingSim workload", RecordedReader("llmservingsim", parse, vocab_size, seed).read)
    return None


def _mooncake(vocab_size: int, line: bytes) -> Recorded:
    """`timestamp` in milliseconds; `hash_ids`, if given, has one id for each 512 prompt tokens."""
    fields = Fields(decode_object(line), vocab_size)
    fields.need("timestamp", "input_length", "output_length")
    prompt_tokens = fields.whole("input_length", 0, MAX_LENGTH_TOKENS) or 0
    return Recorded(
        arrival_ns=round((fields.number("timestamp", MAX_ARRIVAL_S * 1000) or 0) * 10**6),
        prompt_tokens=prompt_tokens,
        output_tokens=fields.whole("output_length", 0, MAX_LENGTH_TOKENS) or 0,
        blocks=_blocks(fields, prompt_tokens),
    )


def _blocks(fields: Fields, prompt_tokens: int) -> "array[int] | None":
    ids = fields.wholes("hash_ids", MAX_HASH_ID)
    if ids is None:
        return None
    wanted = -(-prompt_tokens // BLOCK_TOKENS)
    if len(ids) != wanted:
        raise WorkloadError(
            f"hash_ids holds {len(ids)} ids: input_length {prompt_tokens} needs {wanted}, "
            f"one for each {BLOCK_TOKENS} tokens"
        )
    return array("Q", ids)


def _llmservingsim(vocab_size: int, line: bytes) -> Recorded:
    """`arrival_time_ns`, lengths, and the prompt's token ids where they are given."""
    fields = Fields(decode_object(line), vocab_size)
    if "sub_requests" in fields:
        raise WorkloadError(
            "sub_requests, a session of chained calls, is not read: write each call as a line"
        )
    fields.need("input_toks", "output_toks", "arrival_time_ns")
    prompt_tokens = fields.whole("input_toks", 0, MAX_LENGTH_TOKENS) or 0
    return Recorded(
        arrival_ns=fields.whole("arrival_time_ns", 0, MAX_ARRIVAL_S * 10**9) or 0,
        prompt_tokens=prompt_tokens,
        output_tokens=fields.whole("output_toks", 0, MAX_LENGTH_TOKENS) or 0,
        token_ids=_token_ids(fields, prompt_tokens),
    )


def _token_ids(fields: Fields, prompt_tokens: int) -> Sequence[int] | None:
    ids = fields.token_ids("input_tok_ids", least=0)
    if ids is None:
        return None
    if len(ids) != prompt_tokens:
        raise WorkloadError(f"input_tok_ids holds {len(ids)} ids: input_toks says {prompt_tokens}")
    return array("i", ids)
