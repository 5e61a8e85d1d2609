"""HTTP routes of routers, messages and decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Literal, TypeAlias

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse

from app.api.base_route import (
    ALSO_ACCEPTED,
    Context,
    PredictOrReview,
    PredictScope,
    ReadOrReview,
    ReadScope,
    TrainOrReview,
    TrainScope,
    json_body,
    resource,
    response_headers,
    responses,
)
from app.api.direct_routes import Direct, DirectRequest, JsonResponse, direct_post
from app.api.etags import IfMatch
from app.api.guards import actor_of, has_scope
from app.api.json_body import parse
from app.api.paging import ListFilter, NameFilter, PageQuery
from app.api.request_head import refuse_encoding
from app.api.schemas import DecisionId, RouterName
from app.api.validation import MAX_VALUES, BodyValidator
from app.errors import Forbidden, Invalid, TooLarge
from app.pages.report import choose_format
from app.routing import decisions as recorded
from app.routing import reviews, router_versions, service
from app.routing.decision_export import export
from app.routing.decision_query import DecisionQuery
from app.routing.kept_messages import OriginalMessage
from app.routing.message_router import MessageRouter
from app.routing.raw_messages import read_raw_body
from app.routing.schemas import (
    Decision,
    DecisionPage,
    EffectiveThresholds,
    Feedback,
    MessageParts,
    RecordedDecision,
    Review,
    ReviewPut,
    Router,
    RouterPage,
    RouterPut,
)
from app.serving.dependencies import Loaded
from app.serving.instances import read_json_email
from app.threads import REQUESTS, STORAGE
from models.mail import MailDocument

router = resource("routers")
decisions = resource("decisions")

_PARTS = BodyValidator(MessageParts)
_PARTS_BODY = json_body(MessageParts)
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_RAW_MEDIA_TYPES = {
    "application/octet-stream": _BINARY,
    "message/rfc822": _BINARY,
    "message/global": _BINARY,
}
DecisionFormat: TypeAlias = Literal["json", "ndjson", "csv"]
_FORMATS: Mapping[DecisionFormat, str] = {
    "json": "application/json",
    "ndjson": "application/x-ndjson",
    "csv": "text/csv",
}
Explain = Annotated[
    bool | None,
    Query(
        description="Whether to return the terms that contribute most to the predicted labels. "
        "Default: the setting of the router."
    ),
]


@router.put(
    "/routers/{name}",
    dependencies=[TrainScope],
    responses={**responses(409, 412), **response_headers(200, "ETag")},
    response_description="The router.",
)
def put(
    ctx: Context,
    loaded: Loaded,
    response: Response,
    name: RouterName,
    body: RouterPut,
    if_match: IfMatch = None,
) -> Router:
    """Create or replace a router.

    Its model, version and shadow must exist. The version is loaded and verified first. If its file is missing
    or damaged, or the storage is slow or unavailable, the router does not change, and the response is 503.
    """
    return _with_etag(response, router_versions.put(ctx.db, loaded, name, body, if_match))


@router.get("/routers", dependencies=[ReadOrReview], response_description="A page of routers.")
def list(  # noqa: A001 - the verb of the operation's id
    ctx: Context, page: PageQuery, name: NameFilter = ""
) -> RouterPage:
    """List routers in order of their names."""
    return service.page(ctx.db, page, ListFilter(name))


@router.get(
    "/routers/{name}",
    dependencies=[ReadOrReview],
    responses={**responses(404), **response_headers(200, "ETag")},
    response_description="The router.",
)
def get(ctx: Context, response: Response, name: RouterName) -> Router:
    """Get a router. Its `ETag` is for the `If-Match` of a request that replaces the router."""
    return _with_etag(response, service.get(ctx.db, name))


@router.get(
    "/routers/{name}/thresholds",
    dependencies=[ReadScope],
    responses=responses(404),
    response_description="The thresholds of the router.",
)
def get_thresholds(ctx: Context, loaded: Loaded, name: RouterName) -> EffectiveThresholds:
    """Get the thresholds of a router.

    They are those with which the router now uses the labels of its version: fixed ones, those that follow
    from policies, with their precision and recall on held-out predictions, and those of the version.
    """
    return router_versions.thresholds(ctx.db, loaded, name)


@router.delete(
    "/routers/{name}",
    status_code=204,
    dependencies=[TrainScope],
    responses=responses(404, 409),
    response_description="The router is deleted; no content.",
)
def delete(ctx: Context, name: RouterName) -> None:
    """Delete a router.

    Its decisions are kept and can be read by their ids.
    """
    service.delete(ctx.db, name)


@direct_post(
    router,
    "/routers/{name}/messages",
    dependencies=[PredictScope],
    responses=responses(404, 409),
    response_description="The decision.",
    response_model=Decision,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": _RAW_MEDIA_TYPES,
            ALSO_ACCEPTED: _PARTS_BODY["requestBody"]["content"],
        }
    },
)
async def route_message(request: Direct, name: RouterName, explain: Explain = None) -> Response:
    """Route a raw message.

    Send the bytes of the message (RFC 5322). If you have only its parts, send `application/json` with the
    body of `POST /v1/routers/{name}/message-parts`; generated clients offer that operation instead. The
    response states the departments and destinations of the message; Covey does not deliver the message. The
    API records the decision before it returns it.

    A message without a word that the version knows is not rejected: it goes to the fallback, and the response
    lists its defects. A raw body that is JSON, a form or another file such as a PDF, or has neither a header
    field nor a text, is not a message: the API returns 400. If you send the same message again (same
    Message-ID and body), the API returns the first decision. Messages without Message-ID, subject and body
    are never the same.
    """
    if request.head.media_type == "application/json":
        return await route_message_parts(request, name, explain)
    refuse_encoding(request.head)
    body, truncated = await request.body_up_to(request.context.settings.max_message_bytes)
    original = OriginalMessage("message/rfc822", body, truncated)
    return await _route(request, name, lambda: read_raw_body(body, truncated), original, explain)


@direct_post(
    router,
    "/routers/{name}/message-parts",
    dependencies=[PredictScope],
    responses=responses(404, 409),
    response_description="The decision.",
    response_model=Decision,
    openapi_extra=_PARTS_BODY,
)
async def route_message_parts(request: Direct, name: RouterName, explain: Explain = None) -> Response:
    """Route a message as JSON: its parts, or the raw message in base64.

    If you have the raw message, prefer `POST /v1/routers/{name}/messages`: it accepts larger messages, and
    Covey reads them as it reads training data. Messages as parts have no Message-ID: two of them are the same
    message if their bodies are equal.
    """
    refuse_encoding(request.head)
    body, truncated = await request.body_up_to(limit := request.context.settings.max_body_bytes)
    if truncated:  # the limit of a raw message is larger
        raise TooLarge(f"a message as JSON is larger than the limit of {limit:,} bytes; send it as raw bytes")
    original = OriginalMessage("application/json", body)
    return await _route(request, name, lambda: _read_parts(body), original, explain)


async def _route(
    request: DirectRequest,
    name: str,
    read: Callable[[], MailDocument],
    original: OriginalMessage,
    explain: bool | None,
) -> Response:
    message_router: MessageRouter = request.state.message_router
    n_bytes = len(original.content)
    decision = await message_router.route(name, read, n_bytes=n_bytes, explain=explain, original=original)
    return JsonResponse(decision)


@router.get(
    "/routers/{name}/decisions",
    dependencies=[ReadOrReview],
    response_model=DecisionPage,
    responses={
        **responses(404, 406),
        200: {
            "content": {
                media: {"schema": {"type": "string"}} for form, media in _FORMATS.items() if form != "json"
            }
        },
    },
    response_description="A page of decisions, or all of them.",
)
async def list_decisions(
    ctx: Context,
    request: Request,
    response: Response,
    name: RouterName,
    conditions: DecisionQuery,
    page: PageQuery,
    format: Annotated[  # noqa: A002 - the parameter's name
        DecisionFormat | None,
        Query(
            description="`json` for a page; `ndjson` or `csv` for all decisions that meet the conditions, "
            "without `limit` and `cursor`. By default, the format that `Accept` prefers."
        ),
    ] = None,
) -> DecisionPage | Response:
    """List or export the decisions of a router that meet all given conditions, newest first.

    For example, `?review=any&feedback=none` lists the messages that wait for a person. A page can have
    fewer items than `limit`, or none, if few decisions meet all conditions: follow `next_cursor`.

    An export has a decision on each line, as in a page; or it is a table with the main fields for a
    spreadsheet, in which an apostrophe precedes texts that look like formulas. It ends without its last
    chunk if the service cannot continue.
    """
    if conditions.text is not None and not has_scope(request, "train", "review"):
        raise Forbidden("a search in kept messages needs the scope train or review; omit text")
    form = choose_format(request, response, _FORMATS, format)
    if form == "json":
        return await REQUESTS.run(recorded.page, ctx, name, conditions, page)
    if given := sorted({"limit", "cursor"} & request.query_params.keys()):
        message = f"is for pages; leave it out for an export as {form}"
        raise Invalid(f"{given[0]} {message}", errors=[(f"/query/{item}", message) for item in given])
    return StreamingResponse(
        await export(ctx, name, conditions, form),
        media_type=f"{_FORMATS[form]}; charset=utf-8",
        headers={"Vary": "Accept", "Content-Disposition": f'attachment; filename="{name}-decisions.{form}"'},
    )


@decisions.get(
    "/decisions/{decision_id}",
    name="get",
    dependencies=[ReadOrReview],
    responses=responses(404),
    response_description="The decision.",
)
def get_decision(ctx: Context, decision_id: DecisionId) -> RecordedDecision:
    """Get a decision."""
    return recorded.get(ctx.db, decision_id)


@decisions.get(
    "/decisions/{decision_id}/message",
    name="get_message",
    dependencies=[TrainOrReview],
    response_class=Response,
    responses={
        **responses(404),
        200: {
            "content": {"message/rfc822": _BINARY, "application/json": {"schema": {"type": "object"}}},
        },
    },
    response_description="The raw message, or the JSON body with its parts.",
)
async def get_message(ctx: Context, decision_id: DecisionId) -> Response:
    """Get the message of a decision, if the router keeps such messages.

    The message is as you sent it: raw, or an object with `email`.
    """
    message = await STORAGE.run(recorded.get_message, ctx, decision_id)
    return Response(message.content, media_type=message.media_type, headers={"Cache-Control": "no-store"})


@decisions.delete(
    "/decisions/{decision_id}",
    status_code=204,
    name="delete",
    dependencies=[TrainScope],
    responses=responses(404, 409),
    response_description="The decision is deleted; no content.",
)
def delete_decision(ctx: Context, decision_id: DecisionId) -> None:
    """Delete a decision and its data of the message.

    If you send the message again, it gets a new decision.
    """
    recorded.delete_one(ctx, decision_id)


@decisions.post(
    "/decisions/{decision_id}/feedback",
    dependencies=[PredictOrReview],
    responses=responses(404, 409),
    response_description="The decision with the feedback.",
)
def give_feedback(
    ctx: Context, request: Request, decision_id: DecisionId, body: Feedback
) -> RecordedDecision:
    """Submit the correct labels of a message.

    They replace earlier feedback on the decision, and end a reservation of the message.
    """
    return recorded.give_feedback(ctx.db, decision_id, body, actor_of(request))


@decisions.put(
    "/decisions/{decision_id}/reservation",
    dependencies=[PredictOrReview],
    responses=responses(404, 409),
    response_description="Who has the message, and the note.",
)
def reserve(ctx: Context, request: Request, decision_id: DecisionId) -> Review:
    """Reserve a message for ten minutes, so that no other person reviews it at the same time.

    Repeat the request to keep it for longer. The response is 409 if another person has reserved the message.
    An anonymous request reserves nothing.
    """
    return reviews.reserve(ctx.db, decision_id, actor_of(request))


@decisions.delete(
    "/decisions/{decision_id}/reservation",
    status_code=204,
    dependencies=[PredictOrReview],
    responses=responses(404),
    response_description="You have not reserved the message; no content.",
)
def release(ctx: Context, request: Request, decision_id: DecisionId) -> None:
    """End your reservation of a message. A reservation of another person stays."""
    reviews.release(ctx.db, decision_id, actor_of(request))


@decisions.put(
    "/decisions/{decision_id}/review",
    dependencies=[PredictOrReview],
    responses=responses(404, 409),
    response_description="Who has the message, and the note.",
)
def put_review(ctx: Context, request: Request, decision_id: DecisionId, body: ReviewPut) -> Review:
    """Assign a message to a person, and note something for other reviewers.

    The request replaces the person and the note; it does not change the reservation.
    """
    return reviews.put(ctx.db, decision_id, body, actor_of(request))


def _read_parts(body: bytes) -> MailDocument:
    value = parse(body, replace_surrogates=True, documents=MessageParts.documents, max_entries=MAX_VALUES)
    message: MessageParts = _PARTS.validate(value)
    return read_json_email(message.email, message.raw_email)


def _with_etag(response: Response, router: Router) -> Router:
    response.headers["ETag"] = service.etag(router)
    return router
