import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "polars", "scipy", "dash", "textual", "click", "rich", "pandas", "engine", "profiler", "ui")


def test_reading_and_writing_load_pyarrow_alone() -> None:
    code = "import sys, traces.writer, traces.reader; print(*{name.split('.')[0] for name in sys.modules})"
    child = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(child.stdout.split())
    assert "pyarrow" in loaded
    assert not loaded & set(HEAVY)


def test_the_schema_of_the_package_loads_nothing_by_itself() -> None:
    code = "import sys, traces; print('pyarrow' in sys.modules)"
    child = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert child.stdout.strip() == "False"
