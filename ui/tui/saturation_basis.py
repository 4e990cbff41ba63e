"""What the saturation point and the prices rest on, in a few groups at the foot of the screen."""

from typing import TYPE_CHECKING

from ui import words
from ui.tui.ink import Ink
from ui.tui.saturation_view import SaturationView
from ui.tui.text import Line

if TYPE_CHECKING:
    from profiler.saturation_board import SaturationBoard
    from profiler.saturation_report import SaturationReport

__all__ = ["basis_groups", "model_basis", "point_basis", "price_groups"]

_LAST = "not covered"


def basis_groups(view: SaturationView) -> list[Line]:
    """A name and what is known of it each; dips wear their mark, and what is not covered comes last."""
    groups: list[Line] = []
    model = [] if view.board is None or view.board.model is None else [("model", _formula(view.board))]
    for name, text in [*model, *point_basis(view)]:
        mark: Line = [("▲ ", Ink.WATCH)] if name == "dips" else []
        groups.append([*mark, (f"{name} ", Ink.MUTED), (text, Ink.TEXT)])
    return groups


def price_groups(view: SaturationView) -> list[Line]:
    """What the prices rest on, a line each, the most telling first."""
    from profiler import advice_words

    told = [] if view.advice is None else advice_words.basis(view.advice)
    return [[("prices: ", Ink.MUTED), (f"{name} ", Ink.MUTED), (text, Ink.TEXT)] for name, text in told]


def point_basis(view: SaturationView) -> list[tuple[str, str]]:
    """A name and what is known of it each; what is not covered comes last."""
    from profiler import saturation_words  # loads scipy, as the report did

    if view.report is None:
        return []
    told = dict(saturation_words.basis(view.report))
    last = {name: told.pop(name) for name in (_LAST,) if name in told}
    decode = view.board.decode if view.board else None
    return [*{**told, **_shape(view.report), **_decode(decode), **last}.items()]


def model_basis(board: "SaturationBoard") -> list[tuple[str, str]]:
    """The model of any forward, what attention costs by it and how far forwards lie from it; or why not."""
    from ui.model_words import attention_words, residual_words

    if board.model is None:
        return [("model", f"none: {board.lacking['model']}")]
    source = board.provenance or "recorded"
    return [
        ("model", f"{_formula(board)}, fitted to {source} forwards"),
        ("attention", attention_words(board.model)),
        ("residuals", residual_words(board.model)),
    ]


def _formula(board: "SaturationBoard") -> str:
    from ui.model_words import model_words  # loads scipy, as the model did

    return words.UNKNOWN if board.model is None else model_words(board.model)


def _decode(report: "SaturationReport | None") -> dict[str, str]:
    """How many decode rows fill a forward, where that is known."""
    if report is None or report.found.tokens is None:
        return {}
    found = report.found
    return {"decode": f"{found.tokens:,} rows [{words.count(found.low)}, {words.count(found.high)}] fill one"}


def _shape(report: "SaturationReport") -> dict[str, str]:
    """Plateau and dips."""
    found, said = report.found, {}
    if found.plateau is not None:
        rates = [f"{value:,.0f}" for value in (found.plateau.low, found.plateau.high)]
        best = words.rate(found.plateau.tokens_per_s)
        said["plateau"] = f"{best} [{', '.join(rates)}]"
    if found.dips:
        spans = [
            words.count(dip.first) if dip.first == dip.last else f"{dip.first:,} to {dip.last:,}"
            for dip in found.dips
        ]
        deepest = max(dip.depth for dip in found.dips)
        said["dips"] = (
            f"at {', '.join(spans)} tokens, by up to {deepest * 100:.0f} %: kept, do not move the point"
        )
    return said
