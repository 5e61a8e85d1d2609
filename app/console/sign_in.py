"""Pages to sign in and out."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Form, Request, Response
from fastapi.responses import RedirectResponse

from app.api.request_head import RequestHead, check_media_type, head_of
from app.console.rendering import page
from app.console.route import pages
from app.console.sessions import COOKIE, LIFETIME, ConsoleSessions, require_csrf_token
from app.errors import Forbidden

router = pages()

_FORM = ("application/x-www-form-urlencoded",)

_PAGE = re.compile(r"/console(?:[/?][!-\[\]-~]*)?")
"""A page of the console. Browsers read a backslash as a slash, and two slashes as the start of a host."""


@router.get("/sign-in")
async def sign_in_page(request: Request, next: str = "") -> Response:  # noqa: A002 - a parameter of the query
    """Show the form, or go on if the service requires no key."""
    if await request.app.state.authenticator.allows_anonymous():
        return _redirect(request, next)
    return _form(request, next)


@router.post("/sign-in")
async def sign_in(
    request: Request,
    key: Annotated[str, Form()],
    next: Annotated[str, Form()] = "",  # noqa: A002 - a field of the form
) -> Response:
    """Open a session."""
    check_media_type(head_of(request), _FORM)
    if _is_foreign(head_of(request)):
        raise Forbidden("only the page of the console can sign in", code="foreign_origin")
    sessions: ConsoleSessions = request.app.state.console_sessions
    token = await sessions.open(key.strip())
    if token is None:
        return _form(request, next, HTTPStatus.UNAUTHORIZED)
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


def _form(request: Request, target: str, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """Show the form. The browser must send its origin with the form, so the page has a policy of its own."""
    headers = {"Referrer-Policy": "same-origin"}
    failed = status != HTTPStatus.OK
    return page(request, "sign_in.html", status=status, headers=headers, next=target, failed=failed)


def _is_foreign(head: RequestHead) -> bool:
    """Whether a page of another site sends the form. Browsers name the site only with HTTPS or localhost."""
    site = head.get(b"sec-fetch-site")
    if site is not None:
        return site in {"cross-site", "same-site"}
    origin = head.get(b"origin")
    return origin is not None and urlsplit(origin).netloc not in head.hosts()


def _redirect(request: Request, target: str) -> RedirectResponse:
    """Lead to a page of the console; to the first page if the target is elsewhere."""
    root = request.scope.get("root_path", "")
    if not target.startswith(root) or not _PAGE.fullmatch(target, len(root)):
        target = f"{root}/console"
    return RedirectResponse(target, HTTPStatus.SEE_OTHER)
