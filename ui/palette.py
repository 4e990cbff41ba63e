"""The one set of colours of both UIs, by meaning: Okabe-Ito fills, text colours by theme."""

from dataclasses import dataclass

__all__ = ["DARK", "FILLS", "LIGHT", "THEMES", "Theme"]

FILLS = {
    "prefill": "#0072B2",
    "prefill_alternate": "#005A8E",
    "decode": "#009E73",
    "stall_prefill": "#D55E00",
    "stall_mixed": "#E69F00",
    "stall_mixed_dots": "#9A6A00",
    "kv_private": "#CC79A7",
    "host": "#8A939B",
    "kv_locked": "#56B4E9",
}
"""The same in both themes; each is drawn with a pattern or a glyph, never as colour alone."""


@dataclass(frozen=True, slots=True)
class Theme:
    """Surfaces and text of one theme; each text colour reaches 5:1 on page, panel and selected row."""

    page: str
    panel: str
    line: str
    hairline: str
    selected: str
    selection_edge: str
    text: str
    muted: str
    accent: str
    prefill_text: str
    decode_text: str
    stall_prefill_text: str
    stall_mixed_text: str
    kv_private_text: str
    kv_locked_text: str
    kv_locked: str


LIGHT = Theme(
    page="#FFFFFF",
    panel="#F5F7F8",
    line="#D5DADF",
    hairline="#E7EAED",
    selected="#EAF3F9",
    selection_edge="#14181C",
    text="#14181C",
    muted="#4C5660",
    accent="#005E94",
    prefill_text="#005E94",
    decode_text="#00694D",
    stall_prefill_text="#A64700",
    stall_mixed_text="#7A5400",
    kv_private_text="#8F3B68",
    kv_locked_text="#1F6E9C",
    kv_locked="#56B4E9",
)

DARK = Theme(
    page="#0F1316",
    panel="#171C20",
    line="#333C43",
    hairline="#252C32",
    selected="#18303E",
    selection_edge="#E9EDF0",
    text="#E9EDF0",
    muted="#A7B1BA",
    accent="#7CC4EE",
    prefill_text="#7CC4EE",
    decode_text="#3DCFA2",
    stall_prefill_text="#FF9C5E",
    stall_mixed_text="#F2B733",
    kv_private_text="#E7A5C8",
    kv_locked_text="#8CCBF0",
    kv_locked="#3B80A8",
)

THEMES = {"light": LIGHT, "dark": DARK}
