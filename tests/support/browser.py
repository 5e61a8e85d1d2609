"""Opens the console in a real Chromium, and checks its pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from required import missing
from waiting import LIMIT_SECONDS

WIDTHS = (390, 1024, 1600)
"""Widths of a phone, a tablet and a screen, in pixels."""

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
    browser: Browser, base_url: str, *, width: int = 1024, scheme: Literal["light", "dark"] = "light"
) -> BrowserContext:
    """Return a new window without cookies. Requests to other hosts, errors of scripts, and
    violations of the content security policy fail the test.

    Args:
        browser: the browser.
        base_url: address of the service.
        width: width of the window in pixels.
        scheme: what the user prefers.
    """
    context = browser.new_context(
        base_url=base_url,
        viewport={"width": width, "height": 800 if width > 500 else 844},
        color_scheme=scheme,
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="Europe/Paris",
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
    page.emulate_media(color_scheme="light")
    _require_accessible(page, {"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]})
    page.emulate_media(color_scheme="dark")  # only colors differ
    _require_accessible(page, {"runOnly": {"type": "rule", "values": ["color-contrast"]}})


def _require_accessible(page: Page, options: dict[str, Any]) -> None:
    results = Axe().run(page, options=options)
    assert results.violations_count == 0, f"{page.url}: {results.generate_report()}"
