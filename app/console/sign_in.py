"""Pages to sign in and out."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Form, Request, Response
from fastapi.responses import RedirectResponse

from app.console.rendering import page
from app.console.route import pages
from app.console.sessions import COOKIE, LIFETIME, ConsoleSessions, require_csrf_token
from app.http.errors import Forbidden
from app.http.request_head import check_media_type, head_of

router = pages()

_FORM = ("application/x-www-form-urlencoded",)


@router.get("/sign-in")
async def sign_in_page(request: Request, next: str = "") -> Response:  # noqa: A002 - a parameter of the query
    """Show the form, or go on if the service requires no key."""
    if await request.app.state.authenticator.allows_anonymous():
        return _redirect(request, next)
    return page(request, "sign_in.html", next=next, failed=False)


@router.post("/sign-in")
async def sign_in(
    request: Request,
    key: Annotated[str, Form()],
    next: Annotated[str, Form()] = "",  # noqa: A002 - a field of the form
) -> Response:
    """Open a session."""
    check_media_type(head_of(request), _FORM)
    if head_of(request).get(b"sec-fetch-site") in {"cross-site", "same-site"}:
        raise Forbidden("only the page of the console can sign in", code="foreign_origin")
    sessions: ConsoleSessions = request.app.state.console_sessions
    token = await sessions.open(key.strip())
    if token is None:
        return page(request, "sign_in.html", status=HTTPStatus.UNAUTHORIZED, next=next, failed=True)
    response = _redirect(request, next)
    response.set_cookie(
        COOKIE,
        token,
        max_age=int(LIFETIME.total_seconds()),
        path=request.scope.get("root_path", "") or "/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )
    return response


@router.post("/sign-out")
async def sign_out(request: Request, csrf: Annotated[str, Form()]) -> Response:
    """Close the session."""
    check_media_type(head_of(request), _FORM)
    token = head_of(request).cookie(COOKIE)
    if token:
        require_csrf_token(token, csrf)
        sessions: ConsoleSessions = request.app.state.console_sessions
        await sessions.close(token)
    response = _redirect(request, f"{request.scope.get('root_path', '')}/console/sign-in")
    response.delete_cookie(COOKIE, path=request.scope.get("root_path", "") or "/")
    return response


def _redirect(request: Request, target: str) -> RedirectResponse:
    """Lead to a page of the service; to the first page if the target is elsewhere."""
    parts = urlsplit(target)
    is_own = not parts.scheme and not parts.netloc and "\\" not in target
    if not is_own or not parts.path.startswith(f"{request.scope.get('root_path', '')}/"):
        target = f"{request.scope.get('root_path', '')}/console"
    return RedirectResponse(target, HTTPStatus.SEE_OTHER)
