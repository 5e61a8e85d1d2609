"""Takes the pictures of the console in the README and in ``docs/console.md``.

    python -m benchmarks.console_pictures

It starts a service of its own, and needs Chromium.
"""

from __future__ import annotations

import io
import json
import tempfile
from itertools import islice
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page

ROOT = Path(__file__).parents[1]

import console_tour  # noqa: E402
from browser import chromium, new_context  # noqa: E402
from stack import Stack  # noqa: E402

PICTURES = ROOT / "docs/images"
WIDTH, HEIGHT = 1024, 1000
COLORS = 64
REVIEWED = 30


def main() -> None:
    """Take the pictures and store them."""
    with tempfile.TemporaryDirectory() as folder:
        stack = Stack(Path(folder) / "data").start()
        try:
            with chromium() as browser:
                context = new_context(browser, stack.url, width=WIDTH)
                page = context.new_page()
                console_tour.upload(page)
                take(page, "console-dataset")
                console_tour.train(page)
                take(page, "console-version")
                console_tour.create_router(page)
                console_tour.route(page)
                take(page, "console")
                review(stack)
                page.get_by_role("link", name="Review queue").first.click()
                take(page, "console-review")
                page.get_by_role("link", name="Make a data set").first.click()
                take(page, "console-corrections", height=600)
                context.close()
        finally:
            stack.stop()


def take(page: Page, name: str, *, height: int = HEIGHT) -> None:
    """Store a picture of the top of a page."""
    page.set_viewport_size({"width": WIDTH, "height": height})
    page.wait_for_load_state("networkidle")
    page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    picture = page.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": height})
    path = PICTURES / f"{name}.png"
    path.parent.mkdir(exist_ok=True)
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLORS).save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")


def review(stack: Stack) -> None:
    """Let the router keep messages, route some of the demo, and give feedback on all but a few."""
    path = "/v1/routers/frontdesk"
    router = stack.call("GET", path, 200)
    rules = ("model", "fallback", "destinations", "review_below")
    stack.call("PUT", path, 200, json={rule: router[rule] for rule in rules} | {"keep_messages": "all"})
    lines = islice(console_tour.MESSAGES.open(encoding="utf-8"), REVIEWED)
    for number, row in enumerate(map(json.loads, lines)):
        decision = stack.call("POST", f"{path}/message-parts", 200, json={"email": row["email"]})
        if number % 3:
            feedback = f"/v1/decisions/{decision['decision_id']}/feedback"
            stack.call("POST", feedback, 200, json={"labels": row["labels"]})


if __name__ == "__main__":
    main()
