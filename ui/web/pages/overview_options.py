"""Options in sentences set as code, so that none is broken at its dashes."""

import re

from dash import html
from dash.development.base_component import Component

__all__ = ["with_options"]

_OPTION = re.compile(r"(--[a-z][a-z0-9-]*(?: -?[0-9]+)?)")


def with_options(text: str) -> list[Component | str]:
    """The text in pieces, each option of the command line as code, with its number where it has one."""
    pieces = _OPTION.split(text)
    return [html.Code(piece) if at % 2 else piece for at, piece in enumerate(pieces) if piece]
