"""Heads of tables and labels of numbers that say where docs/metrics.md defines what stands under them."""

from typing import Any

from dash import html

from ui.metric_entries import explained
from ui.web.attributes import data

__all__ = ["head", "name_head", "named"]


def named(key: str) -> dict[str, Any]:
    """Attributes of an element with a number: its sentence and entry, as tooltip and description."""
    return {"title": explained(key), **data(metric=key)}


def head(key: str, text: Any, **more: Any) -> html.Th:
    """The head of a column of numbers."""
    return html.Th(text, scope="col", **named(key), **more)


def name_head(text: str) -> html.Th:
    """The head of a column that names what its row is of, and holds no number."""
    return html.Th(text, scope="col", className="names")
