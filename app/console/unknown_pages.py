"""The page in place of pages that do not exist."""

from __future__ import annotations

from fastapi import Response

from app.console.route import pages
from app.errors import NotFound

router = pages()


@router.get("/{path:path}")
async def unknown_page(path: str) -> Response:
    """Say that there is no such page. Visitors need no key, because the answer is the same for all."""
    raise NotFound(f"the console has no page {path}")
