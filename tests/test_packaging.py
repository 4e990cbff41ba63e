"""The four generic package names are ours, and nothing we depend on brings others of those names."""

import importlib
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ui.packages import PACKAGES

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.mark.parametrize("name", PACKAGES)
def test_each_package_resolves_inside_the_repository(name: str) -> None:
    origin = importlib.import_module(name).__file__
    assert origin is not None
    assert Path(origin).resolve() == ROOT / name / "__init__.py"


def test_no_dependency_is_called_like_a_package_of_ours() -> None:
    requirements = list(PROJECT["project"]["dependencies"])
    for group in PROJECT["dependency-groups"].values():
        requirements += group
    names = {re.split(r"[^A-Za-z0-9._-]", line)[0].lower() for line in requirements}
    assert names.isdisjoint(PACKAGES)
    assert "torch" in names


def test_the_wheel_holds_the_four_packages_and_the_layers_name_them() -> None:
    assert set(PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) == set(PACKAGES)
    assert set(PROJECT["tool"]["importlinter"]["root_packages"]) == set(PACKAGES)


def test_tests_are_no_package() -> None:
    assert not list((ROOT / "tests").rglob("__init__.py"))


def test_every_package_ships_its_types() -> None:
    assert all((ROOT / name / "py.typed").is_file() for name in PACKAGES)


def start(folder: Path, *first_on_path: Path) -> subprocess.CompletedProcess[str]:
    """`chunkscope --version` of the copy in `folder`, with other folders before it on the path."""
    paths = [str(path) for path in (*first_on_path, folder)]
    code = (
        f"import sys; sys.path[:0] = {paths!r}; sys.argv[1:] = ['--version']; from ui.cli import main; main()"
    )
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder.parent, capture_output=True, text=True, timeout=60
    )


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A copy of our packages, as in a site-packages folder."""
    folder = tmp_path / "site-packages"
    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_an_own_place_starts(installed: Path) -> None:
    done = start(installed)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_foreign_package_elsewhere_is_refused_by_name(installed: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    (foreign / "profiler").mkdir(parents=True)
    (foreign / "profiler/__init__.py").touch()
    info = foreign / "profiler-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: profiler\nVersion: 0.1.0\n")
    (info / "top_level.txt").write_text("profiler\n")
    done = start(installed, foreign)
    assert done.returncode == 2
    assert done.stderr.startswith(f"chunkscope: 'profiler' comes from {foreign} (distribution profiler)")
    assert done.stderr.count("\n") == 1


def test_a_foreign_package_in_the_same_folder_is_refused_by_name(installed: Path) -> None:
    (installed / "traces-0.7.0.dist-info").mkdir()
    done = start(installed)
    assert done.returncode == 2
    assert done.stderr.startswith("chunkscope: the distribution 'traces' has overwritten files of chunkscope")


def test_a_package_gone_with_a_foreign_one_is_refused(installed: Path) -> None:
    (installed / "engine/__init__.py").unlink()
    done = start(installed)
    assert done.returncode == 2
    assert done.stderr.startswith("chunkscope: ")
    assert "'engine'" in done.stderr
    assert done.stderr.count("\n") == 1
