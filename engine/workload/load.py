"""Reads a workload file: recognises its format by content, picks requests, and sets when they arrive."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.errors import WorkloadError
from engine.request import Request
from engine.workload.entry import Entry, Format
from engine.workload.fields import MAX_ARRIVAL_S
from engine.workload.json_lines import object_format
from engine.workload.own import Tokenizer, own_format
from engine.workload.tables import table_format

__all__ = ["Workload", "load_workload"]


@dataclass(frozen=True, slots=True)
class Workload:
    """A file's requests, in its order; `rid` counts them from 0.

    Requests of a format of others ignore EOS, so that they are as long as recorded.
    """

    path: Path
    title: str  # of the format
    requests: Sequence[Request]
    lines: Sequence[int]  # each request's line in the file, from 1
    timed: bool  # whether the file says when requests arrive; else all arrive at 0
    empty_prompts: Sequence[int]  # lines left out because they record no prompt token
    empty_outputs: Sequence[
        int
    ]  # lines that record no output token: asked for the one that a prefill samples

    def where(self, request: Request) -> str:
        """FILE:LINE of a request."""
        return f"{self.path}:{self.lines[request.rid]}"


def load_workload(
    path: Path,
    *,
    vocab_size: int,
    tokenizer: Callable[[], Tokenizer | None] = lambda: None,
    seed: int = 0,
    limit: int | None = None,
    time_scale: float = 1.0,
) -> Workload:
    """Read a workload file; blank lines are skipped. `tokenizer` is called when a prompt is text.

    `limit` keeps those requests that arrive first; `time_scale` multiplies arrivals. Raises WorkloadError,
    naming file and line, for the first wrong line, and for a file without requests.
    """
    if limit is not None and limit < 1:
        raise WorkloadError(f"--limit {limit}: give 1 or more")
    if not 0 < time_scale < float("inf"):
        raise WorkloadError(f"--time-scale {time_scale}: give a number above 0")
    lines = list(_lines(path))
    if not lines:
        raise WorkloadError(f"{path} holds no request: write one JSON object a line")
    with _naming(path, lines[0][0]):
        form = _recognise(lines[0][1], vocab_size, tokenizer, seed)
    entries = _read(path, lines[1:] if form.has_head else lines, form)
    kept, left_out = _pick(entries, limit)
    if not kept:
        raise WorkloadError(f"{path} holds no request with a prompt: give at least one")
    start_ns = min(entry.arrival_ns for entry in entries) if form.from_first else 0
    requests = [
        Request(
            rid=rid,
            name=entry.name,
            prompt_token_ids=entry.prompt,
            sampling=entry.sampling,
            arrival_ns=_arrival_ns(path, entry, start_ns, time_scale),
            priority=entry.priority,
        )
        for rid, entry in enumerate(kept)
    ]
    return Workload(
        path,
        form.title,
        requests,
        lines=[entry.line for entry in kept],
        timed=form.timed,
        empty_prompts=left_out,
        empty_outputs=[entry.line for entry in kept if entry.recorded_output_tokens == 0],
    )


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, numbered from 1; a byte order mark is skipped."""
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe would keep us waiting for ever
            raise WorkloadError(f"{path}: is no regular file: give a file of JSON lines, or a CSV table")
        content = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise WorkloadError(f"{path}: {reason}: give a file of JSON lines, or a CSV table") from None
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if line.strip():
            yield number, line


@contextmanager
def _naming(path: Path, number: int) -> Iterator[None]:
    """Put file and line before what is wrong."""
    try:
        yield
    except WorkloadError as error:
        raise WorkloadError(f"{path}:{number}: {error}") from None


def _recognise(first: bytes, vocab_size: int, tokenizer: Callable[[], Tokenizer | None], seed: int) -> Format:
    return (
        object_format(first, vocab_size, seed)
        or table_format(first, vocab_size, seed)
        or own_format(vocab_size, tokenizer, seed)
    )


def _read(path: Path, lines: Sequence[tuple[int, bytes]], form: Format) -> list[Entry]:
    entries = []
    taken: dict[str, int] = {}
    for place, (number, raw) in enumerate(lines):
        with _naming(path, number):
            entry = form.read(number, place, raw)
            if entry.name in taken:
                raise WorkloadError(
                    f"rid {entry.name!r} is taken by line {taken[entry.name]}: give each request its own"
                )
        taken[entry.name] = number
        entries.append(entry)
    return entries


def _pick(entries: Sequence[Entry], limit: int | None) -> tuple[list[Entry], list[int]]:
    """The `limit` entries that arrive first, as the file has them, and lines without a prompt among them."""
    kept: list[Entry] = []
    left_out: list[int] = []
    for entry in sorted(entries, key=lambda e: e.arrival_ns):
        if len(kept) == limit:
            break
        if entry.prompt:
            kept.append(entry)
        else:
            left_out.append(entry.line)
    return sorted(kept, key=lambda e: e.line), sorted(left_out)


def _arrival_ns(path: Path, entry: Entry, start_ns: int, time_scale: float) -> int:
    arrival_ns = entry.arrival_ns - start_ns
    if arrival_ns > MAX_ARRIVAL_S * 10**9:
        raise WorkloadError(
            f"{path}:{entry.line}: arrives {arrival_ns // 10**9} s after the first: "
            f"give at most {MAX_ARRIVAL_S} s"
        )
    if time_scale == 1:
        return arrival_ns
    if arrival_ns * time_scale > MAX_ARRIVAL_S * 10**9:
        raise WorkloadError(
            f"{path}:{entry.line}: --time-scale {time_scale} puts the arrival after {MAX_ARRIVAL_S} s: "
            "give a smaller one"
        )
    return round(arrival_ns * time_scale)
