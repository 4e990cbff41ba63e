"""How each of the scheduler's rules fares on a trace, violated ones first."""

from dash import html
from dash.development.base_component import Component

from profiler.invariants.report import CheckReport, RuleResult, Status, Violation
from ui.web.checks import Check
from ui.web.names import shown
from ui.words import count, plural

__all__ = ["rule_table"]

_ORDER = (Status.VIOLATED, Status.NOT_CHECKABLE, Status.HELD)
_GLYPHS = {Status.HELD: "✓", Status.VIOLATED: "✕", Status.NOT_CHECKABLE: "–"}
_CLASSES = {Status.HELD: "held", Status.VIOLATED: "violated", Status.NOT_CHECKABLE: "unchecked"}


def rule_table(check: Check) -> Component:
    """The report once it is there; until then how long the check has been running."""
    if check.error is not None:
        return html.P(check.error, className="problem", role="alert")
    if check.report is None:
        words = f"Holding the rules against the trace, {check.running_s:.0f} s so far."
        return html.P([html.Span(className="busy"), words], role="status")
    return html.Div([_result(check.report), html.Table(html.Tbody(_rows(check.report)), className="rules")])


def _result(report: CheckReport) -> html.P:
    held, violated, unchecked = (
        len(report.having(status)) for status in (Status.HELD, Status.VIOLATED, Status.NOT_CHECKABLE)
    )
    words = [f"{count(held)} of {plural(len(report.rules), 'rule')} hold"]
    words += [f"{count(violated)} violated"] if violated else []
    words += [f"{count(unchecked)} not checkable"] if unchecked else []
    words += [f"{plural(report.torn_bytes, 'torn byte')} at its end"] if report.torn_bytes else []
    words += [] if report.clean_end else ["no clean end"]
    glyph = _GLYPHS[Status.VIOLATED if violated else Status.HELD]
    return html.P(f"{glyph} {', '.join(words)}.", className="violated" if violated else "held")


def _rows(report: CheckReport) -> list[html.Tr]:
    ordered = sorted(report.rules, key=lambda rule: _ORDER.index(rule.status))
    return [
        html.Tr(
            [
                html.Td(_GLYPHS[rule.status], title=str(rule.status), className=_CLASSES[rule.status]),
                html.Th([rule.name.replace("_", " "), html.Small(rule.meaning)], scope="row"),
                html.Td(_outcome(rule)),
            ]
        )
        for rule in ordered
    ]


def _outcome(rule: RuleResult) -> str:
    if rule.status is Status.NOT_CHECKABLE:
        return rule.reason or f"the trace lacks {', '.join(rule.missing)}"
    if rule.status is Status.HELD:
        return f"{count(rule.checked)} checked"
    first = f"; first {_violation(rule.first)}" if rule.first is not None else ""
    return f"{plural(rule.violations, 'time')} in {count(rule.checked)}{first}"


def _violation(first: Violation) -> str:
    where = [
        f"forward {first.forward_id}" if first.forward_id is not None else "",
        f"request {shown(first.request)}" if first.request is not None else "",
        f"attempt {first.attempt}" if first.attempt is not None else "",
    ]
    numbers = ", ".join(f"{key} {value}" for key, value in first.numbers)
    return f"at {', '.join(part for part in where if part) or 'the trace'}: {numbers}"
