"""How much of its `max_new_tokens` a running request is expected still to use; SGLang's estimate."""

from collections.abc import Sequence

from engine.request import Request

__all__ = ["NewTokenRatio"]

INITIAL_RATIO = 0.7
MIN_RATIO_FACTOR = 0.14
DECAY_STEPS = 600
RETRACT_DECODE_STEPS = 20


class NewTokenRatio:
    """A ratio in [0, 1]: decays with each decode round, is estimated anew when memory ran out."""

    def __init__(self, schedule_conservativeness: float = 1.0) -> None:
        self.initial = min(INITIAL_RATIO * schedule_conservativeness, 1.0)
        self.minimum = min(self.initial * MIN_RATIO_FACTOR, 1.0)
        self.step = (self.initial - self.minimum) / DECAY_STEPS
        self.current = self.initial

    def decay(self) -> None:
        """After a decode round without retraction."""
        self.current = max(self.current - self.step, self.minimum)

    def on_retract(self, kept: Sequence[Request]) -> None:
        """After a retraction: what the requests that stay have used, and a few steps more."""
        decoded = sum(r.output_len for r in kept)
        allowed = sum(r.max_new_tokens for r in kept)
        self.current = min(1.0, (decoded + RETRACT_DECODE_STEPS * len(kept)) / (allowed + 1))

    def reset(self) -> None:
        """When the engine went idle."""
        self.current = self.initial
