"""`PrefillInterval`: some decode rounds between two prefill forwards, so that decoding is not starved."""

__all__ = ["PrefillInterval"]


class PrefillInterval:
    """Counts down `--prefill-decode-interval` rounds after each forward with prefill rows.

    Nothing is deferred while fewer than `min_running` requests decode, and never while none does: SGLang
    idles through the interval there.
    """

    def __init__(self, rounds: int, min_running: int) -> None:
        self._rounds = rounds
        self._min_running = max(1, min_running)
        self._remaining = 0

    def arm(self) -> None:
        """Start anew, after a forward with prefill rows was planned."""
        self._remaining = self._rounds

    def defers(self, running: int) -> bool:
        """Whether this round must not prefill; to be asked once a round."""
        if running < self._min_running:
            self._remaining = 0
        if self._remaining == 0:
            return False
        self._remaining -= 1
        return True
