"""Pages to sign in and out, with an API key or by the OpenID provider."""

from __future__ import annotations

import hmac
import re
import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote, unquote, urlsplit

from fastapi import Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from app.api.base_route import Context
from app.api.errors import Unauthorized, status_of
from app.api.request_head import RequestHead, check_media_type, head_of
from app.console.rendering import page
from app.console.route import pages
from app.console.sessions import COOKIE, COOKIE_LIFETIME, ConsoleSessions, require_csrf_token
from app.errors import Forbidden, NotFound, ServiceError
from app.threads import REQUESTS
from app.users import service as users

if TYPE_CHECKING:
    from app.users.openid import OpenIdProvider

router = pages()

ATTEMPT_COOKIE = "covey_sign_in"
"""Name of the cookie with the secret of an attempt to sign in by the provider, and the page that follows."""

ATTEMPT_SECONDS = 900
"""Maximum time between the start of a sign-in and the return from the provider."""

_FORM = ("application/x-www-form-urlencoded",)

_PAGE = re.compile(r"/console(?:[/?][!-\[\]-~]*)?")
"""A page of the console. Browsers read a backslash as a slash, and two slashes as the start of a host."""


@router.get("/sign-in")
async def sign_in_page(request: Request, next: str = "") -> Response:  # noqa: A002 - a parameter of the query
    """Show the form, or go on if the service requires no key."""
    if await request.app.state.authenticator.allows_anonymous():
        return _redirect(request, next)
    sessions: ConsoleSessions = request.app.state.console_sessions
    try:
        await sessions.caller(head_of(request), changes_state=False)
    except Unauthorized as ended:
        return _form(request, next, ended=ended.detail)
    return _form(request, next)


@router.post("/sign-in")
async def sign_in(
    request: Request,
    key: Annotated[str, Form()],
    next: Annotated[str, Form()] = "",  # noqa: A002 - a field of the form
) -> Response:
    """Open a session for an API key."""
    check_media_type(head_of(request), _FORM)
    if _is_foreign(head_of(request)):
        raise Forbidden("only the page of the console can sign in", code="foreign_origin")
    sessions: ConsoleSessions = request.app.state.console_sessions
    token = await sessions.open(key.strip())
    if token is None:
        return _form(request, next, HTTPStatus.UNAUTHORIZED, failed=True)
    return _signed_in(request, token, next)


@router.get("/sign-in/provider")
async def begin_sign_in(request: Request, next: str = "") -> Response:  # noqa: A002 - a parameter of the query
    """Lead to the OpenID provider."""
    secret = secrets.token_urlsafe(32)
    try:
        url = await _provider(request).authorization_url(secret, _callback(request))
    except ServiceError as error:
        return _form(request, next, status_of(error), problem=error.detail)
    response = RedirectResponse(url, HTTPStatus.SEE_OTHER)
    response.set_cookie(
        ATTEMPT_COOKIE,
        f"{secret}.{quote(next[:1000], safe='')}",
        max_age=ATTEMPT_SECONDS,
        path=_attempt_path(request),
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )
    return response


@router.get("/sign-in/callback")
async def end_sign_in(
    ctx: Context,
    request: Request,
    state: Annotated[str, Query(max_length=200)] = "",
    code: Annotated[str, Query(max_length=8000)] = "",
    error: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Open a session for a person whom the OpenID provider sends back."""
    secret, _, target = (head_of(request).cookie(ATTEMPT_COOKIE) or "").partition(".")
    next_page = unquote(target)
    provider = _provider(request)
    try:
        if not secret or not hmac.compare_digest(state.encode(), provider.state(secret).encode()):
            raise Forbidden("this sign-in has ended, or another window has begun one since; sign in again")
        if error or not code:
            raise Forbidden("the identity provider did not sign you in")
        identity = await provider.identify(secret, code, _callback(request))
        user = await REQUESTS.run(users.sign_in, ctx.db, ctx.settings, identity)
        sessions: ConsoleSessions = request.app.state.console_sessions
        response: Response = _signed_in(request, await sessions.open_for_user(user.id), next_page)
    except ServiceError as problem:
        response = _form(request, next_page, status_of(problem), problem=problem.detail)
    response.delete_cookie(ATTEMPT_COOKIE, path=_attempt_path(request))
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


def _provider(request: Request) -> OpenIdProvider:
    provider: OpenIdProvider | None = getattr(request.app.state, "openid", None)
    if provider is None:
        raise NotFound("this service has no OpenID provider; sign in with an API key")
    return provider


def _callback(request: Request) -> str:
    """Return the address to which the provider sends people back."""
    return f"{str(request.base_url).rstrip('/')}/console/sign-in/callback"


def _attempt_path(request: Request) -> str:
    return f"{request.scope.get('root_path', '')}/console/sign-in"


def _signed_in(request: Request, token: str, target: str) -> Response:
    """Lead to the page that follows a sign-in, with the cookie of the session."""
    response = _redirect(request, target)
    response.set_cookie(
        COOKIE,
        token,
        max_age=int(COOKIE_LIFETIME.total_seconds()),
        path=request.scope.get("root_path", "") or "/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )
    return response


def _form(
    request: Request,
    target: str,
    status: int = HTTPStatus.OK,
    *,
    failed: bool = False,
    ended: str | None = None,
    problem: str | None = None,
) -> Response:
    """Show the form. The browser must send its origin with the form, so the page has a policy of its own.

    Args:
        request: the request.
        target: the page that follows.
        status: status of the response.
        failed: whether the API key was wrong.
        ended: why the last session of the browser has ended; None if it has not.
        problem: why the provider has not signed the person in; None if that was not tried.
    """
    return page(
        request,
        "sign_in.html",
        status=status,
        headers={"Referrer-Policy": "same-origin"},
        next=target,
        failed=failed,
        ended=ended,
        problem=problem,
    )


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
