"""How findings write forwards, requests and shares."""

from collections.abc import Sequence

from profiler.wording import count

__all__ = ["forward_words", "named", "percent"]

NAMED = 3  # requests that a sentence names


def named(names: Sequence[str]) -> str:
    """r7; r7 and r8; r7, r8, r9 and 2 more."""
    if len(names) > NAMED:
        return f"{', '.join(names[:NAMED])} and {count(len(names) - NAMED)} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def forward_words(first: int, last: int) -> str:
    """forward 35; forwards 35 to 57."""
    return f"forward {first}" if first == last else f"forwards {first} to {last}"


def percent(share: float) -> str:
    """12 %, and 0.4 % below one."""
    return f"{share * 100:.0f} %" if share >= 0.00995 or not share else f"{share * 100:.1f} %"
