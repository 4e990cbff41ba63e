"""What would mend a finding, with a value for the option where the trace gives one."""

from engine.cache.allocator import ceil_page
from profiler.findings.run import Run
from profiler.ledger.parts import PartKind
from profiler.ledger.why import NO_KV, PROMPTS, RIDING, Mend, mend
from profiler.price_rows import Options
from profiler.wording import count

__all__ = ["better_chunk", "for_cause", "gather_or_ride", "larger_pool", "let_decodes_ride", "more_reserve"]

CONSERVATIVENESS_STEP = 1.3  # SGLang's advice where requests are retracted often


def for_cause(run: Run, cause: PartKind | None) -> Mend | None:
    """Against what most of a gap went to; None where no option is known."""
    if cause in PROMPTS:
        return let_decodes_ride(run)
    if cause in RIDING and run.point is not None and run.point.tokens < (run.chunk_tokens or 0):
        return better_chunk(run)
    return more_reserve(run) if cause in NO_KV else mend(cause, run.trace.meta)


def let_decodes_ride(run: Run, rounds: int | None = None) -> Mend | None:
    """Against decodes that wait for prefill, in so many forwards where that is known."""
    chunk, point = run.chunk_tokens, run.point if rounds == 1 else None
    apart = not run.flag("enable_mixed_chunk")
    if apart and point is not None and chunk is not None and point.tokens < chunk:
        return better_chunk(run)
    told = mend(PartKind.OTHERS_PREFILL, run.trace.meta, rounds=rounds)
    if told is None or run.number("chunked_prefill_size") != -1 or run.point is None:
        return told
    return Mend(told.sentence, _at_the_point(run, run.point.tokens))


def gather_or_ride(run: Run) -> Mend | None:
    """Against prefills of few tokens between decodes."""
    told = let_decodes_ride(run)
    if told is None or run.flag("enable_mixed_chunk") or run.number("prefill_decode_interval") != 0:
        return told
    gathers = "--prefill-decode-interval lets more of them gather for one forward."
    return Mend(f"{told.sentence} {gathers}", told.option)


def better_chunk(run: Run) -> Mend | None:
    """The saturation point as a chunk size, with mixing; None where it is not known.

    Only together: smaller chunks alone do not shorten a silence, since prefill goes first all the same.
    """
    if run.point is None:
        return None
    option = _at_the_point(run, run.point.tokens)
    if run.flag("enable_mixed_chunk"):
        return Mend(f"--chunked-prefill-size {option[1]} fits the forwards of this run better.", option)
    return Mend(
        f"--chunked-prefill-size {option[1]} fills a forward; with --enable-mixed-chunk decodes wait for one "
        "such chunk at a time. A chunk size alone does not shorten their silence.",
        option,
    )


def more_reserve(run: Run) -> Mend:
    """Against requests that give their KV back."""
    now = run.number("schedule_conservativeness") or 1.0
    more = f"{1.0 if now < 1.0 else round(now * CONSERVATIVENESS_STEP, 2):g}"
    return Mend(
        f"--schedule-conservativeness {more} (now {now:g}) keeps more KV free for requests that run.",
        ("--schedule-conservativeness", more),
    )


def larger_pool(run: Run) -> Mend:
    """Against a pool that is too small for what comes."""
    tokens = run.number("max_total_tokens")
    now = "" if tokens is None else f" (now {count(int(tokens))})"
    sentence = f"A larger KV pool holds more: --max-total-tokens{now}, if the memory allows."
    return Mend(sentence, ("--max-total-tokens",))


def _at_the_point(run: Run, tokens: int) -> tuple[str, ...]:
    interval = int(run.number("prefill_decode_interval") or 0)
    return Options(ceil_page(tokens, run.page_size), mixed=True, interval=interval).arguments()
