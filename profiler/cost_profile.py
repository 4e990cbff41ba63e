"""`GemmProfile`: measured GEMM times of one transformer layer, as shares of what its roof would allow.

The file is a CSV with at least the columns gpu, model, tp, num_tokens, gemm_flop (of one layer's q, k, v, o,
gate, up and down on one device) and gemm_ms, measured in 16 bits; one line a measurement.
"""

import csv
import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from engine.errors import ConfigError
from engine.peaks import Peaks
from profiler.hardware import Card, find_card, peaks_of

__all__ = ["GemmProfile", "load_gemm_profile"]

COLUMNS = ("gpu", "model", "tp", "num_tokens", "gemm_flop", "gemm_ms")
BYTES_PER_PARAM = 2
MAX_TOKENS = 10**9
MAX_FLOPS = 1e20
TIMES_MS = (1e-30, 1e6)
LEAST_SHARE, MOST_SHARE = 1e-6, 1.05  # of the roof; above 1 only as far as a clock or a data sheet may err


class Group(NamedTuple):
    """What was measured together."""

    gpu: str
    model: str
    tp: str


class Point(NamedTuple):
    """One measurement."""

    tokens: int
    flops: float
    seconds: float
    line: int  # of the file

    @property
    def params(self) -> float:
        """Elements of the layer's matrices."""
        return self.flops / (2 * self.tokens)


@dataclass(frozen=True, slots=True)
class GemmProfile:
    """Shares of the roof by tokens in a forward; `log_tokens` ascend."""

    path: Path
    group: Group
    layer_params: int  # elements of the measured layer's matrices on one device
    log_tokens: tuple[float, ...]
    shares: tuple[float, ...]

    def efficiency(self, tokens: int) -> float:
        """The share at so many tokens, linear in their logarithm; beyond what was measured the edge's."""
        at = math.log(tokens)
        right = bisect_left(self.log_tokens, at)
        if right == 0:
            return self.shares[0]
        if right == len(self.log_tokens):
            return self.shares[-1]
        low, high = self.log_tokens[right - 1], self.log_tokens[right]
        weight = (at - low) / (high - low)
        return self.shares[right - 1] * (1 - weight) + self.shares[right] * weight

    def describe(self) -> dict[str, Any]:
        """What is used of which file, as plain values."""
        return {
            "path": str(self.path),
            **self.group._asdict(),
            "layer_params": self.layer_params,
            "points": len(self.shares),
        }


def load_gemm_profile(path: Path, card: Card, layer_params: int) -> GemmProfile:
    """The profile in the file that was measured on `card`, of the layer nearest in size to `layer_params`.

    A share is max(FLOPs / peak, bytes of the weights / bandwidth) / time. Raises ConfigError for a file that
    cannot be read, naming what it has for one without that card, and naming the line for a share that the
    card cannot have had.
    """
    groups = _read(path)
    gpus = sorted({group.gpu for group in groups})
    ours = [group for group in groups if _is_of(card, group.gpu)]
    if not ours:
        raise ConfigError(
            f"--profile {path}: holds nothing of {card.name}: give --profile-gpu {' or '.join(gpus)}"
        )
    sizes = {group: median(point.params for point in groups[group]) for group in ours}
    group = min(ours, key=lambda group: (abs(math.log(sizes[group] / layer_params)), group))
    shares = _shares(path, groups[group], peaks_of(card, "bfloat16"))
    logs = tuple(math.log(tokens) for tokens in shares)
    return GemmProfile(path, group, round(sizes[group]), logs, tuple(shares.values()))


def _is_of(card: Card, gpu: str) -> bool:
    """Whether a file's name of a GPU means `card`; a name that is not known means none."""
    try:
        return find_card(gpu)[0] == card
    except ConfigError:
        return False


def _shares(path: Path, points: Iterable[Point], peaks: Peaks) -> dict[int, float]:
    """The median share of each number of tokens, in ascending order."""
    found: dict[int, list[float]] = defaultdict(list)
    for point in points:
        found[point.tokens].append(_share(path, point, peaks))
    return {tokens: median(found[tokens]) for tokens in sorted(found)}


def _share(path: Path, point: Point, peaks: Peaks) -> float:
    """Of the roof of one measurement, or ConfigError that names its line."""
    reading_s = point.params * BYTES_PER_PARAM / peaks.bytes_per_s
    share = max(point.flops / peaks.flops_per_s, reading_s) / point.seconds
    if LEAST_SHARE <= share <= MOST_SHARE:
        return share
    raise ConfigError(
        f"--profile {path}:{point.line}: in gemm_ms {point.seconds * 1e3:g} GEMMs reach {share:.3g} times "
        f"the peak of {peaks.name}: give milliseconds, with weights read from memory and not from a cache, "
        "or name the GPU that was measured with --profile-gpu"
    )


def _read(path: Path) -> dict[Group, list[Point]]:
    groups: dict[Group, list[Point]] = defaultdict(list)
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe would keep us waiting for ever
            raise ConfigError(f"--profile {path}: is no regular file: give a GEMM profile")
        with path.open(newline="", encoding="utf-8") as file:
            lines = csv.DictReader(file)
            missing = [name for name in COLUMNS if name not in (lines.fieldnames or ())]
            if missing:
                raise ConfigError(f"--profile {path}: has no column {missing[0]}: give a GEMM profile")
            for line in lines:
                group, point = _line(line, path, lines.line_num)
                groups[group].append(point)
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise ConfigError(f"--profile {path}: {reason}: check the path") from None
    except (UnicodeDecodeError, csv.Error):
        raise ConfigError(f"--profile {path}: is no CSV file: give a GEMM profile") from None
    if not groups:
        raise ConfigError(f"--profile {path}: holds no measurement: give a GEMM profile")
    return groups


def _line(line: Mapping[str, str | None], path: Path, number: int) -> tuple[Group, Point]:
    where = f"--profile {path}:{number}"
    try:
        tokens, flops, time_ms = (float(line[name] or "") for name in COLUMNS[3:])
    except ValueError:
        raise ConfigError(f"{where}: num_tokens, gemm_flop or gemm_ms is no number: mend the line") from None
    if not (1 <= tokens <= MAX_TOKENS and tokens == int(tokens)):
        raise ConfigError(f"{where}: num_tokens is out of range: give a whole number from 1 to {MAX_TOKENS}")
    if not 1 <= flops <= MAX_FLOPS:
        raise ConfigError(f"{where}: gemm_flop is out of range: give 1 to {MAX_FLOPS:g}")
    least_ms, most_ms = TIMES_MS
    if not least_ms <= time_ms <= most_ms:
        raise ConfigError(f"{where}: gemm_ms is out of range: give {least_ms:g} to {most_ms:g}")
    group = Group(line["gpu"] or "", line["model"] or "", line["tp"] or "")
    return group, Point(int(tokens), flops, time_ms / 1e3, number)
