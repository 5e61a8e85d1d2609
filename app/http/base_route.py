"""The base of every route: dependencies, the route class, and the documented responses."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any, TypeAlias

from anyio import to_thread
from fastapi import APIRouter, Depends, Request, Response
from fastapi.routing import APIRoute

from app.context import AppContext
from app.http.errors import ERRORS, PROBLEM_JSON, Problem, TooLarge, Unsupported
from app.http.guards import Scope, check_before_body, require
from app.http.json_body import LARGE_BYTES, JsonRequest, check_text, escape, refuse_encoding
from app.http.schemas import MaxItems
from app.http.validation import BodyValidator


def _context(request: Request) -> AppContext:
    context: AppContext = request.app.state.context
    return context


Context = Annotated[AppContext, Depends(_context)]

ReadScope = Depends(require("read"))
PredictScope = Depends(require("predict"))
TrainScope = Depends(require("train"))
AdminScope = Depends(require("admin"))

SCOPES: Mapping[Any, Scope] = {
    ReadScope.dependency: "read",
    PredictScope.dependency: "predict",
    TrainScope.dependency: "train",
    AdminScope.dependency: "admin",
}
"""Scope that each guard requires."""


Handler: TypeAlias = Callable[[Request], Coroutine[Any, Any, Response]]

_SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}


class StrictJSONRoute(APIRoute):
    """A route that reads JSON bodies strictly and leaves out response fields without a value."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        options["response_model_exclude_none"] = True
        super().__init__(path, endpoint, **options)

    def get_route_handler(self) -> Handler:
        """Return the function that handles a request."""
        handler = self._json_handler(super().get_route_handler())
        changes_state = not _SAFE_METHODS.issuperset(self.methods or ())
        media_types = self._media_types()

        async def handle(request: Request) -> Response:
            _check_parameters(request)
            if changes_state:
                # An unauthorized request fails before the service reads its body.
                for dependency in self.dependencies:
                    guard = dependency.dependency
                    if guard is not None and guard in SCOPES:
                        await check_before_body(request, guard)
                _check_media_type(request, media_types)
            return await handler(request)

        return handle

    def _json_handler(self, handler: Handler) -> Handler:
        """Return a handler that parses the body strictly; the same handler if FastAPI reads no body."""
        if self.body_field is None:
            return handler
        body_type: Any = self.body_field.field_info.annotation
        max_items: MaxItems = getattr(body_type, "max_items", {})
        documents: frozenset[str] = getattr(body_type, "documents", frozenset())
        validator = BodyValidator(body_type)

        async def strict(request: Request) -> Response:
            refuse_encoding(request)
            parsed = JsonRequest(request, documents)
            if body := await parsed.body():
                given = await parsed.json()
                _check_lengths(given, max_items, request)
                if len(body) > LARGE_BYTES:
                    parsed.replace(await to_thread.run_sync(validator.validate, given))
                else:
                    parsed.replace(validator.validate(given, body))
            return await handler(parsed)  # reports a missing body

        return strict

    def _media_types(self) -> frozenset[str]:
        """Return the documented media types of the body; empty if the operation reads no body."""
        documented = (self.openapi_extra or {}).get("requestBody", {}).get("content", ())
        return frozenset(documented or (["application/json"] if self.body_field is not None else []))


def _check_parameters(request: Request) -> None:
    """Reject control characters in the path and the query. They arrive percent-encoded.

    Raises:
        Invalid: a parameter contains a control character.
    """
    for name, value in request.path_params.items():
        check_text(str(value), f"/path/{escape(name)}")
    for name, value in request.query_params.multi_items():
        check_text(name + value, f"/query/{escape(name)}")


def _check_media_type(request: Request, media_types: frozenset[str]) -> None:
    """Reject bodies of other media types than the documented ones.

    A missing Content-Type is rejected too: a web page can send such a request, or a form, to any service
    without the consent of the user. For an operation without a body, JSON is ignored, because some clients
    always send it.

    Raises:
        Unsupported: the media type is missing or not documented.
    """
    given = request.headers.get("content-type")
    kind = (given or "").split(";")[0].strip().lower()
    if kind in media_types or (not media_types and kind == "application/json"):
        return
    headers = request.headers
    if given is None and headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
        return
    remedy = f"send {' or '.join(sorted(media_types))}" if media_types else "send no body"
    raise Unsupported(f"{kind or 'a body without Content-Type'} is not supported here; {remedy}")


def _check_lengths(body: Any, max_items: MaxItems, request: Request) -> None:
    for field, limit in max_items.items():
        given = body.get(field) if isinstance(body, dict) else None
        most = limit(_context(request).settings)
        if isinstance(given, list | dict) and len(given) > most:
            message = f"{field} has {len(given):,} entries; the limit is {most:,}"
            raise TooLarge(message, errors=[(f"/{field}", message)])


def resource(tag: str) -> APIRouter:
    """Create the router of one resource. Its operation ids are ``<tag>_<function>``."""
    return APIRouter(
        prefix="/v1",
        tags=[tag],
        route_class=StrictJSONRoute,
        generate_unique_id_function=lambda route: f"{tag}_{route.name}",
        responses=responses(400, 401, 403, 408, 413, 415, 422, 429, 431, 500, 503),
    )


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Document the error responses of an operation."""
    return {
        status: {"model": Problem, "description": ERRORS[status].description, "content": {PROBLEM_JSON: {}}}
        for status in statuses
    }


def response_headers(status: int, *names: str) -> dict[int | str, dict[str, Any]]:
    """Document headers of a successful response; ``app.http.openapi`` describes them."""
    return {status: {"headers": {name: {} for name in names}}}
