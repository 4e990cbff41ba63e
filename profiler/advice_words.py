"""What advice means, in words chosen from its numbers: what to take first, then why and what it rests on."""

from dataclasses import replace

from profiler.advice import Advice
from profiler.advice_choice import NO_LIMITS, VALUES, Binding, pays
from profiler.price_rows import Options, PriceRow
from profiler.wording import count, duration

__all__ = ["LIMIT_WORDS", "answer", "basis", "option_words", "reasons"]

LIMIT_WORDS = {"itl_max_s": "ITL max", "itl_p99_s": "ITL p99", "ttft_p99_s": "TTFT p99"}
"""Names of the fields of `Limits` in tables and sentences."""
NONE_LOST = 0.005  # a share that rounds to 0 %


def option_words(options: Options) -> str:
    """Short enough for a table: whole, 512 prefill first, 512 mixed, 512 interval 1."""
    if options.chunk_tokens is None:
        return "whole prompts"
    policy = (
        "mixed" if options.mixed else f"interval {options.interval}" if options.interval else "prefill first"
    )
    return f"{count(options.chunk_tokens)} {policy}"


def answer(advice: Advice) -> str:
    """What to take, or which limit stands in the way."""
    row = advice.choice.row
    if row is not None:
        return f"Take {' '.join(row.options.arguments())}."
    bindings = advice.choice.bindings
    names = " and ".join(f"{LIMIT_WORDS[b.limit]} {duration(b.limit_s)}" for b in bindings)
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


def basis(advice: Advice) -> list[tuple[str, str]]:
    """What it rests on: a name and what is known of it, a line each."""
    lines = [
        ("workload", _workload(advice)),
        ("waits, TTFT", "simulated: the real scheduler on a virtual clock"),
    ]
    lines.append(("forward times", _cost(advice)))
    lines.append(("point", _point(advice)))
    if advice.basis.model is not None:
        lines.append(("margins", _margins(advice)))
    if advice.memory is not None:
        lines.append(("activations", advice.memory.kind))
    return lines


def _chunk(advice: Advice, row: PriceRow) -> str:
    chunk, interval = row.options.chunk_tokens, advice.interval()
    point = advice.point
    at = f"{_tokens(point.tokens)} [{count(point.low)}, {count(point.high)}]"
    if chunk is None or interval is None:
        return (
            f"Whole prompts lose {_lost(row)} of a long prompt's best throughput; forwards saturate at {at}."
        )
    if chunk == advice.enough_tokens:
        page = advice.config.page_size
        rounded = f", in whole pages of {page} a chunk of {count(chunk)}" if chunk != point.tokens else ""
        return f"Forwards saturate at {at}: 95 % of the best prefill throughput{rounded}."
    low, high = interval
    others = f"; {count(low)} to {_tokens(high)} would do, too" if low < high else ""
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
    return f", but in such chunks {name} makes the longest prompt's first token {later * 100:.0f} % later"


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
    prompt = _tokens(advice.workload.longest_prompt)
    return f"The longest prompt, {prompt}, has its first token after {duration(row.ttft_long_s)}{against}."


def _limits(advice: Advice, row: PriceRow) -> list[str]:
    told = []
    for name, words in LIMIT_WORDS.items():
        limit, value = getattr(advice.choice.limits, name), getattr(row, VALUES[name])
        if limit is not None and value is not None:
            margin = advice.margins.of(row, name)
            raised = (
                f", {duration(value * (1 + margin))} with a margin of {margin * 100:.0f} %" if margin else ""
            )
            told.append(f"{words} {duration(value)}{raised}: within {duration(limit)}.")
    return told


def _alone(advice: Advice, binding: Binding) -> str:
    decode_s = binding.best.decode_forward_s
    if binding.limit != "ttft_p99_s" and decode_s is not None and decode_s > binding.limit_s:
        return f"a decode forward alone takes {duration(decode_s)}"
    return f"the least {LIMIT_WORDS[binding.limit]} is {_best(advice, binding)}"


