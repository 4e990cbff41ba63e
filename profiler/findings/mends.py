"""What would mend a finding: a sentence that names the option, and that as the command line takes it."""

from dataclasses import dataclass

from engine.cache.allocator import ceil_page
from profiler.findings.run import Run
from profiler.price_rows import Options
from profiler.wording import count

__all__ = ["Mend", "better_chunk", "gather_or_ride", "larger_pool", "let_decodes_ride", "more_reserve"]

CONSERVATIVENESS_STEP = 1.3  # SGLang's advice where requests are retracted often


@dataclass(frozen=True, slots=True)
class Mend:
    """`option` is None where there is none to add: one is to be left out, or its value is open."""

    sentence: str
    option: tuple[str, ...] | None = None


def let_decodes_ride(run: Run) -> Mend | None:
    """Against decodes that wait for prefill; None where every option against it is on."""
    if not run.flag("enable_mixed_chunk"):
        if run.number("chunked_prefill_size") == -1:
            return _chunks_that_mix(run)
        return Mend("--enable-mixed-chunk lets decodes ride along in every chunk.", ("--enable-mixed-chunk",))
    if run.number("prefill_decode_interval") == 0:
        return Mend(
            "--prefill-decode-interval 1 puts a decode forward between two prefill forwards.",
            ("--prefill-decode-interval", "1"),
        )
    return None


def gather_or_ride(run: Run) -> Mend | None:
    """Against prefills of few tokens between decodes."""
    mend = let_decodes_ride(run)
    if mend is None or run.flag("enable_mixed_chunk") or run.number("prefill_decode_interval") != 0:
        return mend
    gathers = "--prefill-decode-interval lets more of them gather for one forward."
    return Mend(f"{mend.sentence} {gathers}", mend.option)


def better_chunk(run: Run) -> Mend | None:
    """The saturation point as a chunk size, with mixing; None where it is not known."""
    if run.point is None:
        return None
    tokens = ceil_page(run.point.tokens, run.page_size)
    # Only together: smaller chunks alone do not shorten a silence, since prefill goes first all the same.
    options = Options(tokens, mixed=True, interval=int(run.number("prefill_decode_interval") or 0))
    if run.flag("enable_mixed_chunk"):
        return Mend(
            f"--chunked-prefill-size {tokens} makes mixed forwards, and waits in them, shorter.",
            options.arguments(),
        )
    return Mend(
        f"--chunked-prefill-size {tokens} fills forwards as well; with --enable-mixed-chunk decodes then "
        "wait for one such chunk at a time. Smaller chunks alone do not shorten their silence.",
        options.arguments(),
    )


def more_reserve(run: Run) -> Mend:
    """Against requests that give their KV back."""
    now = run.number("schedule_conservativeness") or 1.0
    more = 1.0 if now < 1.0 else round(now * CONSERVATIVENESS_STEP, 2)
    return Mend(
        f"--schedule-conservativeness {more:g} (now {now:g}) keeps more KV free for requests that run.",
        ("--schedule-conservativeness", f"{more:g}"),
    )


def larger_pool(run: Run) -> Mend:
    """Against a pool that is too small for what comes."""
    tokens = run.number("max_total_tokens")
    now = "" if tokens is None else f" (now {count(int(tokens))})"
    return Mend(f"A larger KV pool mends it: --max-total-tokens{now}, if the memory allows.")


def _chunks_that_mix(run: Run) -> Mend:
    chunk = better_chunk(run)
    if chunk is not None and chunk.option is not None:
        size = " ".join(chunk.option)
        return Mend(f"{size} cuts prompts and lets decodes ride along in every chunk.", chunk.option)
    return Mend(
        "--enable-mixed-chunk with --chunked-prefill-size lets decodes ride along in every chunk; "
        "chunkscope advise tells the size."
    )
