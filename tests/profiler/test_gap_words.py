"""A gap in words, and the headline of three policies, from plain values."""

from typing import Any

import pytest

from profiler.culprits import Culprit
from profiler.ledger.parts import Chunk, GapDetail, GapForward
from profiler.sentences import headline, waited, who_waits, why_waited

S = 1_000_000_000


def forward(forward_id: int, start_ns: int, end_ns: int, mode: str = "EXTEND") -> GapForward:
    return GapForward(forward_id, mode, start_ns, end_ns, end_ns - start_ns, None, None)


def chunk(rid: int, number: int, of: int | None, forward_id: int, in_gap_ns: int) -> Chunk:
    return Chunk(rid, f"r{rid}", number, of, 0, 10, forward_id, 0, in_gap_ns, in_gap_ns)


def gap(length_ns: int, forwards: list[GapForward], chunks: list[Chunk], **more: Any) -> GapDetail:
    shares: dict[int, int] = {}
    for each in chunks:
        shares[each.rid] = shares.get(each.rid, 0) + each.in_gap_ns
    ranked = sorted(shares.items(), key=lambda item: -item[1])
    values: dict[str, Any] = {
        "rid": 1,
        "name": "r1",
        "token_index": 37,
        "start_ns": 0,
        "end_ns": length_ns,
        "median_gap_ns": None,
        "own_forward_id": forwards[-1].forward_id,
        "own_mode": forwards[-1].mode,
        "own_start_ns": forwards[-1].start_ns,
        "forwards": tuple(forwards),
        "culprits": tuple(Culprit(rid, f"r{rid}", ns) for rid, ns in ranked),
        "chunks": tuple(chunks),
        "costliest": max(chunks, key=lambda each: each.in_gap_ns, default=None),
        "mixed_extra_ns": None,
        "mixed_extra_estimator": None,
    }
    return GapDetail(**{**values, **more})


WALL = gap(
    2 * S,
    [forward(5, 0, S), forward(6, S, 17 * S // 10), forward(7, 19 * S // 10, 2 * S, "DECODE")],
    [chunk(7, 1, 2, 5, S), chunk(7, 2, 2, 6, S // 2), chunk(8, 1, 1, 6, S // 5)],
)
MIXED = gap(S, [forward(9, S // 10, S, "MIXED")], [chunk(7, 3, None, 9, S // 2)], mixed_extra_ns=S // 2)
ALONE = gap(S, [forward(9, 9 * S // 10, S, "DECODE")], [])


def test_gaps_in_words() -> None:
    assert waited(WALL) == "r1 waited 2.00 s for its token 37"
    assert why_waited(WALL) == "Prefill of r7 and r8 took 85 % of it, in 2 forwards."
    assert why_waited(MIXED) == "Tokens of r7 rode in its own forward: they cost it 500 ms."
    unknown = gap(S, [forward(9, 0, S, "MIXED")], [chunk(7, 1, 1, 9, S)])
    assert (
        why_waited(unknown)
        == "Tokens of r7 rode in its own forward: how much of that forward was theirs is not known."
    )
    assert why_waited(ALONE) == "No forward of others lies in it: 100 ms is its own, 900 ms was no forward's."
    decodes = gap(S, [forward(3, 0, S // 4, "DECODE"), forward(4, S // 2, S, "DECODE")], [])
    assert why_waited(decodes) == "One forward of others ran while it had no row in them."


def test_many_culprits_are_counted() -> None:
    chunks = [chunk(rid, 1, 1, 5, S // 10) for rid in range(2, 8)]
    many = gap(S, [forward(5, 0, 6 * S // 10), forward(6, 9 * S // 10, S, "DECODE")], chunks)
    assert "Prefill of r2, r3, r4 and 3 more took 60 % of it, in one forward." in why_waited(many)


def summary(gap_s: float | None, modes: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"worst_stall": {"gap_s": gap_s, "modes": list(modes)}}


@pytest.mark.parametrize(
    ("whole", "chunked", "mixed", "said"),
    [
        (
            1.15,
            1.53,
            0.101,
            "Mixing cuts the longest silence from 1.15 s to 101 ms. Chunking alone makes it 1.53 s.",
        ),
        (
            4.57,
            4.65,
            0.6,
            "Mixing cuts the longest silence from 4.57 s to 600 ms. Chunking alone leaves it at 4.65 s.",
        ),
        (
            2.0,
            1.0,
            2.1,
            "Mixing changes the longest silence from 2.00 s to 2.10 s. Chunking alone shortens it to 1.00 s.",
        ),
        (
            1.0,
            1.0,
            3.0,
            "Mixing lengthens the longest silence from 1.00 s to 3.00 s. Chunking alone leaves it at 1.00 s.",
        ),
    ],
)
def test_the_headline_follows_the_numbers(whole: float, chunked: float, mixed: float, said: str) -> None:
    assert headline(summary(whole), summary(chunked), summary(mixed)) == said


def test_the_headline_of_runs_without_gaps() -> None:
    assert "not known" in headline(summary(None), summary(1.0), summary(1.0))


def test_who_waits_counts_the_prefill_forwards_in_the_gap() -> None:
    wall, rides, some = summary(1, ("EXTEND",) * 10), summary(1, ("DECODE",)), summary(1, ("EXTEND", "MIXED"))
    assert who_waits(wall, rides) == (
        "Chunked, 10 prefill forwards of others run before the next token; with --enable-mixed-chunk, none."
    )
    assert "with --enable-mixed-chunk, 2 of them" in who_waits(wall, some)
    assert "no prefill forward of others runs" in who_waits(rides, rides)
    assert "one prefill forward of others runs" in who_waits(summary(1, ("EXTEND",)), rides)