def _best(advice: Advice, binding: Binding) -> str:
    margin = advice.margins.of(binding.best, binding.limit)
    with_margin = f" with a margin of {margin * 100:.0f} %" if margin else ""
    return f"{duration(binding.best_s)}{with_margin}, of {option_words(binding.best.options)}"


def _together(binding: Binding) -> str:
    words, best = LIMIT_WORDS[binding.limit], option_words(binding.best.options)
    return f"what keeps the rest has {words} {duration(binding.best_s)} or more ({best})"


def _margins(advice: Advice) -> str:
    chunk = (advice.choice.row or advice.rows[0]).options.chunk_tokens
    size = "whole prompts" if chunk is None else f"chunks of {_tokens(chunk)}"
    margins = advice.margins
    one, many = margins.prompts.get(chunk, 0.0), margins.sums.get(chunk, 0.0)
    return (
        f"of {size}, one forward {one * 100:.0f} % and many {many * 100:.0f} %, decode forwards "
        f"{margins.decode * 100:.0f} %: how far measured forwards lie above the fit, and how well it is known"
    )


def _workload(advice: Advice) -> str:
    tried = advice.workload
    number = f"{count(len(tried.requests))} request{'' if len(tried.requests) == 1 else 's'}"
    if tried.kind == "standard":
        decodes = len(tried.requests) - 1
        return (
            f"a standard one, as the trace's requests do not arrive by themselves: while {decodes} requests "
            f"decode, a prompt of {_tokens(tried.longest_prompt)} comes"
        )
    parts = [f"the trace's {number}" if tried.kind == "all" else _stretch(advice, number)]
    if tried.left_out:
        parts.append(f"{count(tried.left_out)} without arrival or prompt length left out")
    if tried.open_ended:
        parts.append(f"{count(tried.open_ended)} that did not end in it end where it does")
    if not tried.shared_prefixes and not advice.config.disable_radix_cache:
        parts.append("no prefix is taken to be shared, as the trace does not tell")
    return "; ".join(parts)


def _stretch(advice: Advice, number: str) -> str:
    first, last = advice.workload.requests[0], advice.workload.requests[-1]
    span = f"{first.arrival_ns / 1e9:,.1f} to {last.arrival_ns / 1e9:,.1f} s"
    return (
        f"{number} of {count(advice.workload.of_requests)}, those that arrive from {span}: of the stretches "
        "that can be tried in time the one with the most prompt tokens"
    )


def _cost(advice: Advice) -> str:
    setting = advice.basis.setting
    if advice.basis.model is None:
        return f"the run's own simulated cost model, made again from meta.json: {setting.label}"
    reach = advice.basis.model.reach
    return (
        f"fitted to {count(advice.basis.num_forwards)} {setting.provenance} forwards of "
        f"{count(reach.tokens[0])} to {_tokens(reach.tokens[1])}, prefixes up to "
        f"{count(reach.prefix_tokens[1])}, up to {count(reach.decode_rows[1])} decode rows; beyond that "
        f"extrapolated: {setting.label}"
    )


def _point(advice: Advice) -> str:
    point = advice.point
    told = f"{_tokens(point.tokens)} [{count(point.low)}, {count(point.high)}]"
    if point.by_points:
        return f"{told}, of {count(point.num_sizes)} sizes of {advice.measured.layout}"
    number, layout = advice.measured.num_sizes, advice.measured.layout
    sizes = f"{count(number)} size{'' if number == 1 else 's'} of {layout}"
    if advice.measured.status == "not_saturated":
        return f"{told}, of the cost model; over the {sizes} throughput still rises"
    return f"{told}, of the cost model; {sizes} {'is' if number == 1 else 'are'} too few to tell it"


def _row(advice: Advice, options: Options) -> PriceRow | None:
    return next((row for row in advice.rows if row.options == options), None)


def _lost(row: PriceRow) -> str:
    lost = 1 - (row.plateau_share or 0.0)
    return "nothing" if lost < NONE_LOST else f"{lost * 100:.0f} %"


def _tokens(number: int) -> str:
    return f"{count(number)} token{'' if number == 1 else 's'}"
