"""What a saturation report means, in words chosen from its numbers: the answer, then its price."""

from collections.abc import Sequence

from profiler.saturation_curve import Dip
from profiler.saturation_report import Fitted, SaturationReport
from profiler.wording import count, duration, tokens

__all__ = ["answer", "basis", "price", "sweep_command"]

_NONE_LOST = 0.005  # a share of throughput that rounds to 0 %


def answer(report: SaturationReport, chunks: Sequence[int] = ()) -> str:
    """How many tokens fill a forward, and what the chunk sizes in use take or give up, a sentence each.

    Of a chunk that reaches the point nothing is said to be given up: that larger forwards without a prefix
    have less throughput is attention's work, of which a prompt has as much however it is cut.
    """
    found = report.found
    if found.status == "ok" and found.tokens is not None:
        fits = [fit for size in chunks if (fit := report.fitted(size)) is not None]
        said = [_of_chunk(fit, found.tokens) for fit in fits] or [_of_point(report.fitted(found.tokens))]
        return f"About {tokens(found.tokens)} fill one forward. {' '.join(said)}"
    if found.status == "not_saturated":
        largest = report.sizes["tokens"][-1]
        return f"Up to {tokens(largest)}, forwards do not saturate: throughput still rises."
    if not found.num_points:
        return "No saturation point: no forward here computes one prompt without a prefix."
    return f"No saturation point: {_sizes(found.num_sizes)} of forwards, 8 are needed."


def price(report: SaturationReport, *, simulated: bool = False) -> str:
    """What stands behind the answer: its interval and what larger forwards cost, or what would give one.

    Of a `simulated` trace that is a simulated sweep: one that measures runs on this machine.
    """
    found = report.found
    share = f"{found.q * 100:g} %"
    if found.status == "ok" and found.tokens is not None:
        assert found.low is not None
        assert found.high is not None
        return (
            f"Throughput reaches {share} of its best at {tokens(found.tokens)} "
            f"[{count(found.low)}, {count(found.high)}]. {_beyond(report)}"
        )
    sweep = "A simulated sweep" if simulated else "A sweep"
    if found.status == "not_saturated":
        return f"{sweep} of larger forwards would tell."
    return f"{sweep} measures them."


def sweep_command(report: SaturationReport, model: str, device: str = "") -> str | None:
    """The sweep that would find the point; None where it is known.

    `model` is as a shell takes it, and so is `device`: the options that name a simulated device, as in
    "--executor simulated --gpu H200".
    """
    if report.found.status == "ok":
        return None
    sizes = report.sizes["tokens"]
    further = f" --tokens {sizes[0]}:{4 * sizes[-1]}" if report.found.status == "not_saturated" else ""
    on = f" {device}" if device else ""
    return f"chunkscope sweep --model {model}{on}{further} -o sweep.chunkscope"


def basis(report: SaturationReport) -> list[tuple[str, str]]:
    """What the point rests on: a name and what is known of it, a line each."""
    found = report.found
    lines = [("layout", found.layout)]
    if report.sizes.height:
        repeats = report.sizes["forwards"].to_list()
        fewest, most = min(repeats), max(repeats)
        each = count(most) if fewest == most else f"{count(fewest)} to {count(most)}"
        sizes, low, high = _sizes(found.num_sizes), report.sizes["tokens"][0], report.sizes["tokens"][-1]
        span = tokens(high) if low == high else f"{count(low)} to {tokens(high)}"
        lines.append(("points", f"{sizes} × {each}, {span}"))
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
        lines.append(("not covered", f"more than {tokens(report.sizes['tokens'][-1])}; prefixes; batches"))
    return lines


def _sizes(number: int) -> str:
    return f"{count(number)} size{'' if number == 1 else 's'}"


def _dips(dips: Sequence[Dip]) -> str:
    spans = [count(dip.first) + ("" if dip.first == dip.last else f" to {count(dip.last)}") for dip in dips]
    deepest = max(dip.depth for dip in dips)
    return f"at {', '.join(spans)} tokens, by up to {deepest * 100:.0f} %: kept, do not move the point"


def _of_chunk(fit: Fitted, point: int) -> str:
    takes = f"takes {duration(fit.time_s)}."
    if fit.tokens < point:
        return f"A chunk of {count(fit.tokens)} gives up {(1 - fit.share) * 100:.0f} % and {takes}"
    return f"A chunk of {count(fit.tokens)} {'is beyond it and ' if fit.tokens > point else ''}{takes}"


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
    percent = f"{abs(gain) * 100:.0f} %"
    change = "no more" if abs(gain) < _NONE_LOST else f"{percent} {'more' if gain > 0 else 'less'}"
    return f"One forward of {tokens(largest.tokens)} without a prefix has {change} throughput and {takes}."
