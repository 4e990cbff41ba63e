"""The requests of a trace as columns, and how to find one by name."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from profiler.forward_table import UNKNOWN
from profiler.tables import TraceLike, frame

__all__ = ["Requests", "requests_of"]

Ints = NDArray[np.int64]

_TIMES = ("arrival_ns", "first_scheduled_ns", "first_token_ns", "finish_ns")


@dataclass(frozen=True, slots=True)
class Requests:
    """(requests,) columns in order of rid; an unknown number or time is -1."""

    rid: Ints
    names: tuple[str, ...]
    prompt: Ints
    arrival_ns: Ints
    first_scheduled_ns: Ints
    first_token_ns: Ints
    finish_ns: Ints
    usual_prompt: float  # the median, in tokens; 0 where there is none

    def position(self, rid: int) -> int | None:
        """Where a request stands; None if the trace has no entry of it."""
        at = int(np.searchsorted(self.rid, rid))
        return at if at < len(self.rid) and self.rid[at] == rid else None

    def name(self, rid: int) -> str:
        """The user's name of a request, or its number."""
        at = self.position(rid)
        return str(rid) if at is None else self.names[at]

    def prompt_tokens(self, rid: int) -> int | None:
        """Length of its prompt."""
        at = self.position(rid)
        return None if at is None else known(self.prompt[at])

    def by_name(self, text: str) -> int | None:
        """The request of exactly this name, the first of several."""
        return next((int(rid) for rid, name in zip(self.rid, self.names, strict=True) if name == text), None)

    def search(self, text: str, limit: int) -> list[int]:
        """Requests whose name contains the text, whatever its case; at most `limit`."""
        wanted = text.casefold()
        found = (int(r) for r, name in zip(self.rid, self.names, strict=True) if wanted in name.casefold())
        return [rid for rid, _ in zip(found, range(limit), strict=False)]


def known(value: "np.signedinteger | int") -> int | None:
    """A number of a column, None where it is unknown."""
    return None if value == UNKNOWN else int(value)


def requests_of(trace: TraceLike) -> Requests:
    """The requests that a trace has an entry of."""
    table = frame(trace, "requests").filter(pl.col("rid").is_not_null()).sort("rid")
    numbers = {name: table[name].fill_null(UNKNOWN).to_numpy() for name in ("prompt_tokens", *_TIMES)}
    prompt = numbers["prompt_tokens"]
    return Requests(
        rid=table["rid"].cast(pl.Int64).to_numpy(),
        names=tuple(
            str(rid) if name is None else name for rid, name in zip(table["rid"], table["name"], strict=True)
        ),
        prompt=prompt,
        usual_prompt=float(np.median(prompt)) if len(prompt) else 0.0,
        **{name: numbers[name] for name in _TIMES},
    )
