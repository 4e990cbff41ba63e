"""The `chunkscope` command: a table of subcommands, each loaded only when it is called."""

import importlib
import io
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import click

from ui.errors import BAD_INPUT, BROKEN_PIPE, INTERRUPTED, Interrupted, UserError, one_line, refusals
from ui.packages import check_one_place

__all__ = ["COMMANDS", "CommandRef", "chunkscope", "main"]


class CommandRef(NamedTuple):
    """Where a subcommand lives, and what the overview says of it."""

    module: str
    summary: str


COMMANDS = {
    "demo": CommandRef("ui.commands.demo", "Three policies on one workload, on a real model."),
    "run": CommandRef("ui.commands.run", "Record a run of a workload on a model."),
    "sweep": CommandRef("ui.commands.sweep", "Measure forward time against tokens."),
    "ceilings": CommandRef("ui.commands.ceilings", "Measure what this machine can do at most."),
    "stats": CommandRef("ui.commands.stats", "What a trace says, in numbers and findings."),
    "stalls": CommandRef(
        "ui.commands.stalls", "Where all waiting for tokens went, and whose chunks took it."
    ),
    "advise": CommandRef("ui.commands.advise", "One set of scheduling options, and what the others cost."),
    "plan": CommandRef("ui.commands.plan", "On paper, before any run: a chunk and what it costs."),
    "web": CommandRef("ui.commands.web", "Traces as pages in a browser."),
    "tui": CommandRef("ui.commands.tui", "A trace in the terminal, replayed or live."),
    "export": CommandRef("ui.commands.export", "A trace in the formats of other tools."),
    "check": CommandRef("ui.commands.check", "Hold traces against the scheduler's rules."),
    "doctor": CommandRef("ui.commands.doctor", "What this machine can do and lacks."),
}


class LazyGroup(click.Group):
    """A group that imports a subcommand's module when that subcommand is asked for, and for nothing else."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a known name; it holds a click command called `command`."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(COMMANDS[cmd_name].module).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The overview, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, ref.summary) for name, ref in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="chunkscope", prog_name="chunkscope")
def chunkscope() -> None:
    """How big should one forward pass be, and which decode paid for it?

    Runs an instrumented chunked-prefill engine, records every forward, and answers from the record.
    """


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit: 0 done, 1 a check failed, 2 bad input or usage, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # what a narrow encoding cannot hold is no error
    sys.exit(_exit_code(args))


def _exit_code(args: Sequence[str] | None) -> int:
    try:
        check_one_place()
        result: Any = chunkscope.main(args, prog_name="chunkscope", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as shown:
        click.echo(shown.format_message(), err=True)
        return BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        return _say("interrupted", INTERRUPTED)
    except Interrupted as stopped:
        return _say(one_line(stopped), INTERRUPTED)
    except SystemExit:  # click's answer to a reader of our output that has gone
        return BROKEN_PIPE
    except (click.ClickException, UserError, OSError) as error:
        return _say(one_line(error), BAD_INPUT)
    except refusals() as error:
        return _say(one_line(error), BAD_INPUT)
    return result if isinstance(result, int) else 0


def _say(line: str, exit_code: int) -> int:
    click.echo(f"chunkscope: {line}", err=True)
    return exit_code
