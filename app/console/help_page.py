"""The page that explains the words of the console. Visitors who are signed in can read it."""

from __future__ import annotations

from fastapi import Request, Response

from app.api.base_route import ReadOrReview
from app.console.measures import MAIN_MEASURES
from app.console.rendering import page
from app.console.route import pages

router = pages("/help")


@router.get("", dependencies=[ReadOrReview])
def help_(request: Request) -> Response:
    """Show the help."""
    return page(request, "help.html", measures=MAIN_MEASURES.values())
