"""What the saturation point and the prices rest on: in a few groups at the foot, and in full on a page."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ui import words
from ui.si_words import bandwidth, dtype_word, flop_rate
from ui.tui.ink import Ink
from ui.tui.saturation_view import SaturationView
from ui.tui.text import Line

if TYPE_CHECKING:
    from profiler.saturation_board import SaturationBoard
    from profiler.saturation_report import SaturationReport

__all__ = ["basis_groups", "basis_page", "price_groups"]

_LAST = "not covered"
NAME_CELLS = 15


def basis_groups(view: SaturationView) -> list[Line]:
    """A name and what is known of it each; dips wear their mark, and what is not covered comes last."""
    groups: list[Line] = []
    for name, text in _told(view):
        mark: Line = [("▲ ", Ink.WATCH)] if name == "dips" else []
        groups.append([*mark, (f"{name} ", Ink.MUTED), (text, Ink.TEXT)])
    return groups


def price_groups(view: SaturationView) -> list[Line]:
    """What the prices rest on, a line each, the most telling first."""
    from profiler import advice_words

    told = [] if view.advice is None else advice_words.basis(view.advice)
    return [[("prices: ", Ink.MUTED), (f"{name} ", Ink.MUTED), (text, Ink.TEXT)] for name, text in told]


def basis_page(view: SaturationView) -> list[Line]:
    """The advice; the same a line each; what the prices rest on; roof and FLOPs."""
    from profiler import advice_words

    lines: list[Line] = []
    if view.advice is not None:
        lines.append([("Advice", Ink.STRONG)])
        said = [advice_words.answer(view.advice), *advice_words.reasons(view.advice)]
        lines += [[(text, int(Ink.TEXT))] for text in said]
        lines.append([])
    lines.append([("What the point rests on", Ink.STRONG)])
    lines += [_line(name, text) for name, text in _told(view)]
    if view.advice is not None:
        lines += [[], [("What the prices rest on", Ink.STRONG)]]
        lines += [_line(name, text) for name, text in advice_words.basis(view.advice)]
    if view.board is not None:
        lines += [[], [("Roof and FLOPs", Ink.STRONG)]]
        lines += [_line(name, text) for name, text in (*_roof(view.board), *_conventions(view.board))]
    return lines


def _roof(board: "SaturationBoard") -> Iterator[tuple[str, str]]:
    """What the roof rests on, and how many points lie above it for what reason."""
    chosen = board.roofs.chosen
    if chosen is None:
        yield "roof", board.lacking.get("roof", words.UNKNOWN)
        return
    roof = chosen.roof
    rates = f"{flop_rate(roof.flops_per_s)}, {roof.traffic} {bandwidth(roof.bytes_per_s)}"
    yield "roof", f"{dtype_word(roof.dtype)} {rates}: {words.name(chosen.words)}"
    for name, above in (("forwards", board.forwards_above), ("operators", board.operators_above)):
        counted = Counter(above["reason"].to_list())
        said = [f"{count:,} by {reason}" for reason, count in counted.most_common()]
        yield "above it", f"{', '.join(said) or 'none'} of the {name}"


def _conventions(board: "SaturationBoard") -> Iterator[tuple[str, str]]:
    """FLOPs of all forwards counted in three ways."""
    told = board.conventions
    for name, label in (("exact", "exact"), ("sglang", "as SGLang does"), ("naive", "2 · params · T")):
        total, ratio = told.total[name], told.ratio(name)
        times = "" if ratio is None or name == "exact" else f", {ratio:.3f} of the exact count"
        yield label, words.UNKNOWN if total is None else f"{flop_rate(total).removesuffix('/s')}{times}"


def _line(name: str, text: str) -> Line:
    return [(f"{name:<{NAME_CELLS}}", Ink.MUTED), (text, Ink.TEXT)]


def _told(view: SaturationView) -> list[tuple[str, str]]:
    from profiler import saturation_words  # loads scipy, as the report did

    if view.report is None:
        return []
    told = dict(saturation_words.basis(view.report))
    last = {name: told.pop(name) for name in (_LAST,) if name in told}
    decode = view.board.decode if view.board else None
    return [*{**_curve(view.report), **told, **_shape(view.report), **_decode(decode), **last}.items()]


def _curve(report: "SaturationReport") -> dict[str, str]:
    """The fitted curve as a formula, where it is one."""
    from profiler.throughput_fit import ParametricCurve

    curve = report.found.curve
    if not isinstance(curve, ParametricCurve):
        return {}
    parts = [words.seconds(value) for value in (curve.fixed, curve.memory)]
    token = f"{curve.compute * 1e6:.3g} µs"
    return {"t(T) =": f"{parts[0]} + smooth max({parts[1]} weights, T × {token}) + attention"}


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
