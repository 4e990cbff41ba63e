"""What a saturation report means, in words chosen from its numbers: the answer, then its price."""

from collections.abc import Sequence

from profiler.saturation_curve import Dip
from profiler.saturation_report import Fitted, SaturationReport
from profiler.wording import count, duration

__all__ = ["answer", "basis", "price", "sweep_command"]

_NONE_LOST = 0.005  # a share of throughput that rounds to 0 %


def answer(report: SaturationReport, chunks: Sequence[int] = ()) -> str:
    """One or two sentences: how many tokens fill a forward, and what the chunk sizes in use give up."""
    found = report.found
    if found.status == "ok" and found.tokens is not None:
        fits = [fit for size in chunks if (fit := report.fitted(size)) is not None]
        said = " ".join(_of_chunk(fit) for fit in fits) or _of_point(report.fitted(found.tokens))
        return f"About {_tokens(found.tokens)} fill one forward. {said}"
    if found.status == "not_saturated":
        largest = report.sizes["tokens"][-1]
        return f"Up to {_tokens(largest)}, forwards do not saturate: throughput still rises."
    if not found.num_points:
        return "No saturation point: no forward here computes one prompt without a prefix."
    sizes = f"{found.num_sizes} size" + ("" if found.num_sizes == 1 else "s")
    return f"No saturation point: {sizes} of forwards, 8 are needed."


def price(report: SaturationReport, *, simulated: bool = False) -> str:
    """What stands behind the answer: its interval and what larger forwards cost, or what would give one.

    Of a `simulated` trace no sweep would: it measures the machine it runs on.
    """
    found = report.found
    share = f"{found.q * 100:g} %"
    if found.status == "ok" and found.tokens is not None:
        assert found.low is not None
        assert found.high is not None
        return (
            f"Throughput reaches {share} of its best at {_tokens(found.tokens)} "
            f"[{count(found.low)}, {count(found.high)}]. {_beyond(report)}"
        )
    if simulated:
        more = "Longer" if found.status == "not_saturated" else "More sizes of"
        return (
            f"{more} prompts, each whole in a forward of its own, would tell. "
            "A sweep would not: it measures this machine."
        )
    if found.status == "not_saturated":
        return "A sweep of larger forwards would tell."
    return "A sweep measures them."


def sweep_command(report: SaturationReport, model: str) -> str | None:
    """The sweep that would find the point; None where it is known. `model` is as a shell takes it."""
    if report.found.status == "ok":
        return None
    sizes = report.sizes["tokens"]
    further = f" --tokens {sizes[0]}:{4 * sizes[-1]}" if report.found.status == "not_saturated" else ""
    return f"chunkscope sweep --model {model}{further} -o sweep.chunkscope"


def basis(report: SaturationReport) -> list[tuple[str, str]]:
    """What the point rests on: a name and what is known of it, a line each."""
    found = report.found
    lines = [("layout", found.layout)]
    if report.sizes.height:
        repeats = report.sizes["forwards"].to_list()
        fewest, most = min(repeats), max(repeats)
        each = count(most) if fewest == most else f"{count(fewest)} to {count(most)}"
        low, high = report.sizes["tokens"][0], report.sizes["tokens"][-1]
        lines.append(("points", f"{count(found.num_sizes)} sizes × {each}, {count(low)} to {_tokens(high)}"))
    if found.fit_kind is not None and report.residual is not None:
        kind = {
            "parametric": "fixed cost + smooth maximum of memory and compute + attention",
            "smoother": "concave rise to a peak, never rising after it",
        }[found.fit_kind]
        lines.append(("fit", f"{found.fit_kind}: {kind}; residual {report.residual * 100:.1f} %"))
    if found.first_reach is not None:
        below = "none" if found.last_below is None else count(found.last_below)
        lines.append(("raw", f"first size at the line {count(found.first_reach)}, last below it {below}"))
    if found.plateau is not None:
        best, *ends = (
            f"{rate:,.0f}" for rate in (found.plateau.tokens_per_s, found.plateau.low, found.plateau.high)
        )
        lines.append(("plateau", f"{best} tokens/s [{', '.join(ends)}]"))
    if found.dips:
        lines.append(("dips", _dips(found.dips)))
    if report.sizes.height:
        lines.append(("not covered", f"more than {_tokens(report.sizes['tokens'][-1])}; prefixes; batches"))
    return lines


def _tokens(number: int) -> str:
    return f"{count(number)} token{'' if number == 1 else 's'}"


def _dips(dips: Sequence[Dip]) -> str:
    spans = [count(dip.first) + ("" if dip.first == dip.last else f" to {count(dip.last)}") for dip in dips]
    deepest = max(dip.depth for dip in dips)
    return f"at {', '.join(spans)} tokens, by up to {deepest * 100:.0f} %: kept, do not move the point"


def _of_chunk(fit: Fitted) -> str:
    lost = 1 - fit.share
    gives_up = "gives up nothing" if lost < _NONE_LOST else f"gives up {lost * 100:.0f} %"
    return f"A chunk of {count(fit.tokens)} {gives_up} and takes {duration(fit.time_s)}."


def _of_point(fit: Fitted | None) -> str:
    assert fit is not None
    return f"It then takes {duration(fit.time_s)}."


def _beyond(report: SaturationReport) -> str:
    """What the largest forward measured costs against the point."""
    assert report.found.tokens is not None
    point = report.fitted(report.found.tokens)
    largest = report.fitted(int(report.sizes["tokens"][-1]))
    assert point is not None
    assert largest is not None
    gain = largest.tokens_per_s / point.tokens_per_s - 1
    takes = f"takes {duration(largest.time_s)} instead of {duration(point.time_s)}"
    if abs(gain) < _NONE_LOST:
        return f"One of {_tokens(largest.tokens)} gives no more and {takes}."
    change = f"gives {abs(gain) * 100:.0f} % {'more' if gain > 0 else 'less'} throughput"
    return f"One of {_tokens(largest.tokens)} {change} and {takes}."
