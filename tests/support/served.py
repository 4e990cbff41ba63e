"""A Flask server on a free port of this machine, in a thread of the tests."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from flask import Flask
from werkzeug.serving import make_server


@contextmanager
def served(server: Flask) -> Iterator[str]:
    """Its address, while it answers."""
    running = make_server("127.0.0.1", 0, server, threaded=True)
    running.daemon_threads = True
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{running.server_port}"
    finally:
        running.shutdown()
        thread.join()
        running.server_close()
