"""The memory part of the Saturation page: activations against tokens, and what chunk sizes leave for KV."""

from collections.abc import Sequence

from profiler.memory import BY_RESERVE, MemoryModel, MemoryRow
from profiler.saturation_board import SaturationBoard
from ui.palette import Theme
from ui.web.figures.memory import memory_figure
from ui.web.pages.saturation_tables import memory_table
from ui.words import binary_bytes, count

__all__ = ["memory_parts"]

_SIZES = (256, 512, 1024, 2048, 4096, 8192)


def memory_parts(board: SaturationBoard, chunks: Sequence[int], theme: Theme) -> dict[str, object]:
    """Figure, words and table; `chunks` are sizes in use, which the table has besides others."""
    model, sizes = board.memory, board.report.sizes["tokens"]
    most = max(*_SIZES, *chunks, sizes[-1] if len(sizes) else 0)
    figure = memory_figure(model, board.activations, most, theme, board.lacking.get("memory", ""))
    if model is None:
        return {"memory": figure, "memory-said": "", "memory-table": ""}
    rows = model.rows([*sorted({*_SIZES, *chunks}), None])
    return {"memory": figure, "memory-said": _words(model, rows), "memory-table": memory_table(rows)}


def _words(model: MemoryModel, rows: Sequence[MemoryRow]) -> str:
    told = [f"Activations {model.kind}", f"KV {binary_bytes(model.kv_token_bytes)} a token"]
    if model.share_above is not None:
        told.append(f"{model.share_above * 100:.0f} % of {count(model.num_forwards)} forwards above the line")
    if model.memory_bytes is None:
        told.append("the size of the memory is not known, so neither is what is left for KV")
    elif model.kept_free_by == BY_RESERVE:
        told.append("kept free by SGLang's rule")
    if model.envelope is not None and any(row.extrapolated for row in rows):
        told.append("* beyond what was measured")
    return " · ".join(told)
