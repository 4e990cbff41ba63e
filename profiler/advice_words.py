"""What advice means, in words chosen from its numbers: what to take first, then why."""

from dataclasses import replace

from profiler.advice import Advice
from profiler.advice_basis import basis
from profiler.advice_choice import NO_LIMITS, VALUES, Binding, pays
from profiler.advice_names import LIMIT_WORDS, limit_words, margin_words, option_words, point_words
from profiler.price_rows import Options, PriceRow
from profiler.wording import count, duration, tokens

__all__ = ["LIMIT_WORDS", "answer", "basis", "option_words", "reasons"]

NONE_LOST = 0.005  # a share that rounds to 0 %


def answer(advice: Advice) -> str:
    """What to take, or which limit stands in the way."""
    row = advice.choice.row
    if row is not None:
        return f"Take {' '.join(row.options.arguments())}."
    bindings = advice.choice.bindings
    names = " and ".join(f"{LIMIT_WORDS[b.limit]} {limit_words(b.limit_s)}" for b in bindings)
    if bindings[0].alone:
        return f"No option meets {names}: {'; '.join(_alone(advice, binding) for binding in bindings)}."
    return f"No option meets {names} together: {'; '.join(map(_together, bindings))}."


def reasons(advice: Advice) -> list[str]:
    """Why, a sentence or two each: the chunk size, the longest wait, the first token, the limits."""
    row = advice.choice.row
    if row is None:
        free = advice.choose(NO_LIMITS).row
        return [] if free is None else [f"Without limits it is {' '.join(free.options.arguments())}."]
    return [_chunk(advice, row), _wait(advice, row), _first_token(advice, row), *_limits(advice, row)]


def _chunk(advice: Advice, row: PriceRow) -> str:
    chunk, interval = row.options.chunk_tokens, advice.interval()
    at = point_words(advice)
    if chunk is None or interval is None:
        return (
            f"Whole prompts lose {_lost(row)} of a long prompt's best throughput; forwards saturate at {at}."
        )
    if chunk == advice.enough_tokens:
        page = advice.config.page_size
        rounded = (
            f", in whole pages of {page} a chunk of {count(chunk)}" if chunk != advice.point.tokens else ""
        )
        return f"Forwards saturate at {at}: 95 % of the best prefill throughput{rounded}."
    low, high = interval
    others = f"; {count(low)} to {tokens(high)} would do, too" if low < high else ""
    lost = f"It loses {_lost(row)} of a long prompt's best throughput{others}."
    return f"{lost} Forwards saturate at {at}{_dearer(advice, row)}."


def _dearer(advice: Advice, row: PriceRow) -> str:
    """Why a smaller chunk that fills a forward as well is not taken, where its policy costs too much."""
    like = replace(row.options, chunk_tokens=advice.enough_tokens)
    enough, plain = _row(advice, like), _row(advice, Options(advice.enough_tokens))
    smaller = row.options.chunk_tokens is not None and row.options.chunk_tokens > advice.enough_tokens
    if not smaller or enough is None or plain is None or enough not in advice.choice.keeping:
        return ""
    if not pays(row, advice.rows) or pays(enough, advice.rows):
        return ""
    if not enough.ttft_long_s or not plain.ttft_long_s or enough.ttft_long_s <= plain.ttft_long_s:
        return ""
    name = "mixing" if row.options.mixed else "an interval"
    later = enough.ttft_long_s / plain.ttft_long_s - 1
    return (
        f", but in such chunks {name} makes the longest prompt's first token {later * 100:.0f} % later than "
        "prefill first"
    )


def _wait(advice: Advice, row: PriceRow) -> str:
    if row.longest_wait_s is None:
        return "No request gives two tokens, so none waits for one."
    options = row.options
    others = [
        f"{words} {duration(other.longest_wait_s)}"
        for words, same in (
            ("prefill first in such chunks", Options(options.chunk_tokens)),
            ("whole prompts", Options(None)),
        )
        if same != options and (other := _row(advice, same)) is not None and other.longest_wait_s is not None
    ]
    where = " (one mixed forward)" if options.mixed else ""
    against = f"; {', '.join(others)}" if others else ""
    return f"Longest decode wait {duration(row.longest_wait_s)}{where}{against}."


def _first_token(advice: Advice, row: PriceRow) -> str:
    if row.ttft_long_s is None:
        return "The longest prompt gives no token."
    later = row.against_whole
    against = ""
    if row.options.chunk_tokens is not None and later is not None:
        against = f", {abs(later) * 100:.0f} % {'later' if later >= 0 else 'sooner'} than whole"
        against = ", as soon as whole" if abs(later) < NONE_LOST else against
    prompt = tokens(advice.workload.longest_prompt)
    return f"The longest prompt, {prompt}, has its first token after {duration(row.ttft_long_s)}{against}."


def _limits(advice: Advice, row: PriceRow) -> list[str]:
    told = []
    for name, words in LIMIT_WORDS.items():
        limit, value = getattr(advice.choice.limits, name), getattr(row, VALUES[name])
        if limit is not None and value is not None:
            margin = advice.margins.of(row, name)
            raised = f", {duration(value * (1 + margin))}{margin_words(margin)}" if margin else ""
            told.append(f"{words} {duration(value)}{raised}: within {limit_words(limit)}.")
    return told


def _alone(advice: Advice, binding: Binding) -> str:
    if advice.decodes_break(binding):
        decode_s, margin = binding.best.decode_forward_s or 0.0, advice.margins.decode
        return f"a decode forward alone takes {duration(decode_s * (1 + margin))}{margin_words(margin)}"
    return f"the least {LIMIT_WORDS[binding.limit]} is {_best(advice, binding)}"


def _best(advice: Advice, binding: Binding) -> str:
    margin = advice.margins.of(binding.best, binding.limit)
    return f"{duration(binding.best_s)}{margin_words(margin)}, of {option_words(binding.best.options)}"


def _together(binding: Binding) -> str:
    words, best = LIMIT_WORDS[binding.limit], option_words(binding.best.options)
    return f"what keeps the rest has {words} {duration(binding.best_s)} or more ({best})"


def _row(advice: Advice, options: Options) -> PriceRow | None:
    return next((row for row in advice.rows if row.options == options), None)


def _lost(row: PriceRow) -> str:
    lost = 1 - (row.plateau_share or 0.0)
    return "nothing" if lost < NONE_LOST else f"{lost * 100:.0f} %"
