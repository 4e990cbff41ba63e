"""What `Engine.generate` and `Engine.stream` do: whole outputs, and tokens as they come."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import WorkloadError
from engine.request import FinishReason, Request, SamplingParams

if TYPE_CHECKING:
    from engine.engine import Engine

__all__ = ["Output", "TokenStream", "generate"]


@dataclass(frozen=True, slots=True)
class Output:
    """What a prompt gave."""

    token_ids: list[int]
    finish_reason: FinishReason
    request: Request  # its times, its cached tokens, and why it was aborted if it was


def generate(
    engine: "Engine",
    prompts: Sequence[Sequence[int]],
    sampling: SamplingParams | Sequence[SamplingParams] | None,
) -> list[Output]:
    """`Engine.generate`."""
    each = sampling if isinstance(sampling, Sequence) else [sampling] * len(prompts)
    if len(each) != len(prompts):
        raise WorkloadError(
            f"{len(each)} sampling parameters for {len(prompts)} prompts: give one, or one for each"
        )
    requests = [engine.new_request(*pair) for pair in zip(prompts, each, strict=True)]
    for request in requests:
        engine.check(request)
    try:
        for request in requests:
            engine.submit(request)
        for request in requests:
            while not request.finished:
                engine.step()
        engine.settle()
    finally:  # nothing is left of them, whatever interrupts
        for request in requests:
            engine.abort(request.rid)
    return [_output(request) for request in requests]


def _output(request: Request) -> Output:
    assert request.finish_reason is not None
    return Output(request.output_ids, request.finish_reason, request)


class TokenStream(Iterator[int]):
    """A request's output tokens, each as soon as the result that holds it is processed.

    Asking for a token that is not there yet steps the engine, for all of its requests: several streams that
    are read in turn share their forwards. A stream that is closed or dropped before its end aborts its
    request, which takes effect when the next forward is planned.
    """

    def __init__(self, engine: "Engine", request: Request) -> None:
        """Follow a request that was submitted."""
        self.request = request
        self._tokens = _follow(engine, request)
        next(self._tokens)  # into its try: closing a generator that has not begun would abort nothing

    def __next__(self) -> int:
        """The next token; steps the engine until there is one."""
        return next(self._tokens)

    def close(self) -> None:
        """Abort the request unless it has ended; no token comes any more."""
        self._tokens.close()


def _follow(engine: "Engine", request: Request) -> Generator[int]:
    """A request's tokens, after one item that is none."""
    try:
        yield -1
        given = 0
        while True:
            if given < request.output_len:
                given += 1
                yield request.tokens[request.prompt_len + given - 1]
            elif request.finished:
                break
            else:
                engine.step()
        engine.settle()
    finally:
        engine.abort(request.rid, "its stream was closed")
