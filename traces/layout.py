"""Names of the files in a trace's directory."""

import re
from pathlib import Path

__all__ = ["INDEX_NAME", "SEALING_SUFFIX", "SUFFIX", "rank_directory", "ranks_in", "stream_label"]

SUFFIX = ".chunkscope"
INDEX_NAME = "seal.json"
SEALING_SUFFIX = ".sealing"  # a sealed table until it takes its stream's place
_RANK = re.compile(r"rank-(0|[1-9][0-9]{0,8})")


def rank_directory(trace: Path, rank: int) -> Path:
    """Where one rank's tables lie."""
    return trace / f"rank-{rank}"


def stream_label(rank: int, table: str) -> str:
    """A table's file, relative to the trace."""
    return f"rank-{rank}/{table}.arrow"


def ranks_in(trace: Path) -> list[int]:
    """Ranks that have a directory, ascending."""
    matches = (_RANK.fullmatch(entry.name) for entry in trace.iterdir() if entry.is_dir())
    return sorted(int(match[1]) for match in matches if match)
