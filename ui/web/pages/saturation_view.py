"""The Saturation page's parts: figures, captions and words, from the evidence of a run."""

import shlex
from collections.abc import Mapping, Sequence

from dash import html
from dash.development.base_component import Component

from profiler.ceilings import machine_of
from profiler.saturation_words import answer, basis, price, sweep_command
from ui.palette import Theme
from ui.program import program
from ui.si_words import bandwidth, dtype_word, flop_rate
from ui.web.figures.roofline import HEIGHT as ROOFLINE_HEIGHT
from ui.web.figures.roofline import MODES, roofline_figure
from ui.web.figures.style import empty
from ui.web.figures.throughput import DRAWN_OTHERS, DRAWN_POINTS, throughput_figure
from ui.web.figures.throughput import HEIGHT as THROUGHPUT_HEIGHT
from ui.web.figures.throughput_marks import ChunkMark
from ui.web.names import shown
from ui.web.pages.saturation_evidence import Evidence
from ui.web.pages.saturation_tables import forwards_table, modes_table, sizes_table
from ui.web.runs import provenance
from ui.words import count, name

__all__ = ["PARTS", "parts_of", "unreadable"]

PARTS = {
    "answer": "children",
    "price": "children",
    "badge": "children",
    "throughput": "figure",
    "throughput-caption": "children",
    "sizes": "children",
    "basis": "children",
    "ceilings": "children",
    "roofline": "figure",
    "roofline-caption": "children",
    "modes": "children",
    "forwards": "children",
}
"""Every part of the page that depends on a run, and the property that holds it."""

_MOST_CHUNKS_SAID = 2


def parts_of(evidence: Evidence, chunks: Sequence[ChunkMark], theme: Theme) -> dict[str, object]:
    """All parts for a run; `chunks` are the chunk sizes in use that its curve says something of."""
    report = evidence.report
    said = [mark.tokens for mark in chunks] if len(chunks) <= _MOST_CHUNKS_SAID else []
    return {
        "answer": answer(report, said),
        "price": _price(evidence),
        "badge": f"◇ {provenance(evidence.timeline)}",
        "throughput": throughput_figure(report, theme, chunks),
        "throughput-caption": _throughput_caption(evidence),
        "sizes": sizes_table(report),
        "basis": [part for head, text in basis(report) for part in (html.Dt(head), html.Dd(text))],
        "ceilings": _ceilings(evidence),
        "roofline": roofline_figure(evidence.sample, evidence.roof, theme),
        "roofline-caption": _roofline_caption(evidence),
        "modes": modes_table(evidence.modes),
        "forwards": forwards_table(evidence.sample),
    }


def unreadable(reason: str, theme: Theme) -> dict[str, object]:
    """All parts for a trace that cannot be read: why, and nothing else."""
    nothing = dict.fromkeys(PARTS, "")
    figures = {
        "throughput": empty(theme, THROUGHPUT_HEIGHT, "not readable"),
        "roofline": empty(theme, ROOFLINE_HEIGHT, "not readable"),
    }
    return {**nothing, **figures, "answer": "This trace cannot be read.", "price": reason}


def _price(evidence: Evidence) -> list[Component | str]:
    simulated = evidence.timeline.trace.meta.get("provenance") == "simulated"
    command = None if simulated else sweep_command(evidence.report, _model(evidence))
    said: list[Component | str] = [price(evidence.report, simulated=simulated)]
    return said if command is None else [*said, " ", html.Code(command)]


def _model(evidence: Evidence) -> str:
    """The run's model as a command line takes it; M where the trace does not name it."""
    model = evidence.timeline.trace.meta.get("model")
    path = model.get("path") if isinstance(model, Mapping) else None
    return shlex.quote(name(path)) if isinstance(path, str) and path else "M"


def _throughput_caption(evidence: Evidence) -> str:
    report = evidence.report
    told = ["○ a forward of one prompt without a prefix" + _part_drawn(report.points.height, DRAWN_POINTS)]
    if report.others.height:
        told.append(
            "faint: with a prefix, or of several rows" + _part_drawn(report.others.height, DRAWN_OTHERS)
        )
    if report.best_tokens_per_s is not None:
        told.append("line: the fit")
    return " · ".join(told)


def _part_drawn(height: int, most: int) -> str:
    return f" ({count(most)} of {count(height)} drawn, evenly by size)" if height > most else ""


def _roofline_caption(evidence: Evidence) -> list[Component | str]:
    parts: list[Component | str] = []
    for mode, forwards in evidence.modes.select("mode", "forwards").iter_rows():
        mark = MODES[mode]
        drawn = evidence.sample.filter(evidence.sample["mode"].eq_missing(mode)).height
        part = (
            "" if drawn == forwards else f" ({count(drawn)} of {count(forwards)} drawn, evenly by intensity)"
        )
        glyph = html.Span(mark.glyph, style={"color": mark.fill, "WebkitTextStroke": f"1px {mark.edge}"})
        parts += [glyph, f" {mark.word}{part}  "]
    if evidence.sample["above_roof"].any():
        parts.append("◯ above the roof: it mostly reads, which is faster than a copy, or a cache helped")
    return parts


def _ceilings(evidence: Evidence) -> str | list[Component | str]:
    """The roof in words, or why there is none and what would give one."""
    meta = evidence.timeline.trace.meta
    machine, ceilings, roof = machine_of(meta.get("hardware")), evidence.ceilings, evidence.roof
    if ceilings is None and roof is not None:
        return (
            f"Peaks of the simulated {shown(str(meta['hardware'].get('name')))}, each GPU: "
            f"{dtype_word(roof.dtype)} {flop_rate(roof.flops_per_s)}, memory {bandwidth(roof.bytes_per_s)}. "
            "Forwards lie below them by the shares that the cost model assumes."
        )
    if machine is None:
        return "The trace does not say what machine it is from, so no ceilings are drawn."
    if ceilings is None:
        threads = "" if machine.threads is None else f"--threads {machine.threads} "
        command = f"{program()} ceilings {threads}{shlex.quote(str(evidence.timeline.path))}"
        lacking = f"No ceilings were measured for {shown(machine.label)}. To measure them there: "
        return [lacking, html.Code(command)]
    if roof is None:
        known = ", ".join(dtype_word(rate.dtype) for rate in ceilings.gemm)
        return (
            f"The ceilings of {shown(machine.label)} are of {known}, not of this run's dtype: none is drawn."
        )
    return (
        f"{shown(machine.label)}: {dtype_word(roof.dtype)} {flop_rate(roof.flops_per_s)}, "
        f"copy {bandwidth(roof.bytes_per_s)}, measured {ceilings.date[:10]}"
        + (", while other programs ran: may be too low" if ceilings.busy else "")
    )
