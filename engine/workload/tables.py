"""Workload files of others that are tables: Azure's inference traces and Vidur's CSV files."""

import csv
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from engine.errors import WorkloadError
from engine.workload.entry import Format, Recorded, RecordedReader
from engine.workload.fields import MAX_ARRIVAL_S, MAX_LENGTH_TOKENS, wrong

__all__ = ["table_format"]

AZURE = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
VIDUR = ("num_prefill_tokens", "num_decode_tokens")
VIDUR_ARRIVAL = "arrived_at"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WHOLE = re.compile(r"(\d{1,18})(?:\.0*)?", re.ASCII)  # some writers put .0 behind whole numbers
SECONDS = re.compile(r"\d{1,18}(?:\.\d{0,40})?(?:[eE][+-]?\d{1,2})?", re.ASCII)
DATE_TIME = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)?", re.ASCII)


def table_format(first: bytes, vocab_size: int, seed: int) -> Format | None:
    """The format that a table's head tells; None where the first line is no head of columns.

    Raises WorkloadError, not yet with file and line, for a head that lacks columns.
    """
    if b"," not in first or first.lstrip()[:1] in (b"{", b"["):
        return None
    head = [cell.strip() for cell in _cells(first)]
    if any(column in head for column in AZURE):
        reader = RecordedReader("azure", _Table(head, AZURE).azure, vocab_size, seed)
        return Format("Azure LLM inference trace", reader.read, has_head=True, from_first=True)
    timed = VIDUR_ARRIVAL in head
    if timed or any(column in head for column in VIDUR):
        table = _Table(head, (VIDUR_ARRIVAL, *VIDUR) if timed else VIDUR)
        reader = RecordedReader("vidur", table.vidur, vocab_size, seed)
        return Format("Vidur trace", reader.read, has_head=True, timed=timed)
    raise WorkloadError(
        f"no column is known: give {', '.join(AZURE)} (Azure), or {VIDUR_ARRIVAL}, {', '.join(VIDUR)} (Vidur)"
    )


class _Table:
    """The rows below a head, read by the names of their columns; other columns are passed over."""

    def __init__(self, head: Sequence[str], wanted: Sequence[str]) -> None:
        for column in wanted:
            if head.count(column) != 1:
                fault = "missing" if column not in head else "there twice"
                raise WorkloadError(f"column {column} is {fault}: give {', '.join(wanted)}, each once")
        self._width = len(head)
        self._at = {column: head.index(column) for column in wanted}

    def azure(self, line: bytes) -> Recorded:
        """`arrival_ns` counts from 1970: only differences mean something."""
        cells = self._row(line)
        when, prompt, output = AZURE
        return Recorded(
            _nanoseconds(when, cells[when]), _whole(prompt, cells[prompt]), _whole(output, cells[output])
        )

    def vidur(self, line: bytes) -> Recorded:
        """Arrivals in seconds; 0 where the file has none."""
        cells = self._row(line)
        prompt, output = VIDUR
        arrival_ns = _seconds(VIDUR_ARRIVAL, cells[VIDUR_ARRIVAL]) if VIDUR_ARRIVAL in cells else 0
        return Recorded(arrival_ns, _whole(prompt, cells[prompt]), _whole(output, cells[output]))

    def _row(self, line: bytes) -> dict[str, str]:
        cells = _cells(line)
        if len(cells) != self._width:
            raise WorkloadError(f"{len(cells)} cells: the head names {self._width}, give each its cell")
        return {column: cells[at].strip() for column, at in self._at.items()}


def _cells(line: bytes) -> list[str]:
    try:
        return next(csv.reader([line.decode()]))
    except UnicodeDecodeError:
        raise WorkloadError("not UTF-8 text: save the file as UTF-8") from None
    except csv.Error as error:
        raise WorkloadError(f"no CSV, {error}: separate the cells by commas") from None


def _whole(column: str, cell: str) -> int:
    found = WHOLE.fullmatch(cell)
    if found is None or int(found[1]) > MAX_LENGTH_TOKENS:
        raise wrong(column, cell, f"a whole number from 0 to {MAX_LENGTH_TOKENS}")
    return int(found[1])


def _seconds(column: str, cell: str) -> int:
    if not SECONDS.fullmatch(cell) or (seconds := Decimal(cell)) > MAX_ARRIVAL_S:
        raise wrong(column, cell, f"seconds from 0 to {MAX_ARRIVAL_S}")
    return round(seconds * 10**9)


def _nanoseconds(column: str, cell: str) -> int:
    """Nanoseconds since 1970 of a date and time, exact; one without a zone is in UTC."""
    found = DATE_TIME.fullmatch(cell)
    try:
        if found is None:
            raise ValueError
        moment = datetime.fromisoformat(f"{found[1]}{found[3] or '+00:00'}")
    except ValueError:
        raise wrong(column, cell, "a date and time such as 2023-11-16 18:15:46.6805900") from None
    return (moment - EPOCH) // timedelta(seconds=1) * 10**9 + int((found[2] or "0").ljust(9, "0"))
