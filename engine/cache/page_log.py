"""Notes who owns which page, for observers; switched off it costs one test a call."""

from array import array

from engine.batch import IntColumn
from engine.observer import Owner, PageChange

__all__ = ["PageLog"]


class PageLog:
    """Collects page changes between two records."""

    def __init__(self, enabled: bool = False) -> None:
        self.enabled = enabled
        self._changes: list[PageChange] = []

    def add(
        self,
        pages: "array[int]",
        owner: Owner,
        *,
        rids: IntColumn | None = None,
        node: int | None = None,
        locked: bool = False,
    ) -> None:
        """Note that `pages` belong to `owner` from now on."""
        if self.enabled and pages:
            self._changes.append(PageChange(pages, owner, rids, node, locked))

    def take(self) -> list[PageChange]:
        """The changes since the last call, oldest first."""
        changes, self._changes = self._changes, []
        return changes
