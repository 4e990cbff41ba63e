"""`chunkscope web` at the terminal: what it prints, refuses, and how it ends."""

import signal
import socket
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.support.cli import call, refused, start
from tests.support.rewritten import rewrite
from tests.support.three_runs import record_three_runs
from ui.demo.pictures import open_pictures
from ui.tables import narrator
from ui.web import server, session
from ui.web.server import bind

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_three_runs(tmp_path_factory.mktemp("runs"))["chunked"]


def test_it_says_where_it_serves_and_ends_with_ctrl_c(trace: Path) -> None:
    running = start("web", trace, "--no-open", "--port", 0)
    assert running.stderr is not None
    line = running.stderr.readline()
    assert line.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(line.split()[0], timeout=20) as response:
        assert response.status == 200
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=20)
    assert (running.returncode, out, err) == (0, "", "")


def test_bad_input_is_one_line(trace: Path, tmp_path: Path, capfd: Capture) -> None:
    assert "no such trace" in refused(capfd, "web", tmp_path / "none.chunkscope", "--no-open")
    assert "too many for one page" in refused(capfd, "web", *[trace] * 7, "--no-open")
    assert "give another --host or --port" in refused(
        capfd, "web", trace, "--host", "203.0.113.7", "--no-open"
    )
    assert "--port" in refused(capfd, "web", trace, "--port", "70000")
    assert "--host is empty" in refused(capfd, "web", trace, "--host", " ", "--no-open")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port {port}" in refused(capfd, "web", trace, "--port", port, "--no-open")


def test_a_taken_port_is_passed_over_unless_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        first = taken.getsockname()[1]
        monkeypatch.setattr(server, "_FIRST_PORT", first)
        monkeypatch.setattr(server, "_LAST_PORT", first + 19)
        with bind("127.0.0.1", None) as listener:
            assert first < listener.getsockname()[1] < first + 20


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="a display is always there")
def test_a_terminal_alone_has_no_display(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    assert not server.has_display()
    monkeypatch.setenv("BROWSER", "firefox")
    assert server.has_display()


def test_the_demo_prints_the_command_where_nothing_can_show_pictures(
    monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    monkeypatch.setattr(server, "has_display", lambda: False)
    open_pictures(narrator(), [Path("a b/whole.chunkscope"), Path("x.chunkscope")], no_open=False)
    assert "chunkscope web 'a b/whole.chunkscope' x.chunkscope" in capfd.readouterr().err


def test_the_demo_opens_its_runs_where_there_is_a_display(
    monkeypatch: pytest.MonkeyPatch, trace: Path, capfd: Capture
) -> None:
    opened: list[tuple[str, bool]] = []
    monkeypatch.setattr(server, "has_display", lambda: True)
    monkeypatch.setattr(session, "has_display", lambda: True)
    monkeypatch.setattr(
        session, "serve", lambda app, listener, *, url, open_browser: opened.append((url, open_browser))
    )
    open_pictures(narrator(), [trace], no_open=False)
    assert len(opened) == 1
    url, asked = opened[0]
    assert asked
    assert url.startswith("http://127.0.0.1:80")
    assert f"{url}  (Ctrl-C ends it)" in capfd.readouterr().err
    open_pictures(narrator(), [trace], no_open=True)
    assert len(opened) == 1


def test_help_says_what_it_needs(capfd: Capture) -> None:
    code, out, _ = call(capfd, "web", "--help")
    assert code == 0
    assert "--live" in out


def test_a_trace_that_is_not_one_is_named(trace: Path, tmp_path: Path, capfd: Capture) -> None:
    copy = rewrite(trace, tmp_path / "t.chunkscope")
    (copy / "meta.json").write_text("{}")
    assert str(copy) in refused(capfd, "web", copy, "--no-open")
