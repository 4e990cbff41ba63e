"""What the server lets in and out: known hosts and paths only, and nothing that leaves this machine."""

import html
from collections.abc import Collection

from flask import Flask, Response, jsonify, request

from traces.errors import TraceError
from ui.web.theme_css import theme_css
from ui.words import name

__all__ = ["LOOPBACK", "guard"]

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
_API = "/api/"
_SERVED = ("/_dash-", "/assets/", "/_favicon.ico", "/_reload-hash")
_CALLBACKS = "/_dash-update-component"
_CATCH_ALL = "/<path:path>"  # Dash's route for whatever no other route takes
_SHOWN = 80  # characters of an unknown path that its page repeats
_POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",  # Dash starts its renderer by an inline script
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "worker-src 'self' blob:",
        "frame-ancestors 'none'",
    )
)


def guard(server: Flask, pages: Collection[str], hosts: Collection[str] | None) -> None:
    """Refuse unknown paths, and names of this machine other than `hosts` where these are given.

    A page of the internet could otherwise have its own name point to this machine and read the traces. A
    trace that turns out unreadable is said in one line.
    """

    @server.before_request
    def refuse() -> tuple[Response | str, int] | None:
        if hosts is not None and request.host.rpartition(":")[0] not in hosts and request.host not in hosts:
            return f"This server answers to {', '.join(sorted(hosts))}: open it by one of these names.\n", 403
        path = request.path
        if path.startswith(_API):
            return None if request.endpoint != _CATCH_ALL else (_missing_answer(path), 404)
        if (
            path == _CALLBACKS
            and request.method == "POST"
            and not _is_callback(request.get_json(silent=True))
        ):
            return jsonify({"error": "no request of these pages: it names no output"}), 400
        if path in pages or path.startswith(_SERVED):
            return None
        return _missing_page(path, pages), 404

    @server.errorhandler(TraceError)
    def unreadable(error: TraceError) -> tuple[Response, int]:
        return jsonify({"error": str(error)}), 500

    @server.after_request
    def keep_in(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = _POLICY
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        return response


def _is_callback(body: object) -> bool:
    return isinstance(body, dict) and all(name in body for name in ("output", "outputs", "inputs"))


def _clipped(path: str) -> str:
    shown = name(path[:_SHOWN])
    return shown if len(path) <= _SHOWN else f"{shown}…"


def _missing_answer(path: str) -> Response:
    return jsonify({"error": f"nothing at {_clipped(path)}: see the page's own requests"})


def _missing_page(path: str, pages: Collection[str]) -> str:
    links = ", ".join(f'<a href="{page}">{page}</a>' for page in pages)
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>No such page</title>"
        f"<style>{theme_css()} body {{ font: 15px/1.5 var(--cs-sans); margin: 48px; }}</style></head>"
        f"<body><h1>There is no page {html.escape(_clipped(path))}</h1><p>There are: {links}</p></body>"
        "</html>"
    )
