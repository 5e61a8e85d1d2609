"""Pages of routing: try a message, the review queue, decisions, the report, and the settings of a router."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any

from fastapi import Query, Request, Response

from app.api.base_route import Context, ReadOrReview, ReadScope, TrainScope
from app.api.guards import Actor, actor_of, has_scope
from app.api.paging import MAX_LIMIT, Page, PageQuery, encode_cursor
from app.api.schemas import DecisionId, RouterName
from app.console.corrections import served_version
from app.console.kept_texts import TITLES, KeptTexts, kept_texts
from app.console.rendering import page
from app.console.route import Conditions, pages
from app.context import AppContext
from app.db.session import Database
from app.errors import FileDamaged, NotFound, NotReady
from app.registry import service as registry
from app.registry.schemas import Model
from app.routing import decisions, service
from app.routing.decision_search import DecisionFilter, ReviewReason
from app.routing.report import html
from app.routing.report import service as reports
from app.routing.report.schemas import ReportBy
from app.routing.schemas import Disposition, FeedbackState, RecordedDecision
from app.storage import MissingFileError, StorageUnavailableError
from app.threads import REQUESTS, STORAGE

router = pages("/routers")

MAX_WAITING = 20
"""Waiting messages that a page shows. Other people can have the first ones open."""

MAX_CHOICES = 9
"""Number of labels that have a number key in the review queue."""

MAX_OTHER_LABELS = 2_000
"""Maximum number of labels that the browser suggests."""

MAX_DESTINATIONS = 100
"""Maximum number of labels with a field for their destination; more of them are edited as JSON."""

WAITING = DecisionFilter(review="any", feedback="none", oldest_first=True)
"""The review queue: messages that wait for a person, the oldest first."""

REASONS: Mapping[ReviewReason, str] = MappingProxyType(
    {"any": "All", "doubt": "Not sure", "fallback": "Fallback", "sample": "Random sample"}
)
"""Why messages are in the review queue, as its filter says it."""

FORM_FIELDS = (
    *("model", "version", "fallback", "review_below", "review_sample", "at_most", "explain"),
    *("keep_messages", "keep_days", "shadow", "target_precision", "target_recall", "destinations"),
)
"""Settings with a field of their own."""


@router.get("", dependencies=[ReadOrReview])
def routers(ctx: Context, request: Request, paging: PageQuery, conditions: Conditions) -> Response:
    """Show the routers, and whether messages wait for a person."""
    listed = service.page(ctx.db, paging, conditions)
    waiting = {item.name: _count_waiting(ctx, item.name) for item in listed.items}
    return page(request, "routers/list.html", routers=listed, waiting=waiting, conditions=conditions)


@router.get("/new", dependencies=[TrainScope])
def new(ctx: Context, request: Request, model: Annotated[str, Query(max_length=64)] = "") -> Response:
    """Show the form of a new router."""
    models = registry.page_models(ctx.db, Page(MAX_LIMIT, None)).items
    chosen = model or next((item.name for item in models if "live" in item.aliases), "")
    return page(
        request,
        "routers/settings.html",
        router=None,
        etag=None,
        rest={},
        models=models,
        chosen=chosen,
        **_destinations(ctx.db, models, chosen, {}),
    )


@router.get("/{name}", dependencies=[ReadScope])
def try_message(ctx: Context, request: Request, name: RouterName) -> Response:
    """Show a form that routes a message, and why it was routed so."""
    return page(
        request, "routers/try.html", router=service.get(ctx.db, name), waiting=_count_waiting(ctx, name)
    )


@router.get("/{name}/review", dependencies=[ReadOrReview])
async def review(
    ctx: Context,
    request: Request,
    name: RouterName,
    paging: PageQuery,
    saved: Annotated[str | None, Query(max_length=100)] = None,
    reason: ReviewReason = "any",
) -> Response:
    """Show the oldest message that waits for a person, with its likely labels, and the messages after it."""
    actor = actor_of(request)

    def read() -> dict[str, Any]:
        waiting = decisions.page(ctx, name, replace(WAITING, review=reason), Page(MAX_WAITING, paging.after))
        shown = next((item for item in waiting.items if _is_for(actor, item)), None)
        return {
            "router": service.get(ctx.db, name),
            "others": [item for item in waiting.items if item is not shown],
            "has_more": waiting.next_cursor is not None,
            "last": waiting.next_cursor,
            "decision": shown,
            "saved": None if saved is None else _find_decision(ctx.db, saved),
            "is_first_page": paging.after is None,
            "reason": reason,
            "reasons": REASONS,
            "reviewed": _count_reviewed(ctx.db, request, name),
            **_correction(ctx.db, shown),
        }

    values = await REQUESTS.run(read)
    values["kept"] = await _kept(ctx, request, values["decision"])
    return page(request, "routers/review.html", **values)


@router.get("/{name}/decisions", dependencies=[ReadOrReview])
def list_decisions(
    ctx: Context,
    request: Request,
    name: RouterName,
    paging: PageQuery,
    disposition: Annotated[Disposition | str, Query(max_length=20)] = "",
    feedback: Annotated[FeedbackState | str, Query(max_length=20)] = "",
    label: Annotated[str, Query(max_length=500)] = "",
    subject: Annotated[str, Query(max_length=200)] = "",
    sender: Annotated[str, Query(max_length=200)] = "",
    text: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Show the decisions of a router that meet conditions, newest first."""
    conditions = DecisionFilter(
        disposition=next((item for item in ("routed", "review", "fallback") if item == disposition), None),
        feedback=next((item for item in ("none", "agreed", "corrected") if item == feedback), None),
        label=label or None,
        subject=subject or None,
        sender=sender or None,
        text=(text or None) if has_scope(request, "train", "review") else None,
    )
    found = decisions.page(ctx, name, conditions, paging)
    return page(
        request,
        "routers/decisions.html",
        router=service.get(ctx.db, name),
        decisions=found,
        conditions={
            "disposition": disposition,
            "feedback": feedback,
            "label": label,
            "subject": subject,
            "sender": sender,
            "text": text,
        },
        export={
            name: value
            for name in ("disposition", "feedback", "label", "subject", "sender", "text")
            if (value := getattr(conditions, name)) is not None
        },
    )


