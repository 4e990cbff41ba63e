"""One headless Chromium for the session; a page whose console and requests are held to account."""

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.support.three_runs import record_three_runs

OWN_HOSTS = {"127.0.0.1", ""}  # "": data: and blob:
PATIENCE_MS = 30_000  # a busy machine is no failure
VIEWPORT = {"width": 1440, "height": 900}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium; without it these tests are skipped, saying so."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        expect.set_options(timeout=PATIENCE_MS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def context(browser: Browser) -> BrowserContext:
    """One cache for all windows."""
    context = browser.new_context(viewport=VIEWPORT, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE_MS)
    return context


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A new window; at its end no error was on the console, and nothing was asked of another machine."""
    page = context.new_page()
    problems: list[str] = []
    hosts: set[str] = set()
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: hosts.add(urlsplit(request.url).hostname or ""))
    yield page
    page.close()
    assert problems == []
    assert hosts <= OWN_HOSTS


@pytest.fixture(scope="session")
def three_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Traces `whole`, `chunked`, `mixed` and `sweep`."""
    return record_three_runs(tmp_path_factory.mktemp("three-runs"))


@pytest.fixture(autouse=True, scope="session")
def quiet_server() -> None:
    """No line for each request."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
