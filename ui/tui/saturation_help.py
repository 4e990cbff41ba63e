"""The keys of the Saturation screen, and where docs/metrics.md defines each of its numbers."""

from ui.metric_entries import ENTRIES
from ui.tui.help_page import help_lines
from ui.tui.text import Line

__all__ = ["saturation_help"]

KEYS = (
    ("← →", "the next smaller, larger chunk"),
    ("p", "the next policy: prefill first, mixed, an interval"),
    ("l", "choose a limit, or the decodes that ride along in every mixed forward"),
    ("↑ ↓", "what is chosen up, down"),
    ("0", "no limit; decodes as in the trace"),
    ("Tab", "charts or prices, where there is room for one"),
    ("Enter", "what the numbers rest on"),
    ("u", "compute anew, for a trace that grows"),
    ("1  Esc", "the replay"),
    ("q", "quit"),
)
NUMBERS = (
    ("● tokens", "saturation_point"),
    ("[low, high]", "saturation_interval"),
    ("tok/s", "size_rate"),
    ("ms", "size_time"),
    ("line", "fit"),
    ("residual", "residual"),
    ("layout", "layout"),
    ("not covered", "not_covered"),
    ("t(T)", "model_formula"),
    ("attention", "model_term"),
    ("residuals", "model_rms"),
    ("plateau", "plateau"),
    ("▲ dips", "dips"),
    ("raw", "first_reach"),
    ("decode", "decode_point"),
    ("chunk", "chunk_tokens"),
    ("of best", "plateau_share"),
    ("n", "forwards_of_prompt"),
    ("first", "first_forward"),
    ("last", "last_forward"),
    ("wait", "longest_wait"),
    ("ITL p99", "price_itl_p99"),
    ("TTFT long", "ttft_long"),
    ("TTFT p99", "ttft_p99"),
    ("margin, +N %", "margins"),
    ("workload", "workload"),
    ("decodes", "riding"),
    ("act. GiB", "activation_bytes"),
    ("KV tokens", "kv_tokens"),
    ("roof", "ceilings"),
    ("above it", "above_roof"),
    ("exact", "flops_total"),
    ("of the exact", "flops_ratio"),
)
"""What stands on the screen, and the key of its entry."""


def saturation_help(cells: int) -> list[Line]:
    """The keys, then the numbers."""
    return help_lines(KEYS, [(name, ENTRIES[key]) for name, key in NUMBERS], cells)
