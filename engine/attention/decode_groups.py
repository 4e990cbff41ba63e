"""Which decode rows share one attention call."""

from collections.abc import Sequence

__all__ = ["group_by_length"]


def group_by_length(lengths: Sequence[int], max_padding: int, max_total: int) -> list[list[int]]:
    """Split rows into groups whose members are padded to their longest, and computed at once.

    A group holds as many rows, longest first, as keep its padding within `max_padding` and its padded size
    within `max_total`; a single row always fits. Every row is in exactly one group, and each group lists its
    rows in ascending order.
    """
    groups: list[list[int]] = []
    longest = padding = 0
    for row in sorted(range(len(lengths)), key=lambda r: -lengths[r]):
        short_by = longest - lengths[row]
        fits = padding + short_by <= max_padding and (
            bool(groups) and longest * (len(groups[-1]) + 1) <= max_total
        )
        if fits:
            groups[-1].append(row)
            padding += short_by
        else:
            groups.append([row])
            longest, padding = lengths[row], 0
    return [sorted(group) for group in groups]
