"""`choose`: which row of a price list to take under limits, or which limits no row keeps and by how much."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from profiler.price_rows import Limits, Options, PriceRow

__all__ = ["NO_LIMITS", "VALUES", "Binding", "Choice", "Margins", "Q", "choose", "pays"]

Q = 0.95
"""Of the best throughput: what a chunk at the saturation point reaches."""

SAME_SHARE = 0.005  # throughput that rounds to the same
CUTS = 0.5  # of the wait under prefill first, that another policy must at most leave
TTFT_PRICE, OUTPUT_PRICE = 1.25, 0.95  # of those under prefill first, that it may at worst have
LIKE_DECODE = 2.0  # times a decode forward, up to which a wait is one of decodes

VALUES = {"itl_max_s": "longest_wait_s", "itl_p99_s": "itl_p99_s", "ttft_p99_s": "ttft_p99_s"}
"""The number of a `PriceRow` that each of `Limits` holds for."""


@dataclass(frozen=True, slots=True)
class Margins:
    """How far a run may lie above the cost model, as shares; 0 where that is exact.

    Single forwards are longer than the model says, and where all are, waits in a queue grow by more: `slower`
    are the rows of a price list under a cost model that is slower by what many forwards may be.
    """

    prompts: Mapping[int | None, float] = field(default_factory=dict)  # of one forward like a chunk size's
    sums: Mapping[int | None, float] = field(default_factory=dict)  # of many such forwards one after another
    decode: float = 0.0  # of a forward of decode rows alone
    short: float = 0.0  # of prompt forwards of whatever size, which a 99th percentile may be made of
    slower: Mapping[Options, PriceRow] = field(default_factory=dict)

    def of(self, row: PriceRow, limit: str) -> float:
        """What a row's number for this limit may have to be raised by; 0 for one that is unknown."""
        return self._largest(row, limit)[0]

    def source(self, row: PriceRow, limit: str) -> str:
        """What makes the margin of a row's number that large, in words."""
        return self._largest(row, limit)[1]

    def value(self, row: PriceRow, limit: str) -> float | None:
        """A row's number for this limit with its margin, in seconds."""
        value = _value(row, limit)
        return None if value is None else value * (1 + self.of(row, limit))

    def tightened(self, row: PriceRow, limits: Limits) -> Limits:
        """Limits that a row's own numbers must keep for the raised ones to keep `limits`."""
        given = {name: getattr(limits, name) for name in VALUES}
        return Limits(**{n: None if v is None else v / (1 + self.of(row, n)) for n, v in given.items()})

    def joined(self, other: "Margins") -> "Margins":
        """Margins for the rows of both; for the same rows those of `other`."""
        return Margins(
            {**self.prompts, **other.prompts},
            {**self.sums, **other.sums},
            other.decode,
            other.short,
            {**self.slower, **other.slower},
        )

    def _largest(self, row: PriceRow, limit: str) -> tuple[float, str]:
        value, chunk = _value(row, limit), row.options.chunk_tokens
        if not value:
            return 0.0, "unknown"
        if limit == "ttft_p99_s":
            found = [(self.sums.get(chunk, 0.0), "many such forwards")]
        elif value <= LIKE_DECODE * (row.decode_forward_s or 0.0):
            found = [(self.decode, "decode forwards")]
        else:
            found = [(self.prompts.get(chunk, 0.0), "one such forward")]
            found += [(self.short, "short prompts' forwards, too")] if limit == "itl_p99_s" else []
        slower = self.slower.get(row.options)
        queued = None if slower is None else _value(slower, limit)
        if queued is not None:
            found.append((queued / value - 1, "where every forward is slower"))
        largest = max(margin for margin, _ in found)
        return largest, next(source for margin, source in found if margin >= largest - SAME_SHARE)


def _value(row: PriceRow, limit: str) -> float | None:
    value: float | None = getattr(row, VALUES[limit])
    return value


NO_LIMITS = Limits()
"""Whatever a row costs is accepted."""

EXACT = Margins()


@dataclass(frozen=True, slots=True)
class Binding:
    """A limit that stands in the way, and the row that comes nearest to it."""

    limit: str  # of VALUES
    limit_s: float
    best: PriceRow  # with the least number of all rows, or of those that keep the other limits
    best_s: float  # that number, with its margin
    alone: bool  # no row keeps this limit, whatever the others


@dataclass(frozen=True, slots=True)
class Choice:
    """What to take: `row`, or None where no row keeps the limits; then `bindings` says why."""

    limits: Limits
    row: PriceRow | None
    keeping: tuple[PriceRow, ...]  # rows that keep all limits, in their order
    bindings: tuple[Binding, ...] = ()


