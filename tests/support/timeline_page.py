"""A page with nothing but the canvas timeline, which tells what the timeline told it."""

import json
import threading
from collections.abc import Sequence
from pathlib import Path

from flask import Flask, Response, request, send_from_directory

import ui.web
from profiler.timeline.timeline import Timeline
from ui.web.theme_css import theme_css
from ui.web.tiles import register_tiles

__all__ = ["timeline_page"]

ASSETS = Path(ui.web.__file__).parent / "assets"
PAGE = """<!doctype html>
<html lang="en" data-theme="{theme}">
<meta charset="utf-8"><title>timeline</title><link rel="icon" href="data:,">
<style>{style} body {{ margin: 12px; width: 1108px; background: var(--cs-page); }}</style>
<link rel="stylesheet" href="assets/timeline.css">
{scripts}
<div id="timeline"></div>
<script>
  const seen = {{ changes: [], picks: [] }};
  const view = Chunkscope.timeline.create(document.getElementById("timeline"), {{
    runs: {runs}, base: "/api/timeline",
    onChange: (state) => seen.changes.push(state), onPick: (item) => seen.picks.push(item),
  }});
</script>
"""


def timeline_page(timelines: Sequence[Timeline], titles: Sequence[str]) -> Flask:
    """A server of the page; its query may name the theme."""
    server = Flask(__name__, static_folder=None)
    register_tiles(server, timelines, threading.Lock())
    runs = json.dumps([_run(*each) for each in zip(range(len(titles)), titles, timelines, strict=True)])
    names = [path.relative_to(ASSETS).as_posix() for path in sorted((ASSETS / "timeline").rglob("*.js"))]
    scripts = "\n".join(f'<script src="assets/{name}"></script>' for name in names)

    @server.get("/")
    def page() -> str:
        theme = "dark" if request.args.get("theme") == "dark" else "light"
        return PAGE.format(theme=theme, style=theme_css(), scripts=scripts, runs=runs.replace("<", "\\u003c"))

    @server.get("/assets/<path:name>")
    def asset(name: str) -> Response:
        return send_from_directory(ASSETS, name)

    return server


def _run(key: int, title: str, timeline: Timeline) -> dict[str, object]:
    return {
        "key": key,
        "title": title,
        "options": f"--chunked-prefill-size {timeline.trace.meta['engine']['chunked_prefill_size']}",
        "startNs": timeline.start_ns,
        "endNs": timeline.end_ns,
        "budgetTokens": timeline.chunk_budget_tokens,
        "maxTokens": timeline.largest_forward_tokens,
    }
