"""`chunkscope check`: hold traces against the scheduler's rules."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ui.errors import FAILED
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
    is violated.
    """
    from profiler.invariants import check_trace
    from traces.reader import open_trace
    from traces.schema import TABLES
    from ui.tables import print_json, reporter, say

    reports = []
    for path in traces:
        trace = open_trace(path)
        for table in TABLES:
            trace.table(table)  # damage shows when it is read, also where no rule reads it
        report = check_trace(trace)
        reports.append((path, report))
        if not as_json:
            for line in _lines(path, report):
                say(reporter(), line)
    ok = all(report.ok for _, report in reports)
    if as_json:
        print_json(
            {"ok": ok, "traces": [{"trace": str(path), "ok": r.ok, **asdict(r)} for path, r in reports]}
        )
    return 0 if ok else FAILED


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
