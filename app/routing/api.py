"""Routers, messages and decisions over HTTP."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from anyio import to_thread
from fastapi import BackgroundTasks, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from app.http.base_route import Context, PredictScope, ReadScope, TrainScope, resource, responses
from app.http.errors import TooLarge, Unsupported
from app.http.json_body import parse, refuse_encoding
from app.http.paging import PageQuery
from app.http.schemas import DecisionId, RouterName
from app.routing import service
from app.routing.schemas import (
    Decision,
    DecisionPage,
    Feedback,
    MessageJson,
    RecordedDecision,
    Router,
    RouterPage,
    RouterPut,
)
from app.serving.dependencies import Loaded
from models.mail import MailDocument, read_message

router = resource("routers")
decisions = resource("decisions")

_RAW = ("message/rfc822", "application/octet-stream", "text/plain")
_BINARY = {"schema": {"type": "string", "format": "binary"}}


@router.put("/routers/{name}", dependencies=[TrainScope])
def put(ctx: Context, name: RouterName, body: RouterPut) -> Router:
    """Create or replace a router. The model, version and shadow that it names must exist."""
    return service.put(ctx.db, name, body)


@router.get("/routers", dependencies=[ReadScope])
def list(ctx: Context, page: PageQuery) -> RouterPage:  # noqa: A001 - the verb of the operation's id
    """List routers, by name."""
    return service.page(ctx.db, page)


@router.get("/routers/{name}", dependencies=[ReadScope], responses=responses(404))
def get(ctx: Context, name: RouterName) -> Router:
    """Read a router."""
    return service.get(ctx.db, name)


@router.delete("/routers/{name}", status_code=204, dependencies=[TrainScope], responses=responses(404))
def delete(ctx: Context, name: RouterName) -> None:
    """Delete a router. Its decisions stay readable by their ids."""
    service.delete(ctx.db, name)


@router.post(
    "/routers/{name}/messages",
    dependencies=[PredictScope],
    responses=responses(404),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/octet-stream": _BINARY,
                "message/rfc822": _BINARY,
                "application/json": {"schema": {"$ref": "#/components/schemas/MessageJson"}},
            },
        }
    },
)
async def route_message(
    ctx: Context,
    loaded: Loaded,
    request: Request,
    background: BackgroundTasks,
    name: RouterName,
    explain: Annotated[
        bool | None, Query(description="Name the terms that decided; by default as the router says.")
    ] = None,
) -> Decision:
    """Route one message: a raw one (RFC 5322), or its parts as JSON.

    Mail is never dropped: what cannot be read goes to the fallback, with its defects. The same message
    (by Message-ID and body) posted again gets the same decision.
    """
    refuse_encoding(request)
    kind = request.headers.get("content-type", "application/octet-stream").split(";")[0].strip().lower()
    body, cut = await _up_to(request, ctx.settings.max_message_bytes)
    mail = await to_thread.run_sync(_read, kind, body, cut)
    decision, new = await to_thread.run_sync(lambda: service.route(ctx, loaded, name, mail, explain=explain))
    if new:
        background.add_task(service.shadow, ctx, loaded, decision.decision_id, mail)
    return decision


@router.get("/routers/{name}/decisions", dependencies=[ReadScope], responses=responses(404))
def list_decisions(ctx: Context, name: RouterName, page: PageQuery) -> DecisionPage:
    """List the decisions of a router, the newest first."""
    return service.page_decisions(ctx.db, name, page)


@decisions.get("/decisions/{decision_id}", name="get", dependencies=[ReadScope], responses=responses(404))
def get_decision(ctx: Context, decision_id: DecisionId) -> RecordedDecision:
    """Read a decision."""
    return service.get_decision(ctx.db, decision_id)


@decisions.delete(
    "/decisions/{decision_id}",
    status_code=204,
    name="delete",
    dependencies=[TrainScope],
    responses=responses(404),
)
def delete_decision(ctx: Context, decision_id: DecisionId) -> None:
    """Delete a decision and what it kept of the message. The message posted again is decided anew."""
    service.delete_decision(ctx.db, decision_id)


@decisions.post("/decisions/{decision_id}/feedback", dependencies=[PredictScope], responses=responses(404))
def give_feedback(ctx: Context, decision_id: DecisionId, body: Feedback) -> RecordedDecision:
    """Tell which labels would have been right."""
    return service.give_feedback(ctx.db, decision_id, body)


async def _up_to(request: Request, limit: int) -> tuple[bytes, bool]:
    """The first bytes of a body, and whether there were more; the rest is received and let go.

    A message that is too long is still routed by its beginning: mail is never dropped.
    """
    kept = bytearray()
    received = 0
    async for chunk in request.stream():
        received += len(chunk)
        kept += chunk[: limit - len(kept)]
    return bytes(kept), received > limit


def _read(kind: str, body: bytes, cut: bool) -> MailDocument:
    if kind == "application/json":
        if cut:
            raise TooLarge(f"a message as JSON may take {len(body):,} bytes; send it raw, as message/rfc822")
        return service.read_json(_parsed(body))
    if kind not in _RAW:
        raise Unsupported(f"{kind} is not read here; send message/rfc822, application/octet-stream or JSON")
    mail = read_message(body)
    if cut:
        mail = replace(
            mail,
            truncated=True,
            defects=(*mail.defects, f"the message is longer than {len(body):,} bytes; the rest was not read"),
        )
    return mail


def _parsed(body: bytes) -> MessageJson:
    given = parse(body, replace_surrogates=True)
    try:
        return MessageJson.model_validate(given)
    except ValidationError as error:
        errors = [{**item, "loc": ("body", *item["loc"])} for item in error.errors()]
        raise RequestValidationError(errors, body=given) from error
