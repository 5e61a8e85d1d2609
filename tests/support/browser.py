"""Opens the console in a real Chromium, and checks its pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from axe_playwright_python.base import AXE_SCRIPT, AxeResults
from playwright.sync_api import Browser, BrowserContext, Page, StorageState, expect, sync_playwright
from required import missing
from stack import Stack
from waiting import LIMIT_SECONDS

WIDTHS = (390, 1024, 1600)
"""Widths of a phone, a tablet and a screen, in pixels."""

PATTERNS = 'for (const field of document.querySelectorAll("[pattern]")) new RegExp(field.pattern, "v")'
"""Fails if a browser would ignore the pattern of a field, because it is invalid with the flag `v`."""

_ARGUMENTS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    "--no-sandbox",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Chromium and stop it when the block ends. Skip the test if it is not installed."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        missing("chromium is not installed (Debian: chromium)")
    expect.set_options(timeout=LIMIT_SECONDS * 1000)  # 5 s are too short for a busy machine
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


def new_context(
    browser: Browser,
    base_url: str,
    *,
    width: int = 1024,
    scheme: Literal["light", "dark"] = "light",
    session: StorageState | None = None,
) -> BrowserContext:
    """Return a new window. Requests to other hosts, errors of scripts, and violations of the content security
    policy fail the test.

    Args:
        browser: the browser.
        base_url: address of the service.
        width: width of the window in pixels.
        scheme: what the user prefers.
        session: cookies of a person who has signed in; None for no cookies.
    """
    context = browser.new_context(
        base_url=base_url,
        viewport={"width": width, "height": 800 if width > 500 else 844},
        color_scheme=scheme,
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="Europe/Paris",
        storage_state=session,
    )
    context.set_default_timeout(LIMIT_SECONDS * 1000)
    foreign: list[str] = []

    def watch(page: Page) -> None:
        page.on("request", lambda request: _note_foreign(foreign, request.url, base_url))
        page.on("pageerror", lambda error: foreign.append(f"error of a script: {error}"))
        page.on("console", lambda message: _note_violation(foreign, message.text))

    context.on("page", watch)
    context.on("close", lambda _: _require_none(foreign))
    return context


def _note_foreign(foreign: list[str], url: str, base_url: str) -> None:
    if not url.startswith((base_url, "data:", "blob:")):
        foreign.append(url)


def _note_violation(foreign: list[str], message: str) -> None:
    if "Content Security Policy" in message:
        foreign.append(message)


def _require_none(foreign: list[str]) -> None:
    assert foreign == []


def sign_in(page: Page, key: str) -> None:
    """Sign in to the console by its form."""
    page.goto("/console/sign-in")
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/console")


def check_page(page: Page, *, folder: Path | None = None, name: str = "") -> None:
    """Check a page at all widths: accessibility, and that nothing is wider than the window.

    Args:
        page: shows the page.
        folder: where to store screenshots; None for no screenshots.
        name: begin of the names of the screenshots.
    """
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800 if width > 500 else 844})
        overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert overflow <= 0, f"{page.url} is {overflow} px wider than a window of {width} px"
        if folder is not None:
            page.screenshot(path=folder / f"{name}-{width}.png", full_page=True)
    page.evaluate(PATTERNS)
    page.evaluate(AXE_SCRIPT)
    page.emulate_media(color_scheme="light")
    _require_accessible(page, ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"])
    page.emulate_media(color_scheme="dark")  # only colors differ
    _require_accessible(page, {"type": "rule", "values": ["color-contrast"]})


def _require_accessible(page: Page, rules: object) -> None:
    # Without this option, Axe describes every element that follows a rule, which takes half of the time.
    options = {"runOnly": rules, "resultTypes": ["violations"]}
    results = AxeResults(page.evaluate("options => axe.run(options)", options))
    assert results.violations_count == 0, f"{page.url}: {results.generate_report()}"


class Console:
    """A service that requires keys, and a browser.

    Args:
        stack: the service. The tests send their requests with the key of the administrator.
        browser: the browser.
        keys: the keys of people, by name.
    """

    def __init__(self, stack: Stack, browser: Browser, keys: dict[str, str]) -> None:
        self.stack = stack
        self.browser = browser
        self.keys = keys
        self._sessions: dict[str, StorageState] = {}

    def session_of(self, person: str) -> StorageState:
        """Return the cookies of a person who has signed in."""
        if person not in self._sessions:
            context = new_context(self.browser, self.stack.url)
            sign_in(context.new_page(), self.keys[person])
            self._sessions[person] = context.storage_state()
            context.close()
        return self._sessions[person]
