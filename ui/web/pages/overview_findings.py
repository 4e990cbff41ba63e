"""Findings of a run: what was seen, on what evidence, and where to look at it."""

from collections.abc import Sequence

from dash import html
from dash.development.base_component import Component

from profiler.findings.finding import Finding, FindingKind
from ui.finding_words import MARKS
from ui.web.attributes import aria, data
from ui.web.instants import instant_link
from ui.web.pages.overview_options import with_options
from ui.web.runs import Run
from ui.words import clipped

__all__ = ["finding_list", "findings_words"]

_MOST_CHARS = 400  # of a sentence, which may hold names from the trace
_OF_SIZES = (
    FindingKind.CHUNK_SIZE,
    FindingKind.DECODE_BATCH_PAST_SATURATION,
    FindingKind.FRAGMENTED_PREFILLS,
)


def findings_words(found: Sequence[Finding]) -> str:
    """How many there are, and their order."""
    if not found:
        return "none"
    return "1" if len(found) == 1 else f"{len(found)}, ordered by decode time lost"


def finding_list(run: Run, found: Sequence[Finding]) -> Component:
    """One after another, the worst first."""
    if not found:
        return html.P("Nothing passes its threshold.", className="muted")
    said: set[str] = set()  # findings of one cause have one mend
    items = [_item(run, finding, said) for finding in found]
    return html.Ol(items, className="findings")


def _item(run: Run, finding: Finding, said: set[str]) -> html.Li:
    mark = MARKS[finding.severity]
    glyph = html.Span(mark.glyph, className=f"glyph {finding.severity}", role="img", **aria(label=mark.words))
    mend = [html.P(with_options(_line(finding.mend)))] if finding.mend and finding.mend not in said else []
    said.add(finding.mend or "")
    links = _links(run, finding)
    return html.Li(
        [
            glyph,
            html.H3(finding.title),
            html.P(_line(finding.sentence)),
            html.P(_line(finding.evidence), className="evidence"),
            *mend,
            *([html.P(links, className="links")] if links else []),
        ],
    )


def _line(text: str) -> str:
    return clipped(text, _MOST_CHARS)


def _links(run: Run, finding: Finding) -> list[Component | str]:
    links: list[Component] = []
    if finding.at_ns is not None:
        links.append(_instant(run, finding, finding.at_ns))
    if finding.kind in _OF_SIZES:
        links.append(html.A("Show Saturation", href=f"/saturation?sat={run.index}", **data(instant="")))
    return [part for link in links for part in (link, " · ")][:-1]


def _instant(run: Run, finding: Finding, at_ns: int) -> html.A:
    """To the gap of a request concerned that holds the instant, or to the forward that shows it."""
    timeline = run.timeline
    gaps = (timeline.gap_at(rid, at_ns) for rid in finding.rids)
    gap = next((gap for gap in gaps if gap is not None), None)
    when = f"Show in Compare at {(at_ns - timeline.start_ns) / 1e9:,.3f} s"
    if gap is None:
        return instant_link(when, run, at_ns, at_ns + 1)
    return instant_link(when, run, at_ns, gap.end_ns, gap)
