"""The demo's lengths and arrival times, for a machine of given speed."""

from dataclasses import dataclass

from ui.errors import UserError

__all__ = ["Arrival", "Sizes", "Speed", "choose_sizes"]

DECODERS = 6
DECODER_PROMPT_TOKENS = 20
SHORT_PROMPT_TOKENS = 60
SHORT_OUTPUT_TOKENS = 8
PREFILL_SHARE = 0.6  # of the budget, for the two long prompts
LONG_TOKENS = (320, 2500)  # least and most of the first long prompt
SECOND_TO_FIRST = 0.4
LONG_COST = 1.5  # a token of a long prompt takes longer than one of the probe's, which attends to fewer
OUTPUT_TOKENS = (32, 200)  # least and most that a decoder gives
SETTLED_S = 0.5  # a first long prompt that comes later may find nobody decoding if probing met a slow moment
CHUNKS_PER_LONG = 10
CHUNK_TOKENS = (32, 512)


@dataclass(frozen=True, slots=True)
class Speed:
    """What a second of probing told."""

    decode_s: float  # one decode forward of the demo's decoders
    prefill_s_per_token: float


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request to come: `name`, time, and lengths in tokens."""

    name: str
    arrival_s: float
    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """One workload for all policies, and the chunk of the chunked ones."""

    chunk_tokens: int
    arrivals: tuple[Arrival, ...]

    @property
    def total_tokens(self) -> int:
        """Tokens of all prompts and outputs together."""
        return sum(a.prompt_tokens + a.output_tokens for a in self.arrivals)


def choose_sizes(speed: Speed, context_tokens: int, budget_s: float) -> Sizes:
    """Sizes with which one policy takes about `budget_s`, within bounds that keep the picture readable.

    Six requests decode when a long prompt comes, and still decode when a second one does; short prompts come
    while a long one is computed, between the two, and after them. Raises UserError for too short a context.
    """
    least, most = LONG_TOKENS
    most = min(most, context_tokens - SHORT_OUTPUT_TOKENS)
    if most < least:
        raise UserError(
            f"the demo needs a model with a context of {least + SHORT_OUTPUT_TOKENS} tokens or more, "
            f"this one has {context_tokens}: give another --model"
        )
    affordable = PREFILL_SHARE * budget_s / (speed.prefill_s_per_token * LONG_COST * (1 + SECOND_TO_FIRST))
    first = round(_clamp(affordable, least, most))
    second = round(first * SECOND_TO_FIRST)
    outputs = round(_clamp((1 - PREFILL_SHARE) * budget_s / speed.decode_s, *OUTPUT_TOKENS))
    settled_s = min(outputs * speed.decode_s / 10, SETTLED_S)
    first_s = first * speed.prefill_s_per_token * LONG_COST
    second_at_s = settled_s + first_s + outputs * speed.decode_s / 4
    second_end_s = second_at_s + second * speed.prefill_s_per_token * LONG_COST
    decoders = [Arrival(f"decode-{i + 1}", 0.0, DECODER_PROMPT_TOKENS, outputs) for i in range(DECODERS)]
    others = [
        _short("short-1", settled_s + first_s / 3),
        Arrival("long-1", settled_s, first, SHORT_OUTPUT_TOKENS),
        _short("short-2", settled_s + first_s + outputs * speed.decode_s / 8),
        Arrival("long-2", second_at_s, second, SHORT_OUTPUT_TOKENS),
        _short("short-3", second_end_s + outputs * speed.decode_s / 8),
    ]
    return Sizes(_chunk(first), (*decoders, *sorted(others, key=lambda a: a.arrival_s)))


def _short(name: str, arrival_s: float) -> Arrival:
    return Arrival(name, arrival_s, SHORT_PROMPT_TOKENS, SHORT_OUTPUT_TOKENS)


def _chunk(long_tokens: int) -> int:
    """A power of two that cuts the long prompt into about ten."""
    chunk = CHUNK_TOKENS[0]
    while chunk * 2 <= CHUNK_TOKENS[1] and chunk * CHUNKS_PER_LONG * 2**0.5 < long_tokens:
        chunk *= 2
    return chunk


def _clamp(value: float, least: float, most: float) -> float:
    return max(least, min(most, value))
