"""Phases in processes of their own: one that crashes or hangs takes no other's results along."""

import multiprocessing
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

__all__ = ["run_phase"]

GRACE_S = 5.0  # after its time is up, for what it is in the middle of


def run_phase(work: Callable[[], Any], seconds: float) -> dict[str, Any]:
    """`{"result": ..., "seconds": ...}`, or `{"error": ...}` for a phase that failed or took too long.

    Forked, so that torch is loaded once; the caller must not have used a CUDA device.
    """
    start_s = time.monotonic()
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(work, sending))
    process.start()
    sending.close()
    told: dict[str, Any] = {"error": f"ended after {seconds:.0f} s"}
    try:
        if receiving.poll(seconds + GRACE_S):
            told = receiving.recv()
    except EOFError:
        process.join()
        told = {"error": f"its process ended with code {process.exitcode}"}
    process.kill()
    process.join()
    return told | {"seconds": round(time.monotonic() - start_s, 1)}


def _send(work: Callable[[], Any], connection: Connection) -> None:
    try:
        told = {"result": work()}
    except Exception:  # whatever it is, it belongs into the results
        traceback.print_exc()
        told = {"error": traceback.format_exc(limit=-3)}
    connection.send(told)
    connection.close()
