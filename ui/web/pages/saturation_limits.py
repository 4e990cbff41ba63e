"""The sliders of the Saturation page: what a person accepts, and how many decodes ride along."""

from dash import dcc, html

from ui.web.attributes import aria
from ui.web.limit_query import DECODES, LIMITS, Wanted, step_of, steps, words_of
from ui.web.metric_heads import named

__all__ = ["SLIDERS", "limit_sliders", "slider_steps", "texts_of"]

SLIDERS = (*LIMITS, DECODES)
_LABELS = {
    "itl_max": ("longest wait", "longest_wait"),
    "itl_p99": ("ITL p99", "price_itl_p99"),
    "ttft_p99": ("TTFT p99", "ttft_p99"),
    DECODES: ("decodes", "riding"),
}


def limit_sliders(wanted: Wanted) -> html.Div:
    """A slider for each limit, at the stop nearest to what is wanted; the page's script writes the words."""
    return html.Div(
        [_slider(key, wanted) for key in SLIDERS],
        className="limits",
        role="group",
        **aria(label="Limits, and decodes riding along"),
    )


def slider_steps() -> dict[str, list[list[str]]]:
    """By slider its stops: as the address has them, and in words."""
    return {key: [[step.text, step.words] for step in steps(key)] for key in SLIDERS}


def texts_of(wanted: Wanted) -> dict[str, str]:
    """What is wanted as the address writes it, exactly."""
    given = {key: getattr(wanted.limits, field) for key, field in LIMITS.items()}
    texts = {key: f"{seconds:.9f}s" for key, seconds in given.items() if seconds is not None}
    return texts if wanted.decodes is None else {**texts, DECODES: str(wanted.decodes)}


def _slider(key: str, wanted: Wanted) -> html.Div:
    label, entry = _LABELS[key]
    stops, at = steps(key), step_of(key, wanted)
    name = f"saturation-{key.replace('_', '-')}"
    return html.Div(
        [
            html.Label(label, htmlFor=name, **named(entry)),
            html.Output(words_of(key, wanted), id=f"{name}-words", htmlFor=name),
            dcc.Input(id=name, type="range", min=0, max=len(stops) - 1, step=1, value=at),
        ],
        className="limit",
    )
