"""Serves the application on this machine until Ctrl-C, and opens it in a browser where there is one."""

import logging
import os
import socket
import sys
import webbrowser
from collections.abc import Sequence

import dash
from werkzeug.serving import make_server

from ui.errors import UserError

__all__ = ["bind", "has_display", "serve"]

_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
_FIRST_PORT, _LAST_PORT = 8050, 8069


def has_display() -> bool:
    """Whether a browser can show itself; on Linux a terminal cannot, unless $BROWSER names one that can."""
    if sys.platform in ("win32", "darwin"):
        return True
    return any(os.environ.get(name) for name in _DISPLAYS)


def bind(host: str, port: int | None) -> socket.socket:
    """A listening socket: on `port`, where 0 lets the system choose, or on the first free one from 8050 on.

    UserError if there is none.
    """
    if not host.strip():  # which the system would take for every address of the machine
        raise UserError("--host is empty: give an address, as in 127.0.0.1")
    ports: Sequence[int] = range(_FIRST_PORT, _LAST_PORT + 1) if port is None else (port,)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    problem = ""
    for candidate in ports:
        try:
            return socket.create_server((host, candidate), family=family)
        except (OSError, OverflowError) as error:
            number = getattr(error, "errno", None)
            problem = os.strerror(number) if number and number > 0 else str(error)
    tried = f"port {port}" if port is not None else f"ports {_FIRST_PORT} to {_LAST_PORT}"
    raise UserError(f"{host}, {tried}: {problem}: give another --host or --port")


def serve(app: dash.Dash, listener: socket.socket, *, url: str, open_browser: bool) -> None:
    """Answer requests, several at a time, until interrupted."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # no line for each request
    host, port = listener.getsockname()[:2]
    server = make_server(host, port, app.server, threaded=True, fd=listener.fileno())
    if open_browser:
        webbrowser.open(url)
    try:
        server.serve_forever()
    finally:
        server.server_close()
