"""A row of a price list whose numbers are all different, so that none can stand for another."""

from profiler.price_rows import Options, PriceRow

__all__ = ["ROW"]

ROW = PriceRow(
    Options(512, mixed=True),
    plateau_share=0.9,
    forwards=64,
    first_forward_s=0.011,
    last_forward_s=0.022,
    longest_wait_s=0.033,
    itl_p99_s=0.044,
    ttft_p99_s=0.055,
    ttft_long_s=0.066,
    against_whole=0.5,
    output_tokens_per_s=77.0,
    activation_bytes=88 * 2**20,
    kv_tokens=99_000,
)
