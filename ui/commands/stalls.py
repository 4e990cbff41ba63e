"""`chunkscope stalls`: where all waiting for tokens went, and whose chunks took it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ui.errors import UserError
from ui.options import json_option
from ui.words import count, name, plural

if TYPE_CHECKING:
    from profiler.ledger.culprit_costs import ChunkToll
    from profiler.ledger.parts import GapDetail
    from profiler.ledger.report import StallReport
    from profiler.ledger.ttft_parts import TtftLedger, TtftTotals
    from profiler.price_rows import ForwardCostModel
    from traces.reader import Trace

    Cost = tuple[str, ForwardCostModel] | None

__all__ = ["command"]

TOP = 10
NAMED = 5  # requests that a message names
TOKENS, MODEL = "tokens", "model"


@click.command("stalls")
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--request", metavar="R", help="The worst waits of this request, with every part of each.")
@click.option("--culprit", metavar="R", help="What each chunk of this request cost whom.")
@click.option(
    "--top",
    type=click.IntRange(1),
    metavar="N",
    help=f"Rows of each table.  [default: {TOP}; all chunks of --culprit]",
)
@click.option(
    "--split",
    type=click.Choice([TOKENS, MODEL]),
    default=TOKENS,
    show_default=True,
    help="Share a forward among its chunks by their tokens, or by the time that a cost model gives them.",
)
@json_option()
def command(
    trace: Path, request: str | None, culprit: str | None, top: int | None, split: str, as_json: bool
) -> None:
    """Where all waiting for tokens went, and whose chunks took it.

    Every nanosecond between two tokens of a request, and before its first one, is charged to what filled it;
    docs/metrics.md, "Gap ledger" and "TTFT ledger", says how.
    """
    from traces.reader import open_trace
    from ui.tables import narrator, print_json, say

    opened = open_trace(trace)
    if opened.live:
        forwards = plural(opened.table("forwards").num_rows, "forward")
        say(narrator(), f"{trace} is still being written: these are its first {forwards}")
    asked = _asked(opened, trace, request, culprit, _cost_model(opened) if split == MODEL else None)
    if as_json:
        print_json({"trace": str(trace), **_document(opened, asked, top)})
    else:
        _print(opened, asked, top)


class _Asked(NamedTuple):
    """What was asked for; None was not."""

    cost: "Cost"
    request: str | None
    gaps: "list[GapDetail] | None"
    ttft: "TtftLedger | None"
    culprit: str | None
    tolls: "tuple[ChunkToll, ...] | None"


def _asked(opened: "Trace", trace: Path, request: str | None, culprit: str | None, cost: "Cost") -> _Asked:
    """Take apart the gaps of the requests that were named. Raises UserError for one that is not there."""
    if request is None and culprit is None:
        return _Asked(cost, None, None, None, None, None)
    from profiler.ledger.culprit_costs import chunk_tolls
    from profiler.ledger.request_ledgers import RequestLedgers
    from profiler.ledger.ttft import read_ttft
    from profiler.ledger.ttft_source import TtftSource

    rids = {asked: _rid(opened, trace, asked) for asked in (request, culprit) if asked is not None}
    ledgers = RequestLedgers.of(opened, rids.values(), cost)
    gaps = ttft = tolls = None
    if request is not None:
        gaps = ledgers.gaps_of(rids[request])
        ttft = read_ttft(TtftSource.of(opened, cost), rids[request])
    if culprit is not None:
        tolls = chunk_tolls(ledgers.gaps_behind(rids[culprit]), rids[culprit])
    return _Asked(cost, request, gaps, ttft, culprit, tolls)


def _rid(opened: "Trace", trace: Path, asked: str) -> int:
    """The request of this name."""
    from profiler.tables import request_names

    names = request_names(opened)
    found = [rid for rid, known in names.items() if known == asked]
    if not found:
        some = [name(known) for known in list(names.values())[:NAMED]]
        more = f" and {count(len(names) - NAMED)} more" if len(names) > NAMED else ""
        there = f"it has {', '.join(some)}{more}" if some else "it has none"
        raise UserError(f"{trace} has no request {name(asked)}: {there}")
    return found[0]


def _cost_model(opened: "Trace") -> "Cost":
    """The model and its name. Raises UserError where the trace tells too little for one."""
    from engine.errors import ConfigError
    from profiler.ledger.split_cost import split_cost

    try:
        return split_cost(opened)
    except ConfigError as error:
        raise UserError(f"{opened.path}: {error}; --split {TOKENS} needs no model") from error


def _document(opened: "Trace", asked: _Asked, top: int | None) -> dict[str, Any]:
    from profiler.ledger.document import culprit_document, report_document, request_document
    from profiler.ledger.ttft_document import ttft_document, ttft_totals_document
    from ui.stall_words import stalls_answer

    report, ttft = _sums(opened, asked, top)
    document = {
        "provenance": opened.meta.get("provenance"),
        "answer": stalls_answer(report).text,
        **report_document(report, top or TOP),
        "ttft": ttft_totals_document(ttft, top or TOP),
    }
    if asked.request is not None and asked.gaps is not None:
        document["request"] = {
            **request_document(asked.request, asked.gaps, top or TOP),
            "ttft": None if asked.ttft is None else ttft_document(asked.ttft),
        }
    if asked.culprit is not None and asked.tolls is not None:
        document["culprit"] = culprit_document(asked.culprit, asked.tolls, top)
    return document


def _print(opened: "Trace", asked: _Asked, top: int | None) -> None:
    from profiler.run_start import run_start_ns
    from ui.stall_answers import print_basis, print_culprit, print_report, print_request

    if asked.gaps is None and asked.tolls is None:
        print_report(*_sums(opened, asked, top), top or TOP, run_start_ns(opened))
    if asked.request is not None and asked.gaps is not None:
        print_request(asked.request, asked.gaps, asked.ttft, top or TOP, opened.meta, run_start_ns(opened))
    if asked.culprit is not None and asked.tolls is not None:
        print_culprit(asked.culprit, asked.tolls, top)
    print_basis(opened.path, opened.meta, "tokens" if asked.cost is None else asked.cost[0])


def _sums(opened: "Trace", asked: _Asked, top: int | None) -> "tuple[StallReport, TtftTotals]":
    """All waits between tokens, and all waits for first ones."""
    from profiler.ledger.stall_report import both_reports

    return both_reports(opened, top=top or TOP, split=asked.cost)
