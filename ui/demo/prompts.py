"""The demo's requests: real text, the topics of Python's own help, cut to the wanted lengths."""

from array import array
from collections.abc import Callable, Iterator, Sequence
from string import ascii_uppercase

from engine.request import Request, SamplingParams
from ui.demo.sizing import Arrival

__all__ = ["make_requests", "take_prompts"]


def take_prompts(lengths: Sequence[int], encode: Callable[[str], Sequence[int]]) -> list["array[int]"]:
    """Token ids of text for each length, no stretch of text used twice while it lasts.

    Each prompt begins with a letter of its own, so that no two share a prefix that a cache could find.
    """
    topics = _topics()
    prompts = []
    for letter, length in zip(ascii_uppercase, lengths, strict=False):
        prompt = array("i", encode(f"{letter}. "))
        while len(prompt) < length:
            prompt.extend(encode(next(topics)))
        prompts.append(prompt[:length])
    return prompts


def make_requests(arrivals: Sequence[Arrival], prompts: Sequence["array[int]"]) -> list[Request]:
    """New requests, greedy, that run to their full output length; an engine uses up the ones it runs."""
    return [
        Request(
            rid=rid,
            name=arrival.name,
            prompt_token_ids=prompt,
            sampling=SamplingParams(max_new_tokens=arrival.output_tokens, ignore_eos=True),
            arrival_ns=round(arrival.arrival_s * 1e9),
        )
        for rid, (arrival, prompt) in enumerate(zip(arrivals, prompts, strict=True))
    ]


def _topics() -> Iterator[str]:
    from pydoc_data.topics import topics

    names = sorted(topics)
    while True:
        for name in names:
            yield f"{name}\n\n{topics[name]}"
