"""The Saturation page's parts that depend on the run alone: curve, fit, model, memory, decodes, FLOPs."""

from dash import html
from dash.development.base_component import Component

from profiler.saturation_board import SaturationBoard
from profiler.saturation_report import SaturationReport
from profiler.saturation_words import answer, basis, price
from ui.model_words import attention_words, model_words, residual_words
from ui.palette import Theme
from ui.si_words import percent
from ui.sweep_hint import sweep_hint
from ui.web.figures.decodes import HEIGHT as DECODES_HEIGHT
from ui.web.figures.decodes import decodes_figure
from ui.web.figures.memory import HEIGHT as MEMORY_HEIGHT
from ui.web.figures.residuals import HEIGHT as RESIDUALS_HEIGHT
from ui.web.figures.residuals import residuals_figure
from ui.web.figures.style import empty
from ui.web.figures.throughput import DRAWN_OTHERS, DRAWN_POINTS, ModelCurves, throughput_figure
from ui.web.figures.throughput import HEIGHT as THROUGHPUT_HEIGHT
from ui.web.figures.throughput_marks import Marks
from ui.web.metric_heads import named
from ui.web.pages.saturation_evidence import Evidence
from ui.web.pages.saturation_memory import memory_parts
from ui.web.pages.saturation_tables import conventions_table, residuals_table, sizes_table, terms_table
from ui.web.runs import provenance
from ui.words import count, plural

__all__ = ["PARTS", "curves_of", "parts_of", "plain_marks", "unreadable"]

PARTS = {
    "answer": "children",
    "price": "children",
    "badge": "children",
    "throughput": "figure",
    "throughput-caption": "children",
    "sizes": "children",
    "basis": "children",
    "residuals": "figure",
    "terms": "children",
    "batches": "figure",
    "batches-said": "children",
    "batches-sizes": "children",
    "memory": "figure",
    "memory-said": "children",
    "memory-table": "children",
    "conventions": "children",
}
"""Every part of the page that depends on the run alone, and the property that holds it."""

_FIGURES = {
    "throughput": THROUGHPUT_HEIGHT,
    "residuals": RESIDUALS_HEIGHT,
    "batches": DECODES_HEIGHT,
    "memory": MEMORY_HEIGHT,
}
_MOST_CHUNKS_SAID = 2
_DIPS_SAID = 4
_ENTRIES = {
    "layout": "layout",
    "not covered": "not_covered",
    "prefix": "prefix_curve",
    "model": "model_formula",
    "attention": "model_term",
    "residuals": "model_rms",
    "fit": "fit",
    "raw": "first_reach",
    "points": "size_forwards",
    "plateau": "plateau",
    "dips": "dips",
}


def parts_of(evidence: Evidence, theme: Theme) -> dict[str, object]:
    """All parts for a run."""
    board = evidence.board
    report = board.report
    said = [mark.tokens for mark in evidence.chunks] if len(evidence.chunks) <= _MOST_CHUNKS_SAID else []
    return {
        "answer": answer(report, said),
        "price": _price(evidence),
        "badge": f"◇ {provenance(evidence.timeline)}",
        "throughput": throughput_figure(report, theme, plain_marks(evidence), curves_of(board)),
        "throughput-caption": _throughput_caption(evidence),
        "sizes": sizes_table(report),
        "basis": _basis(evidence),
        "residuals": residuals_figure(report, theme),
        "terms": [] if board.model is None else [terms_table(board.model), residuals_table(board.model)],
        "batches": decodes_figure(board.decode, theme, board.lacking.get("decode", "")),
        "batches-said": "" if board.decode is None else decodes_words(board.decode),
        "batches-sizes": "" if board.decode is None else sizes_table(board.decode),
        **memory_parts(board, [mark.tokens for mark in evidence.chunks], theme),
        "conventions": conventions_table(board.conventions),
    }


def plain_marks(evidence: Evidence) -> Marks:
    """What is marked before there is a price list."""
    board = evidence.board
    return Marks(evidence.chunks, ridge_tokens=board.ridge_tokens, modelled=board.model is not None)


