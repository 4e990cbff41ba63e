"""Times of the web UI on one trace: a server of its own, and a headless browser that looks at it."""

import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CHROMIUM = "/usr/bin/chromium"
VIEWPORT = {"width": 1440, "height": 900}
ZOOMS = 30
TAPS = 5  # of W in one zoom, which is then about twofold and needs a tile of its own
ZOOMS_IN = 10  # before it fits the whole trace again
DEADLINE_S = 120
GUTTER = 140  # pixels at the left of the picture that are no plot

# Tells when the page rests: no tile is on its way, no frame is asked for, and what came has been drawn.
WATCH = """
(() => {
  const watch = (window.__watch = { loading: 0, frames: 0, tiles: 0, drawnAt: null });
  const { fetch, requestAnimationFrame, cancelAnimationFrame } = window;
  const isTile = (input) => /\\/api\\/timeline\\/[0-9]+\\/tile/.test(String(input.url ?? input));
  window.fetch = async (input, init) => {
    if (!isTile(input)) return fetch(input, init);
    watch.loading += 1;
    try {
      const response = await fetch(input, init);
      const bytes = await response.arrayBuffer();
      watch.tiles += 1;
      return new Response(bytes, { status: response.status, headers: response.headers });
    } finally {
      setTimeout(() => { watch.loading -= 1; }, 0);
    }
  };
  const asked = new Set();
  window.requestAnimationFrame = (callback) => {
    const id = requestAnimationFrame((time) => {
      asked.delete(id);
      callback(time);
      watch.drawnAt = performance.now();
    });
    asked.add(id);
    return id;
  };
  window.cancelAnimationFrame = (id) => { asked.delete(id); cancelAnimationFrame(id); };
  watch.rests = () => watch.tiles > 0 && watch.loading === 0 && asked.size === 0;
  watch.afterKey = (code, taps) => new Promise((resolve) => {
    const begin = performance.now();
    const target = document.activeElement ?? document.body;
    const init = { code, key: code.slice(-1).toLowerCase(), bubbles: true, cancelable: true };
    for (let tap = 0; tap < taps; tap++) {
      target.dispatchEvent(new KeyboardEvent("keydown", init));
      target.dispatchEvent(new KeyboardEvent("keyup", init));
    }
    const look = () => setTimeout(() => {
      if (watch.rests() && watch.drawnAt >= begin) resolve(watch.drawnAt - begin);
      else look();
    }, 1);
    look();
  });
})();
"""

# Place and size of the largest canvas.
PICTURE = """
[...document.querySelectorAll("canvas")]
  .map((canvas) => canvas.getBoundingClientRect())
  .map((box) => [box.x, box.y, box.width, box.height])
  .sort((a, b) => b[2] * b[3] - a[2] * a[3])[0]
"""


def measure(trace: Path) -> dict[str, Any]:
    """Seconds until the server is ready without and with a cache, to the first picture, and of each zoom."""
    with serving(trace) as first:
        pass
    with serving(trace) as server:
        times = look(server["url"])
        times["server_peak_bytes"] = peak_bytes(server["pid"])
    return {"ready_first_s": first["ready_s"], "ready_cached_s": server["ready_s"], **times}


@contextmanager
def serving(trace: Path) -> Iterator[dict[str, Any]]:
    """`chunkscope web` on a trace, ready to answer."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "ui", "web", str(trace), "--no-open", "--port", "0"],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        found = None
        lines = []
        while found is None and (line := process.stderr.readline()):
            lines.append(line)
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
        if found is None:
            raise SystemExit(f"chunkscope web ended: {''.join(lines)}")
        wait_for_page(f"{found[0]}/compare")
        yield {"url": found[0], "ready_s": time.perf_counter() - begin, "pid": process.pid}
    finally:
        process.terminate()  # a shell's background jobs ignore SIGINT
        process.wait(timeout=30)


def wait_for_page(url: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=DEADLINE_S) as response:
                if response.status == 200 and response.read():
                    return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.02)
    raise SystemExit(f"{url} did not answer in {DEADLINE_S} s")


def look(url: str) -> dict[str, Any]:
    """Open the Compare page, then zoom in at random places."""
    from playwright.sync_api import sync_playwright

    random, zooms_ms = Random(0), []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"], timeout=DEADLINE_S * 1e3
        )
        page = browser.new_page(viewport=VIEWPORT, reduced_motion="reduce")
        page.set_default_timeout(DEADLINE_S * 1e3)
        page.add_init_script(WATCH)
        page.goto(f"{url}/compare")
        page.wait_for_function("window.__watch.rests()")
        picture_s = page.evaluate("window.__watch.drawnAt") / 1e3
        for number in range(ZOOMS):
            if number % ZOOMS_IN == 0:
                page.evaluate("window.__watch.afterKey('KeyF', 1)")
            x, y, width, height = page.evaluate(PICTURE)
            page.mouse.move(x + random.uniform(GUTTER, width - 10), y + height / 2)
            page.wait_for_function("window.__watch.rests()")
            before = page.url
            zooms_ms.append(page.evaluate(f"window.__watch.afterKey('KeyW', {TAPS})"))
            page.wait_for_function("(url) => location.href !== url", arg=before)  # else nothing was zoomed
        tiles = page.evaluate("window.__watch.tiles")
        browser.close()
    return {"first_picture_s": picture_s, "zooms_ms": zooms_ms, "tiles": tiles}


def peak_bytes(pid: int) -> int | None:
    """The most memory a process has held, where the system tells."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists() or os.name != "posix":
        return None
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
    return int(found[1]) * 1024 if found else None
