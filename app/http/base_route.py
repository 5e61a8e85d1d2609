"""The base of every route: dependencies, the route class, and the documented responses."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError

from app.context import AppContext
from app.http.errors import ERRORS, PROBLEM_JSON, Problem, TooLarge
from app.http.guards import Scope, check_before_body, require
from app.http.json_body import expect_json
from app.settings import Settings


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


class StrictJSONRoute(APIRoute):
    """A route that reads JSON bodies strictly and leaves out response fields without a value."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        options["response_model_exclude_none"] = True
        super().__init__(path, endpoint, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function that handles a request."""
        handler = super().get_route_handler()
        if self.body_field is None:
            return handler
        body_type: Any = self.body_field.field_info.annotation
        max_items = getattr(body_type, "max_items", {})
        strictly = TypeAdapter[Any](body_type)

        async def strict(request: Request) -> Response:
            # An unauthorized request fails before the service reads its body.
            for dependency in self.dependencies:
                guard = dependency.dependency
                if guard is not None and guard in SCOPES:
                    await check_before_body(request, guard)
            parsed = await expect_json(request)
            if body := await parsed.body():
                given = await parsed.json()
                _check_lengths(given, max_items, request)
                _check_types(body, given, strictly)
            return await handler(parsed)

        return strict


def _check_lengths(body: Any, max_items: Mapping[str, Callable[[Settings], int]], request: Request) -> None:
    for field, limit in max_items.items():
        given = body.get(field) if isinstance(body, dict) else None
        most = limit(_context(request).settings)
        if isinstance(given, list | dict) and len(given) > most:
            message = f"{field} has {len(given):,} entries; the limit is {most:,}"
            raise TooLarge(message, errors=[(f"/{field}", message)])


_CONVERTED = {"bool_type", "int_type", "float_type"}


def _check_types(body: bytes, given: Any, strictly: TypeAdapter[Any]) -> None:
    """Reject values that FastAPI would convert to another type: 0 to false, "5" to 5, true to 1.0.

    FastAPI reports every other fault of the body. A whole number can be written as 5.0.
    """
    try:
        strictly.validate_json(body, strict=True)
    except ValidationError as error:
        wrong = [
            {**item, "loc": ("body", *item["loc"])}
            for item in error.errors()
            if item["type"] in _CONVERTED and not _is_whole(item["input"])
        ]
        if wrong:
            raise RequestValidationError(wrong, body=given) from error


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


def resource(tag: str) -> APIRouter:
    """Create the router of one resource. Its operation ids are ``<tag>_<function>``."""
    return APIRouter(
        prefix="/v1",
        tags=[tag],
        route_class=StrictJSONRoute,
        generate_unique_id_function=lambda route: f"{tag}_{route.name}",
        responses=responses(400, 401, 403, 413, 415, 422, 429, 431, 500, 503),
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