def curves_of(board: SaturationBoard) -> ModelCurves:
    """The model's curves of a board."""
    return ModelCurves(board.plain, board.behind)


def unreadable(reason: str, theme: Theme) -> dict[str, object]:
    """All parts for a trace that cannot be read: why, and nothing else."""
    nothing = dict.fromkeys(PARTS, "")
    figures = {part: empty(theme, height, "not readable") for part, height in _FIGURES.items()}
    return {**nothing, **figures, "answer": "This trace cannot be read.", "price": reason}


def decodes_words(report: SaturationReport) -> str:
    """How many decode rows fill a forward."""
    found = report.found
    if found.status == "ok" and found.tokens is not None:
        return (
            f"{plural(found.tokens, 'decode row')} fill a forward [{count(found.low)}, {count(found.high)}]: "
            f"{found.layout}."
        )
    if found.status == "not_saturated":
        largest = report.sizes["tokens"][-1]
        return f"Up to {count(largest)} decode rows throughput still rises: {found.layout}."
    return f"{plural(found.num_sizes, 'batch size')} of decode rows alone; a fit needs 8."


def _price(evidence: Evidence) -> list[Component | str]:
    report = evidence.board.report
    if evidence.sweep is not None and report.found.status != "ok":
        return [f"See {evidence.sweep}, a sweep of the same model."]
    command = sweep_hint(report, evidence.timeline.trace.meta)
    said: list[Component | str] = [price(report, simulated=evidence.board.provenance == "simulated")]
    return said if command is None else [*said, " ", html.Code(command)]


def _basis(evidence: Evidence) -> list[Component]:
    """What the point rests on, then the model of a forward, a line each."""
    board = evidence.board
    lines = [*basis(board.report), *_dips(board.report)]
    if board.model is None:
        lines.append(("model", f"none: {board.lacking['model']}"))
    else:
        source = board.provenance or "recorded"
        lines.append(("model", f"{model_words(board.model)}, fitted to {source} forwards"))
        lines.append(("attention", attention_words(board.model)))
        lines.append(("residuals", residual_words(board.model)))
    if board.behind is None:
        lines.append(("prefix", f"no dashed curve: {board.lacking['behind']}"))
    parts: list[Component] = []
    for head, text in lines:
        more = named(_ENTRIES[head]) if head in _ENTRIES else {}
        parts += [html.Dt(head, **more), html.Dd(text)]
    return parts


def _dips(report: SaturationReport) -> list[tuple[str, str]]:
    """Where throughput dips below the fit, the deepest first."""
    dips = sorted(report.found.dips, key=lambda dip: -dip.depth)
    if not dips:
        return []
    told = [f"{percent(dip.depth)} at {_span(dip.first, dip.last)}" for dip in dips[:_DIPS_SAID]]
    more = f" and {count(len(dips) - _DIPS_SAID)} more" if len(dips) > _DIPS_SAID else ""
    return [("dips", f"▲ {', '.join(told)}{more} tokens: kept, they do not move the point")]


def _span(first: int, last: int) -> str:
    return count(first) if first == last else f"{count(first)}–{count(last)}"


def _throughput_caption(evidence: Evidence) -> str:
    report = evidence.board.report
    source = evidence.board.provenance or "recorded"
    told = [f"○ {source} forward of one prompt, no prefix{_part_drawn(report.points.height, DRAWN_POINTS)}"]
    if report.others.height:
        told.append(
            "faint: with a prefix, or of several rows" + _part_drawn(report.others.height, DRAWN_OTHERS)
        )
    if report.best_tokens_per_s is not None:
        told.append("line: the fit")
    if report.found.dips:
        told.append("▼ dip: kept, does not move the point")
    if evidence.board.behind is not None:
        told.append("dashed: behind a prefix, by the model of a forward")
    return " · ".join(told)


def _part_drawn(height: int, most: int) -> str:
    return f" ({count(most)} of {count(height)} drawn, evenly by size)" if height > most else ""
