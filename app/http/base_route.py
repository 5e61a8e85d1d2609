"""What every route shares: dependencies, the route class, the documented errors."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError

from app.context import AppContext
from app.http.errors import PROBLEM_JSON, Problem, TooLarge
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
"""What each guard asks for."""


class StrictJSONRoute(APIRoute):
    """A route whose answers leave out fields that have no value, and whose JSON bodies are read strictly."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        options["response_model_exclude_none"] = True
        super().__init__(path, endpoint, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers a request."""
        handler = super().get_route_handler()
        if self.body_field is None:
            return handler
        body_type: Any = self.body_field.field_info.annotation
        longest = getattr(body_type, "longest", {})
        strictly = TypeAdapter[Any](body_type)

        async def strict(request: Request) -> Response:
            # Who may not ask at all is told so before the body is read.
            for dependency in self.dependencies:
                guard = dependency.dependency
                if guard is not None and guard in SCOPES:
                    await check_before_body(request, guard)
            parsed = await expect_json(request)
            if body := await parsed.body():
                given = await parsed.json()
                _expect_short(given, longest, request)
                _expect_types(body, given, strictly)
            return await handler(parsed)

        return strict


def _expect_short(body: Any, longest: Mapping[str, Callable[[Settings], int]], request: Request) -> None:
    for field, limit in longest.items():
        given = body.get(field) if isinstance(body, dict) else None
        most = limit(_context(request).settings)
        if isinstance(given, list | dict) and len(given) > most:
            message = f"{field} may have {most:,} entries, these are {len(given):,}"
            raise TooLarge(message, errors=[(f"/{field}", message)])


_TAKEN_FOR_ANOTHER = {"bool_type", "int_type", "float_type"}


def _expect_types(body: bytes, given: Any, strictly: TypeAdapter[Any]) -> None:
    """Refuse what FastAPI would take for another type than it is: 0 for false, "5" for 5, true for 1.0.

    All else that is wrong with the body is left to FastAPI, and a whole number may be written as 5.0.
    """
    try:
        strictly.validate_json(body, strict=True)
    except ValidationError as error:
        wrong = [
            {**item, "loc": ("body", *item["loc"])}
            for item in error.errors()
            if item["type"] in _TAKEN_FOR_ANOTHER and not _is_whole(item["input"])
        ]
        if wrong:
            raise RequestValidationError(wrong, body=given) from error


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


def resource(tag: str) -> APIRouter:
    """A router for one resource; its operations are called ``<tag>_<function>``."""
    return APIRouter(
        prefix="/v1",
        tags=[tag],
        route_class=StrictJSONRoute,
        generate_unique_id_function=lambda route: f"{tag}_{route.name}",
        responses=responses(400, 401, 403, 413, 415, 422, 429, 431, 500, 503),
    )


STATUS_DESCRIPTIONS = {
    400: "The request cannot be understood.",
    401: "A key is needed, or the one given opens nothing.",
    403: "The key lacks the scope.",
    404: "There is no such thing.",
    405: "The path exists, the method does not.",
    406: "There is no form of it that the client accepts.",
    409: "Not in this state.",
    412: "If-Match names another revision.",
    413: "More than a limit allows.",
    415: "A media type or encoding that is not read here.",
    416: "There are no such bytes.",
    422: "Well formed, and not possible as asked.",
    429: "The key has asked for too much; `Retry-After` says when to ask again.",
    431: "More bytes of headers than the limit allows.",
    500: "A fault of the service.",
    503: "Not now.",
}


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Documents error answers of an operation."""
    return {
        status: {"model": Problem, "description": STATUS_DESCRIPTIONS[status], "content": {PROBLEM_JSON: {}}}
        for status in statuses
    }


def response_headers(status: int, *names: str) -> dict[int | str, dict[str, Any]]:
    """Documents headers of a good answer; ``app.http.openapi`` describes them."""
    return {status: {"headers": {name: {} for name in names}}}
