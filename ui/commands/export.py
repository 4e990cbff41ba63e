"""`chunkscope export`: a trace in the formats of other tools."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ui.errors import UserError
from ui.words import plural, seconds

if TYPE_CHECKING:
    from profiler.timeline.timeline import Timeline

__all__ = ["command"]

NS = 1e9


class Seconds(click.ParamType[float]):
    """A moment of the run; NaN and infinities are none."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or a usage error."""
        number: float = click.FLOAT.convert(value, param, ctx)
        if not math.isfinite(number) or abs(number) * NS > 2**62:
            self.fail(f"{value!r} is no time of a run: give seconds.", param, ctx)
        return number


@click.group("export")
def command() -> None:
    """A trace in the formats of other tools."""


@command.command("chrome")
@click.argument("trace", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE.json[.gz]",
    help="The file to make; compressed if it ends in .gz.",
)
@click.option("--from", "from_s", type=Seconds(), metavar="SECONDS", help="Leave out what ended before.")
@click.option("--to", "to_s", type=Seconds(), metavar="SECONDS", help="Leave out what began at it or later.")
def chrome(trace: Path, output: Path, from_s: float | None, to_s: float | None) -> None:
    """A Chrome trace, for Perfetto and chrome://tracing.

    A process for each rank, with its forwards, a track for each request, counters, and arrows from the
    culprits' chunks to the tokens that they made late. Times are those of the trace, from the run's start.
    """
    from profiler.export.picture import draw
    from profiler.timeline.timeline import open_timeline
    from traces.chrome import check_new, write_chrome
    from ui.tables import narrator, say

    if from_s is not None and to_s is not None and round(from_s * NS) >= round(to_s * NS):
        raise UserError(f"--from {from_s:g} is not before --to {to_s:g}: give an earlier --from")
    check_new(output)
    timeline = open_timeline(trace)
    if not timeline.num_forwards and not timeline.num_requests:
        raise UserError(f"{trace}: holds no forward and no request: there is nothing to export")
    start_ns = timeline.start_ns if from_s is None else round(from_s * NS)
    end_ns = timeline.end_ns if to_s is None else round(to_s * NS)
    if start_ns >= timeline.end_ns or end_ns <= timeline.start_ns:
        raise UserError(f"{trace}: nothing between --from and --to: {_span(timeline)}")
    events = write_chrome(output, draw(timeline, start_ns, end_ns), _about(timeline))
    say(narrator(), f"{output}: {plural(events, 'event')}; open it in Perfetto or chrome://tracing")


@command.command("tensorboard")
@click.argument("trace", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    metavar="LOGDIR",
    help="TensorBoard's log directory; the trace becomes a run in it.",
)
def tensorboard(trace: Path, output: Path) -> None:
    """A run for TensorBoard with its plugin torch-tb-profiler.

    Each rank has a worker with all forwards as steps, and, if the run was recorded with --record kernels, one
    with the forwards that were watched, their kernels and operators.
    """
    from profiler.export.tensorboard import workers
    from traces.reader import open_trace
    from traces.tensorboard import SUFFIX, write_tensorboard
    from ui.tables import narrator, say
    from ui.tensorboard import how_to_look, run_folder

    opened = open_trace(trace)
    if not opened.table("forwards").num_rows:
        raise UserError(f"{trace}: holds no forward: there is nothing to export")
    hardware = opened.meta.get("hardware")
    device = hardware.get("name") if isinstance(hardware, dict) else None
    with run_folder(output, trace.resolve().stem) as folder:
        for worker in workers(opened, str(device or "unknown device")):
            write_tensorboard(folder / f"{worker.name}{SUFFIX}", worker.device, worker.steps)
    say(narrator(), f"{folder}: {how_to_look(output)}")


def _span(timeline: "Timeline") -> str:
    return f"the run lasts from {seconds(timeline.start_ns / NS)} to {seconds(timeline.end_ns / NS)}"


def _about(timeline: "Timeline") -> dict[str, Any]:
    """The file's metadata; what is unknown is left out."""
    from importlib.metadata import version

    meta = timeline.trace.meta
    hardware = meta.get("hardware")
    about = {
        "generator": f"chunkscope {version('chunkscope')}",
        "trace": timeline.path.name,
        "provenance": meta.get("provenance"),
        "hardware": hardware.get("name") if isinstance(hardware, dict) else None,
    }
    return {key: value for key, value in about.items() if value is not None}
