"""Refuses to start when one of the project's generic package names belongs to someone else.

PyPI has a `traces` and a `profiler`; installed into the same environment they replace ours without a word.
"""

from importlib.util import find_spec
from pathlib import Path

from ui.errors import UserError

__all__ = ["check_one_place"]

PACKAGES = ("engine", "profiler", "traces", "ui")
MEND = "install chunkscope into an environment of its own"


def check_one_place(home: Path | None = None) -> None:
    """Raise UserError unless all four packages come from `home`, the folder that holds this one."""
    home = home or Path(__file__).resolve().parent.parent
    for name in PACKAGES:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise UserError(f"the package {name!r} of chunkscope is missing or damaged: {MEND}")
        found = Path(spec.origin).resolve().parent.parent
        if found != home:
            raise UserError(f"{name!r} comes from {found} ({_distribution(name)}), not from {home}: {MEND}")
        if any(home.glob(f"{name}-*.dist-info")):
            raise UserError(f"the distribution {name!r} has overwritten files of chunkscope: {MEND}")


def _distribution(package: str) -> str:
    from importlib.metadata import packages_distributions

    owners = sorted(set(packages_distributions().get(package, [])) - {"chunkscope"})
    return f"distribution {', '.join(owners)}" if owners else "no installed distribution"
