"""What a test reads of the components that a page is made of."""

from collections.abc import Iterator, Sequence
from typing import Any

from dash import html
from dash.development.base_component import Component

__all__ = ["data_of", "links", "rows", "walk", "words"]


def walk(parts: object) -> Iterator[Any]:
    """Every component, outer ones first."""
    if isinstance(parts, Component):
        yield parts
        yield from walk(getattr(parts, "children", None))
    elif isinstance(parts, Sequence) and not isinstance(parts, str):
        for part in parts:
            yield from walk(part)


def words(parts: object) -> str:
    """All text in order, a space between pieces."""
    if isinstance(parts, str | int):
        return str(parts)
    inside = getattr(parts, "children", None) if isinstance(parts, Component) else parts
    if isinstance(inside, Sequence) and not isinstance(inside, str):
        return " ".join(words(child) for child in inside)
    return "" if inside is None else words(inside)


def rows(parts: object) -> list[Any]:
    """Rows of all tables but those of heads."""
    return [part for part in walk(parts) if isinstance(part, html.Tr) and hasattr(part, "data-ns")]


def links(parts: object) -> list[Any]:
    """Links that lead to an instant."""
    return [part for part in walk(parts) if hasattr(part, "data-instant")]


def data_of(component: object, name: str) -> Any:
    """A data attribute."""
    return getattr(component, f"data-{name}")
