"""`chunkscope check`: hold traces against the scheduler's rules."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ui.errors import BAD_INPUT, FAILED, one_line, refusals
from ui.options import json_option
from ui.words import count, name, plural

if TYPE_CHECKING:
    from profiler.invariants import CheckReport, RuleResult

__all__ = ["command"]


@click.command("check")
@click.argument("traces", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="TRACE...")
@json_option()
def command(traces: tuple[Path, ...], as_json: bool) -> int:
    """Hold traces against the scheduler's rules.

    Names the first violation of each rule, and the rules that a trace lacks the columns for. Exit 1 if a rule
    is violated; 2 if a trace cannot be read, after the others have been checked.
    """
    from ui.tables import print_json, reporter, say

    checked: dict[Path, CheckReport | str] = {}
    for path in dict.fromkeys(traces):
        outcome = checked[path] = _checked(path) if len(traces) == 1 else _checked_or_why_not(path)
        if isinstance(outcome, str):
            click.echo(f"chunkscope: {outcome}", err=True)
        elif not as_json:
            for line in _lines(path, outcome):
                say(reporter(), line)
    if as_json:
        print_json({"ok": _exit_code(checked) == 0, "traces": [_entry(*each) for each in checked.items()]})
    return _exit_code(checked)


def _checked(path: Path) -> "CheckReport":
    """A trace's report; raises what `ui.errors.refusals` lists, or OSError, where it cannot be read."""
    from profiler.invariants import check_trace
    from traces.reader import open_trace
    from traces.schema import TABLES

    trace = open_trace(path)
    for table in TABLES:
        trace.table(table)  # damage shows when it is read, also where no rule reads it
    return check_trace(trace)


def _checked_or_why_not(path: Path) -> "CheckReport | str":
    """The report, or in one line why there is none."""
    refused: tuple[type[Exception], ...] = (*refusals(), OSError)
    try:
        return _checked(path)
    except refused as error:
        return one_line(error)


def _exit_code(checked: "Mapping[Path, CheckReport | str]") -> int:
    if any(isinstance(outcome, str) for outcome in checked.values()):
        return BAD_INPUT
    return 0 if all(not isinstance(each, str) and each.ok for each in checked.values()) else FAILED


def _entry(path: Path, outcome: "CheckReport | str") -> dict[str, Any]:
    """A trace's part of the JSON document: its report, or the error that kept it from being checked."""
    if isinstance(outcome, str):
        return {"trace": str(path), "ok": False, "error": outcome}
    return {"trace": str(path), "ok": outcome.ok, **asdict(outcome)}


def _lines(path: Path, report: "CheckReport") -> Iterator[str]:
    from profiler.invariants import Status

    violated, unknown = report.having(Status.VIOLATED), report.having(Status.NOT_CHECKABLE)
    held = plural(len(report.having(Status.HELD)), "rule")
    yield f"{path}: {held} held, {count(len(violated))} violated, {count(len(unknown))} not checkable"
    for rule in violated:
        yield f"  violated: {rule.name}: {rule.meaning}"
        yield f"    {plural(rule.violations, 'time')} in {count(rule.checked)}{_first(rule)}"
    for rule in unknown:
        why = rule.reason or f"the trace lacks {', '.join(rule.missing)}"
        yield f"  not checkable: {rule.name}: {why}"
    if report.torn_bytes:
        yield f"  {plural(report.torn_bytes, 'torn byte')} at its end could not be read"
    if not report.clean_end:
        yield "  the recording did not come to a clean end"


def _first(rule: "RuleResult") -> str:
    first = rule.first
    if first is None:
        return ""
    where = [
        f"forward {first.forward_id}" if first.forward_id is not None else "",
        f"request {name(first.request)}" if first.request is not None else "",
        f"attempt {first.attempt}" if first.attempt is not None else "",
    ]
    numbers = ", ".join(f"{key} {value}" for key, value in first.numbers)
    return f"; first at {', '.join(part for part in where if part) or 'the trace'}: {numbers}"
