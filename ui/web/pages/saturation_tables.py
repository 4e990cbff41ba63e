"""The tables behind the Saturation page's curve, its model of a forward, memory and FLOPs."""

from collections.abc import Iterable

from dash import html

from profiler.flops_conventions import FlopsConventions
from profiler.forward_model import ForwardModel
from profiler.memory import MemoryRow
from profiler.sampling import evenly
from profiler.saturation_report import SaturationReport
from ui.model_words import flops, term_words
from ui.si_words import percent
from ui.web.metric_heads import head, name_head
from ui.web.numbers_table import MOST_ROWS, cut_note, numbers_table
from ui.words import UNKNOWN, binary_bytes, count, rate, seconds

__all__ = ["conventions_table", "memory_table", "residuals_table", "sizes_table", "terms_table"]


def sizes_table(report: SaturationReport) -> list[html.P | html.Table]:
    """One row a measured size."""
    sizes = evenly(report.sizes, ("tokens",), MOST_ROWS)
    heads = [
        head("size_tokens", "tokens"),
        head("size_forwards", "forwards"),
        head("size_time", "time, median"),
        head("size_time", "shortest"),
        head("size_time", "longest"),
        head("size_rate", "tokens/s"),
        head("fit", "fit"),
        head("fit_share", "of the best"),
    ]
    rows = [
        (
            count(size["tokens"]),
            count(size["forwards"]),
            *(seconds(size[name] / 1e9) for name in ("time_ns", "low_ns", "high_ns")),
            rate(size["tokens_per_s"]),
            rate(size["fit_tokens_per_s"]),
            percent(size["share"]),
        )
        for size in sizes.iter_rows(named=True)
    ]
    return [*cut_note("sizes", report.sizes.height), numbers_table("Sizes of forwards", heads, rows)]


def conventions_table(conventions: FlopsConventions) -> html.Table:
    """The three ways of counting side by side, over all forwards of the trace."""
    heads = [
        name_head("convention"),
        head("flops_total", "FLOPs"),
        head("flops_ratio", "against exact"),
    ]
    names = {"exact": "exact", "sglang": "SGLang's estimator", "naive": "naive"}
    rows = [
        (name, flops(conventions.total[key]), _times(conventions.ratio(key))) for key, name in names.items()
    ]
    return numbers_table("FLOPs by convention", heads, rows)


def memory_table(rows: Iterable[MemoryRow]) -> html.Table:
    """What the device's memory holds at each chunk size."""
    heads = [
        head("chunk_tokens", "chunk"),
        head("activation_bytes", "activations"),
        head("kept_free", "kept free"),
        head("kv_tokens", "KV tokens"),
        head("memory_requests", "requests"),
    ]
    cells = [
        (
            "whole prompts" if row.chunk_tokens is None else count(row.chunk_tokens),
            binary_bytes(row.activation_bytes) + (" *" if row.extrapolated else ""),
            binary_bytes(row.kept_free_bytes),
            count(row.kv_tokens),
            count(row.requests),
        )
        for row in rows
    ]
    return numbers_table("Memory by chunk size", heads, cells)


def terms_table(model: ForwardModel) -> html.Table:
    """The model's terms with their intervals, and what was expected of them."""
    heads = [
        name_head("term"),
        head("model_term", "value"),
        head("model_interval", "95 % interval"),
        head("model_expected", "expected"),
        name_head("source"),
        head("model_rate", "stands for"),
    ]
    rows = [(t.name, t.value, t.interval, t.expected, t.source, t.rate) for t in term_words(model)]
    return numbers_table("Terms of the model of a forward", heads, rows)


def residuals_table(model: ForwardModel) -> html.Table:
    """How far forwards of each layout lie from the model."""
    heads = [
        name_head("forwards of"),
        head("size_forwards", "forwards"),
        head("model_bias", "bias"),
        head("model_typical", "typical"),
        head("model_rms", "root mean square"),
    ]
    rows = [
        (
            part.kind,
            count(part.forwards),
            f"{part.bias * 100:+.1f} %",
            f"{part.typical * 100:.1f} %",
            f"{part.rms * 100:.1f} %",
        )
        for part in model.residuals
    ]
    return numbers_table("Residuals of the model of a forward", heads, rows)


def _times(ratio: float | None) -> str:
    return UNKNOWN if ratio is None else f"× {ratio:.3f}"
