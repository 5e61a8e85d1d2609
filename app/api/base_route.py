"""The base of every route: dependencies, the route class, and the documented responses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Depends, Request, Response
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.datastructures import QueryParams
from starlette.types import Scope as AsgiScope

from app.api.errors import BY_STATUS, MAX_ERRORS, PROBLEM_JSON
from app.api.guards import SAFE_METHODS, Scope, authorize, require
from app.api.json_body import check_text, pointer
from app.api.proxies import root_path
from app.api.request_head import RequestHead, check_media_type, head_of, refuse_encoding
from app.api.validation import BodyValidator
from app.api.validation_errors import describe_unknown
from app.context import AppContext
from app.errors import Invalid


def _context(request: Request) -> AppContext:
    context: AppContext = request.app.state.context
    return context


Context = Annotated[AppContext, Depends(_context)]

ReadScope = Depends(require("read"))
ReadOrReview = Depends(require("read", "review"))
PredictScope = Depends(require("predict"))
PredictOrReview = Depends(require("predict", "review"))
TrainScope = Depends(require("train"))
TrainOrReview = Depends(require("train", "review"))
AdminScope = Depends(require("admin"))

SCOPES: Mapping[Any, tuple[Scope, ...]] = {
    ReadScope.dependency: ("read",),
    ReadOrReview.dependency: ("read", "review"),
    PredictScope.dependency: ("predict",),
    PredictOrReview.dependency: ("predict", "review"),
    TrainScope.dependency: ("train",),
    TrainOrReview.dependency: ("train", "review"),
    AdminScope.dependency: ("admin",),
}
"""Scopes of each guard, of which one suffices."""


ALSO_ACCEPTED = "x-also-accepted"
"""Keyword with other schemas of a value, or other content of a body, that the service accepts, but generated
clients do not offer."""

Handler: TypeAlias = Callable[[Request], Coroutine[Any, Any, Response]]


class _ValidatedRequest(Request):
    """A request with a body that is parsed and validated already. FastAPI accepts the value as it is."""

    value: Any

    def __init__(self, request: Request) -> None:
        super().__init__(request.scope, request.receive)

    async def json(self) -> Any:
        """Return the validated body."""
        return self.value


class StrictJSONRoute(APIRoute):
    """A route that reads queries and JSON bodies strictly, and leaves out response fields without a value."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        options["response_model_exclude_none"] = True
        super().__init__(path, endpoint, **options)
        guards = [dependency.dependency for dependency in self.dependencies]
        self._scopes = [SCOPES[guard] for guard in guards if guard in SCOPES]
        self._changes_state = not SAFE_METHODS.issuperset(self.methods or ())
        self._media_types = self._documented_media_types()
        parameters = get_flat_params(self.dependant)
        self._parameters = sorted(item.alias for item in parameters if isinstance(item.field_info, Query))

    async def check(self, scope: AsgiScope) -> None:
        """Check what is the same for all operations: the key, the texts of the URL, and the media type.

        Raises:
            ServiceError: the request must not reach the endpoint.
        """
        head: RequestHead = scope["state"]["head"]
        # An unauthorized request fails before the service checks its parameters and reads its body.
        for required in self._scopes:
            await authorize(scope, head.bearer, required)
        for name, value in scope["path_params"].items():
            check_text(str(value), "path", name)  # it can be percent-encoded
        if query := scope["query_string"]:
            _check_query(QueryParams(query).multi_items(), self._parameters)
        if self._changes_state:
            check_media_type(head, self._media_types)

    def get_route_handler(self) -> Handler:
        """Return the function that handles a request."""
        handler = self._json_handler(super().get_route_handler())

        async def handle(request: Request) -> Response:
            await self.check(request.scope)
            response = await handler(request)
            if "Location" in response.headers:
                response.headers["Location"] = f"{root_path(request)}{response.headers['Location']}"
            return response

        return handle

    def _json_handler(self, handler: Handler) -> Handler:
        """Return a handler that parses the body strictly; the same handler if FastAPI reads no body."""
        if self.body_field is None:
            return handler
        validator = BodyValidator(self.body_field.field_info.annotation)

        async def strict(request: Request) -> Response:
            refuse_encoding(head_of(request))
            validated = _ValidatedRequest(request)
            if body := await validated.body():
                validated.value = await validator.read(body, _context(request).settings)
            return await handler(validated)  # reports a missing body

        return strict

    def _documented_media_types(self) -> frozenset[str]:
        """Return the documented media types of the body; empty if the operation reads no body."""
        body = (self.openapi_extra or {}).get("requestBody", {})
        documented = [*body.get("content", ()), *body.get(ALSO_ACCEPTED, ())]
        return frozenset(documented or (["application/json"] if self.body_field is not None else []))


def _check_query(given: Sequence[tuple[str, str]], known: Sequence[str]) -> None:
    """Check the names and the texts of a query, in which unknown parameters would otherwise be ignored.

    Raises:
        Invalid: a parameter contains a control character, is unknown, or is given more than once.
    """
    for name, value in given:
        check_text(name + value, "query", name)
    errors = []
    for name, count in Counter(name for name, _ in given).items():
        if not known:
            message = "is unknown; this operation has no query parameters"
        elif name not in known:
            message = describe_unknown(name, known, "parameter")
        elif count > 1:
            message = f"is given {count} times; give it once"
        else:
            continue
        errors.append((pointer(["query", name]), message))
    if errors:
        detail = "; ".join(f"{place}: {message}" for place, message in errors[:3])
        raise Invalid(detail, errors=errors[:MAX_ERRORS])


def resource(tag: str) -> APIRouter:
    """Create the router of one resource. Its operation ids are ``<tag>_<function>``."""
    return APIRouter(
        prefix="/v1",
        tags=[tag],
        route_class=StrictJSONRoute,
        generate_unique_id_function=lambda route: f"{tag}_{route.name}",
        responses=responses(400, 401, 403, 408, 413, 415, 422, 429, 431, 500, 503),
    )


def json_body(model: type[BaseModel]) -> dict[str, Any]:
    """Document the JSON body of an operation that reads its body itself, for ``openapi_extra``."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Document the error responses of an operation.

    ``app.api.openapi`` adds their schema: FastAPI would build a validator for each of a thousand responses.
    """
    return {
        status: {
            "description": BY_STATUS[status].description,
            "content": {PROBLEM_JSON: {}},
        }
        for status in statuses
    }


def response_headers(status: int, *names: str) -> dict[int | str, dict[str, Any]]:
    """Document headers of a successful response; ``app.api.openapi`` describes them."""
    return {status: {"headers": {name: {} for name in names}}}
