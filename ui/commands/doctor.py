"""`chunkscope doctor`: what this machine can do and lacks."""

from dataclasses import asdict

import click

from ui.machine import examine
from ui.options import json_option

__all__ = ["command"]


@click.command("doctor")
@json_option()
def command(as_json: bool) -> None:
    """What this machine can do and lacks.

    Each line is one thing that Chunkscope uses; what is lacking is followed by what would mend it.
    """
    from ui.tables import print_facts, print_json, reporter

    findings = examine()
    if as_json:
        print_json([asdict(finding) for finding in findings])
        return
    rows = []
    for finding in findings:
        rows.append((finding.name, finding.found))
        if finding.mend:
            rows.append(("", f"→ {finding.mend}"))
    print_facts(reporter(), rows)
