"""The first words of the Saturation screen: what fills a forward, and what the advised chunk gives up."""

from ui import words
from ui.tui.ink import Ink
from ui.tui.saturation_view import SaturationView
from ui.tui.text import Line

__all__ = ["headline"]


def headline(view: SaturationView, *, brief: bool) -> Line:
    """A sentence or two, in fewer words if brief; without a report what is done, or why there is none."""
    from profiler import saturation_words  # loads scipy, as what it words did

    report = view.report
    if report is None:
        return [(view.progress, Ink.STRONG) if view.working else (view.lacking, Ink.BAD)]
    first, dot, rest = saturation_words.answer(report).partition(". ")
    if view.advice is None:
        return [(first + dot, Ink.STRONG), (rest, Ink.ACCENT)]
    if not dot:  # the forwards tell no point
        about = f"about {words.plural(view.advice.point.tokens, 'token')} fill one forward"
        said = f"By the cost model {about}."
        few = brief and report.found.status == "too_few_points"
        return [(f"{'Too few sizes.' if few else first} ", Ink.STRONG), (said, Ink.ACCENT)]
    return [(first + dot, Ink.STRONG), (_of_advised(view, brief=brief), Ink.ACCENT)]


def _of_advised(view: SaturationView, *, brief: bool) -> str:
    """What the advised chunk reaches and takes, as its row of the price list says."""
    row = view.advised
    if row is None:
        return "No option keeps the limits."
    size = row.options.chunk_tokens
    name = "Whole prompts" if size is None else f"Chunk {words.count(size)}"
    share = words.UNKNOWN if row.plateau_share is None else f"{row.plateau_share * 100:.0f} %"
    best = "of the best" if brief else "of the best for a long prompt"
    last = words.seconds(row.last_forward_s)
    return f"{name}: {share} {best}, up to {last}{'' if brief else ' a forward'}."
