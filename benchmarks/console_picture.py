"""Takes the picture of the console in the README: the decision on a message, with the deciding words.

    python -m benchmarks.console_picture

It starts a service of its own, and needs Chromium.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]

import console_tour  # noqa: E402
from browser import chromium, new_context  # noqa: E402
from stack import Stack  # noqa: E402

PICTURE = ROOT / "docs/images/console.png"
WIDTH, HEIGHT = 1024, 1000
COLORS = 64


def main() -> None:
    """Take the picture and store it."""
    with tempfile.TemporaryDirectory() as folder:
        stack = Stack(Path(folder) / "data").start()
        try:
            with chromium() as browser:
                context = new_context(browser, stack.url, width=WIDTH)
                page = context.new_page()
                console_tour.upload(page)
                console_tour.train(page)
                console_tour.create_router(page)
                console_tour.route(page)
                page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
                page.locator("#result").scroll_into_view_if_needed()
                page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
                picture = page.screenshot(
                    full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT}
                )
                context.close()
        finally:
            stack.stop()
    PICTURE.parent.mkdir(exist_ok=True)
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLORS).save(PICTURE, optimize=True)
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
