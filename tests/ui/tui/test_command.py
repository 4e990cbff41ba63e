"""`chunkscope tui` from the command line."""

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import ROOT, refused
from ui.commands import tui

Capture = pytest.CaptureFixture[str]


def test_it_wants_a_terminal(capfd: Capture, tmp_path: Path) -> None:
    assert "tui needs a terminal" in refused(capfd, "tui", tmp_path)


def test_a_path_that_is_no_trace_is_one_line_on_a_terminal_too(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "ui", "tui", str(tmp_path)],
            cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, timeout=60, check=False,
            env={**os.environ, "TERM": "xterm-256color"},
        )  # fmt: skip
        said = os.read(ours, 10_000).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 2
    assert said == f"chunkscope: {tmp_path}: holds no meta.json: not a chunkscope trace\r\n"


def test_a_dumb_terminal_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    for stream in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True)
    with pytest.raises(tui.UserError, match="TERM is dumb"):
        tui.check_terminal()


@pytest.mark.parametrize(
    ("encoding", "locale", "shows"),
    [
        ("UTF-8", "", True),
        ("utf8", "C.UTF-8", True),
        ("utf-8", "C", False),
        ("utf-8", "de_DE.ISO-8859-1", False),
        ("ANSI_X3.4-1968", "", False),
    ],
)
def test_unicode_is_drawn_where_the_terminal_reads_it(
    monkeypatch: pytest.MonkeyPatch, encoding: str, locale: str, shows: bool
) -> None:
    monkeypatch.setenv("LC_ALL", locale)
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    assert tui.shows_unicode() is shows