def choose(
    rows: Sequence[PriceRow],
    limits: Limits = NO_LIMITS,
    *,
    margins: Margins = EXACT,
    enough_tokens: int | None = None,
) -> Choice:
    """Of the rows that keep the limits with their margins, one that loses least throughput.

    A chunk of at least `enough_tokens`, the saturation point, loses nothing, nor does one that reaches 95 %
    of the best where the point is not known. Of equals the smallest chunk where mixing pays is taken, else
    the smallest where an interval does, else the smallest. docs/metrics.md, "Price list and advice".
    """
    keeping = tuple(row for row in rows if not row.breaks(margins.tightened(row, limits)))
    if not keeping:
        return Choice(limits, None, (), _bindings(rows, limits, margins))
    losses = _losses(rows, enough_tokens)
    least = min(losses[row.options.chunk_tokens] for row in keeping)
    near = [row for row in keeping if losses[row.options.chunk_tokens] <= least + SAME_SHARE * (least > 0)]
    return Choice(limits, _taken(near, rows), keeping)


def pays(row: PriceRow, rows: Sequence[PriceRow]) -> bool:
    """Whether a policy cuts the longest wait a lot for little TTFT and output, against prefill first.

    That is the row of `rows` with the same chunk, which pays nothing itself.
    """
    first = Options(row.options.chunk_tokens)
    plain = next((other for other in rows if other.options == first), None)
    if row.options == first or plain is None:
        return False
    if row.longest_wait_s is None or plain.longest_wait_s is None:
        return False
    if row.longest_wait_s > CUTS * plain.longest_wait_s:
        return False
    slower = (row.ttft_long_s or 0.0) > TTFT_PRICE * (plain.ttft_long_s or 0.0)
    fewer = (row.output_tokens_per_s or 0.0) < OUTPUT_PRICE * (plain.output_tokens_per_s or 0.0)
    return not slower and not fewer


def _size(chunk_tokens: int | None) -> float:
    return float("inf") if chunk_tokens is None else chunk_tokens


def _losses(rows: Sequence[PriceRow], enough_tokens: int | None) -> dict[int | None, float]:
    """By chunk size, the throughput that it lacks to be as good as one at the saturation point."""
    shares = {row.options.chunk_tokens: row.plateau_share or 0.0 for row in rows}
    sizes = sorted(shares, key=_size)
    enough = [size for size in sizes if enough_tokens is not None and _size(size) >= enough_tokens]
    needed = min(Q, shares[enough[0]] if enough else max(shares.values()))
    losses = {size: max(0.0, needed - share) for size, share in shares.items()}
    for size in enough:
        losses[size] = max(0.0, losses[size] - SAME_SHARE)
    if enough_tokens is not None:
        for size in sizes:
            if _size(size) < enough_tokens:
                losses[size] = max(losses[size], SAME_SHARE)
    return losses


def _taken(near: Sequence[PriceRow], rows: Sequence[PriceRow]) -> PriceRow:
    """Of rows that lose equally little: mixing, else an interval, where it pays, else prefill first."""
    paying = [row for row in near if pays(row, rows)]
    if paying:
        return min(paying, key=lambda row: (not row.options.mixed, *_order(row.options)))
    return min(near, key=lambda row: _order(row.options))


def _order(options: Options) -> tuple[float, bool, bool, int]:
    """The smaller chunk first; of one chunk prefill first, then mixed, then the shorter interval."""
    other = options.mixed or options.interval > 0
    return _size(options.chunk_tokens), other, not options.mixed, options.interval


def _bindings(rows: Sequence[PriceRow], limits: Limits, margins: Margins) -> tuple[Binding, ...]:
    """The limits that no row keeps; where each is kept by some row, those that no row keeps together."""
    given = [name for name in VALUES if getattr(limits, name) is not None]
    alone = [found for name in given if (found := _binding(rows, name, limits, margins, alone=True))]
    unreachable = tuple(found for found in alone if found.best_s > found.limit_s)
    if unreachable:
        return unreachable
    together = []
    for name in given:
        others = replace(limits, **{name: None})
        fair = [row for row in rows if not row.breaks(margins.tightened(row, others))]
        found = _binding(fair, name, limits, margins, alone=False)
        if found is not None:
            together.append(found)
    return tuple(together) or tuple(alone)


def _binding(
    rows: Sequence[PriceRow], name: str, limits: Limits, margins: Margins, *, alone: bool
) -> Binding | None:
    known = [(value, at) for at, row in enumerate(rows) if (value := margins.value(row, name)) is not None]
    if not known:
        return None
    best_s, at = min(known)
    return Binding(name, getattr(limits, name), rows[at], best_s, alone)
