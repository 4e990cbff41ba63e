"""The palette as CSS custom properties: --cs-page, --cs-prefill, ..., for each theme."""

from dataclasses import asdict

from ui.palette import DARK, FILLS, LIGHT

__all__ = ["theme_css"]

_FONTS = {
    "sans": 'system-ui, -apple-system, "Segoe UI", Inter, "Noto Sans", sans-serif',
    "mono": 'ui-monospace, "DejaVu Sans Mono", monospace',
}


def theme_css() -> str:
    """Light on the root, dark where the root's data-theme says so."""
    shared = {**_FONTS, **FILLS}
    return "\n".join(
        (
            _rule(":root", {**shared, **asdict(LIGHT), "color-scheme": "light"}),
            _rule(':root[data-theme="dark"]', {**asdict(DARK), "color-scheme": "dark"}),
        )
    )


def _rule(selector: str, values: dict[str, str]) -> str:
    lines = [f"  {_property(name)}: {value};" for name, value in values.items()]
    return "\n".join((f"{selector} {{", *lines, "}"))


def _property(name: str) -> str:
    return name if name == "color-scheme" else f"--cs-{name.replace('_', '-')}"