@router.get("/{name}/decisions/{decision_id}", dependencies=[ReadOrReview])
async def decision(ctx: Context, request: Request, name: RouterName, decision_id: DecisionId) -> Response:
    """Show a decision, its message if it is kept, and a form to correct it."""

    def read() -> dict[str, Any]:
        found = decisions.get(ctx.db, decision_id)
        if found.router != name:
            raise NotFound(f"router {name} has no decision {decision_id}")
        return {"router": service.get(ctx.db, name), "decision": found, **_correction(ctx.db, found)}

    values = await REQUESTS.run(read)
    values["kept"] = await _kept(ctx, request, values["decision"])
    return page(request, "routers/decision.html", **values)


@router.get("/{name}/report", dependencies=[ReadScope])
def report(ctx: Context, request: Request, name: RouterName, by: ReportBy = "department") -> Response:
    """Show the report of a router."""
    found = reports.get(ctx.db, name, by, None, None)
    return page(
        request,
        "routers/report.html",
        router=service.get(ctx.db, name),
        by=by,
        report=html.render_body(found),
        reviewed=_count_reviewed(ctx.db, request, name),
    )


@router.get("/{name}/settings", dependencies=[ReadScope])
def settings(ctx: Context, request: Request, name: RouterName) -> Response:
    """Show the settings of a router in a form."""
    found = service.get(ctx.db, name)
    models = registry.page_models(ctx.db, Page(MAX_LIMIT, None)).items
    config = found.model_dump(mode="json", exclude_none=True, exclude={"name", "created_at", "updated_at"})
    rest = {field: value for field, value in config.items() if field not in FORM_FIELDS and value != {}}
    return page(
        request,
        "routers/settings.html",
        router=found,
        etag=service.etag(found),
        rest=rest,
        models=models,
        chosen=found.model,
        **_destinations(ctx.db, models, found.model, found.destinations),
    )


def _destinations(
    db: Database, models: list[Model], name: str, destinations: dict[str, str]
) -> dict[str, Any]:
    """Return what the form needs: labels with their destinations, and the versions of the model."""
    model = next((item for item in models if item.name == name), None)
    labels: list[str] = []
    calibrated = False
    if model is not None and (version := served_version(db, model.name)) is not None:
        labels, calibrated = version.labels, version.calibrated
    labels = sorted({*labels, *destinations})
    return {
        "labels": labels if len(labels) <= MAX_DESTINATIONS else [],
        "destinations": destinations,
        "calibrated": calibrated,
        "references": [] if model is None else [*model.aliases, *range(model.last_version, 0, -1)][:50],
    }


def _count_waiting(ctx: AppContext, name: str) -> str:
    """Return how many messages wait for a person, as text that says when there are more than 99."""
    found = decisions.page(ctx, name, WAITING, Page(100, None))
    return "more than 99" if len(found.items) > 99 else str(len(found.items))


def _count_reviewed(db: Database, request: Request, name: str) -> decisions.ReviewedCount | None:
    """Return how many messages of a router have feedback, for visitors that may make a data set from them."""
    return decisions.count_reviewed(db, name) if has_scope(request, "train") else None


def _is_for(actor: Actor | None, item: RecordedDecision) -> bool:
    """Return whether a message is for a reviewer: no other person has it open, and it is not another's."""
    review = item.review
    if review is None or actor is None:
        return True
    is_open = review.reserved_by is not None and review.reserved_by.id != actor.id
    return not is_open and review.assigned_to in (None, actor.name)


def _find_decision(db: Database, decision_id: str) -> RecordedDecision | None:
    try:
        return decisions.get(db, decision_id)
    except NotFound:
        return None


def _correction(db: Database, shown: RecordedDecision | None) -> dict[str, Any]:
    """Return what the form of a correction needs.

    ``choices`` are the labels that a person can choose with one key, and ``labels`` those of the version.
    """
    if shown is None:
        return {}
    likely = [item.label for item in shown.departments]
    likely += [item.label for item in shown.ranking if item.label not in likely]
    labels: list[str] = []
    if shown.version is not None:
        try:
            labels = registry.get_version(db, shown.model, shown.version).labels
        except NotFound:
            labels = []  # the version was deleted
    if len(likely) < MAX_CHOICES:
        likely += [label for label in labels if label not in likely]
    return {
        "choices": likely[:MAX_CHOICES],
        "labels": labels[:MAX_OTHER_LABELS],
        "probabilities": {item.label: item.probability for item in shown.ranking},
        "suggested": [item.label for item in shown.departments],
        "explanation": [item.model_dump(exclude_none=True) for item in shown.explanation or ()],
        "titles": TITLES,
        "skip": encode_cursor(shown.decision_id),
    }


async def _kept(ctx: AppContext, request: Request, shown: RecordedDecision | None) -> KeptTexts | None:
    """Return the kept message of a decision, for visitors that may read it."""
    if shown is None or not shown.message_kept or not has_scope(request, "train", "review"):
        return None
    try:
        return await STORAGE.run(kept_texts, ctx, shown)
    except (NotFound, NotReady, FileDamaged, MissingFileError, StorageUnavailableError) as error:
        return KeptTexts(problem=getattr(error, "detail", None) or "the message cannot be read now")
