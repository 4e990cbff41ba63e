"""Every rule has its definition in docs/metrics.md, and no other has."""

import re
from pathlib import Path

from profiler.invariants import RULES

METRICS = Path(__file__).parents[3] / "docs" / "metrics.md"


def test_each_rule_is_defined() -> None:
    text = METRICS.read_text(encoding="utf-8")
    checks = text.partition("## Checks")[2].partition("\n## ")[0]
    heads = [line.split("|")[1] for line in checks.splitlines() if line.startswith("| `")]
    defined = re.findall(r"`(\w+)`(\*?)", "".join(heads))
    assert sorted(defined) == sorted((rule.name, "" if rule.of_scheduler else "*") for rule in RULES)
