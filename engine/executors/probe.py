"""What may watch single forwards more closely than the executor itself does."""

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from engine.batch import ForwardBatch

__all__ = ["NO_PROBE", "ForwardProbe"]


class ForwardProbe(Protocol):
    """Called for every forward; most are let go by at next to no cost."""

    def window(self, batch: ForwardBatch) -> AbstractContextManager[None]:
        """Held around the computing part of a forward, on the thread that computes or enqueues it.

        On a GPU the forward has only been enqueued when the window closes: whoever watches its kernels must
        wait for them. What a window itself takes does not count as the forward's device time.
        """
        ...


class _NoProbe:
    """Watches nothing."""

    def window(self, batch: ForwardBatch) -> AbstractContextManager[None]:
        return _NO_WINDOW


_NO_WINDOW = nullcontext()
NO_PROBE: ForwardProbe = _NoProbe()
"""Lets every forward go by."""
