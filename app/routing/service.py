"""Creates and deletes routers, routes messages, and records decisions and feedback."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import Any

import structlog
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.context import AppContext
from app.db import tables
from app.db.deadlocks import retry_deadlocks
from app.db.session import Database
from app.db.upsert import insert_if_absent, upsert
from app.http.errors import ApiError, Conflict, Invalid, NotFound
from app.http.paging import Page, by_name, newest_first_up_to
from app.ids import new_id
from app.metrics import FALLBACKS
from app.registry import service as registry
from app.routing.decision_rules import RoutingOutcome, apply_rules, decision_ranking, fallback_outcome
from app.routing.schemas import (
    Decision,
    DecisionPage,
    Feedback,
    MessageSummary,
    RecordedDecision,
    Router,
    RouterPage,
    RouterPut,
    ShadowDecision,
)
from app.serving.catalog_reading import resolve
from app.serving.instances import mail_to_text
from app.serving.loaded_models import ArtifactUnavailable, LoadedModels, VersionReference
from app.serving.prediction import label_explanations, load_version, ranked_labels
from models.mail import MailDocument
from models.pipeline import Pipeline, Prediction

log = structlog.get_logger()

RECORD_ATTEMPTS = 5
"""How often to record a decision. Each attempt but the first follows the deletion of another decision."""

SHADOW_RANKING = 10
"""Number of labels in the recorded ranking of a shadow version."""

MAX_PAGE_BYTES = 8 * 1024 * 1024
"""Maximum size of a page of decisions. A decision for thousands of departments is large."""


@retry_deadlocks
def put(db: Database, name: str, body: RouterPut) -> Router:
    """Create or replace a router.

    Raises:
        Invalid: the model, version or shadow does not exist, or cannot read e-mail.
    """
    with db.write() as tx:
        try:
            registry.lock_model(tx, body.model)
            _check_reads_mail(resolve(tx.session, body.model, body.version), "/model")
            if body.shadow is not None:
                shadow = resolve(tx.session, body.model, body.shadow, pointer="/shadow")
                _check_reads_mail(shadow, "/shadow")
        except NotFound as error:
            errors = error.errors or [("/model", error.detail)]
            raise Invalid(error.detail, code="unknown_version", errors=errors) from error
        values = {
            "model": body.model,
            **_references(body),
            "config": body.model_dump(mode="json", exclude_none=True),
            "updated_at": tx.now,
        }
        insert = upsert(tx, tables.Router, name=name, id=new_id("rtr"), created_at=tx.now, **values)
        row = tx.session.scalars(
            insert.on_conflict_do_update(index_elements=["name"], set_=values).returning(tables.Router)
        ).one()
        return _router_to_response(row)


def _references(body: RouterPut) -> dict[str, int | str | None]:
    """Return the columns whose foreign keys keep what a router uses from being deleted."""
    references: dict[str, int | str | None] = {}
    for prefix, reference in (("", body.version), ("shadow_", body.shadow)):
        references[f"{prefix}version"] = reference if isinstance(reference, int) else None
        references[f"{prefix}alias"] = reference if isinstance(reference, str) else None
    return references


def get(db: Database, name: str) -> Router:
    """Return a router."""
    with db.read() as session:
        return _router_to_response(_get_router_or_404(session, name))


def page(db: Database, page: Page) -> RouterPage:
    """Return a page of routers, by name."""
    with db.read() as session:
        rows, cursor = by_name(session, select(tables.Router), tables.Router.name, page)
        return RouterPage(items=[_router_to_response(row) for row in rows], next_cursor=cursor)


def used_versions(db: Database) -> list[tuple[str, tables.ModelVersion]]:
    """Return the name of each router with the version that it uses now."""
    used = []
    with db.read() as session:
        for router in session.scalars(select(tables.Router).order_by(tables.Router.name)).all():
            with suppress(NotFound):
                used.append((router.name, resolve(session, router.model, router.config["version"])))
    return used


def delete(db: Database, name: str) -> None:
    """Delete a router. Its decisions are kept."""
    with db.write() as tx:
        tx.session.delete(_get_router_or_404(tx.session, name, lock=True))


def route(
    ctx: AppContext, loaded: LoadedModels, name: str, mail: MailDocument, *, explain: bool | None
) -> tuple[Decision, bool]:
    """Route a message and record the decision.

    Args:
        ctx: the application context.
        loaded: the loaded models.
        name: name of the router.
        mail: the message.
        explain: whether to explain the decision; None for the setting of the router.

    Returns:
        The decision, and whether it is new. A message that was routed before gets its first decision.
    """
    key = message_key(mail)
    with ctx.db.read() as session:
        router = _get_router_or_404(session, name)
        earlier = _find_decision(session, router.id, key)
    if earlier is not None:
        return earlier, False
    config = RouterPut.model_validate(router.config)
    explain = config.explain if explain is None else explain
    decision = _decide(ctx, loaded, name, config, mail, explain=explain)
    values: dict[str, Any] = {
        "id": decision.decision_id,
        "router_id": router.id,
        "router": router.name,
        "message_key": key,
        "response": decision.model_dump(
            mode="json",
            exclude_none=True,
            # The terms of an explanation are words of the message.
            exclude=set() if ctx.settings.keep_decision_text else {"explanation"},
        ),
    }
    return _record(ctx.db, decision, values)


def _decide(
    ctx: AppContext, loaded: LoadedModels, name: str, config: RouterPut, mail: MailDocument, *, explain: bool
) -> Decision:
    """Return the decision on a message: the fallback if the version cannot be loaded or cannot read mail."""
    try:
        version, found = load_version(ctx, loaded, config.model, config.version)
        prediction = _predict(version, found.pipeline, mail, explain=explain)
    except ArtifactUnavailable as error:
        return _decide_without_model(ctx, name, config, error.version, mail, error.detail)
    except _CannotReadMailError as error:
        return _decide_without_model(ctx, name, config, version, mail, str(error))
    readable = any(text.strip() for text, weight in mail.learning_parts() if weight > 0)
    outcome = apply_rules(config, found.pipeline, prediction) if readable else fallback_outcome(config)
    return _build_decision(ctx, name, version, outcome, prediction, mail)


def _decide_without_model(
    ctx: AppContext,
    name: str,
    config: RouterPut,
    version: VersionReference,
    mail: MailDocument,
    reason: str,
) -> Decision:
    # Somebody must read the message, although nobody may notice the version for days.
    log.error("routing.fallback", router=name, reason=reason)
    FALLBACKS.labels(name).inc()
    decision = _build_decision(ctx, name, version, fallback_outcome(config), None, mail)
    decision.fallback_reason = reason
    return decision


def _record(db: Database, decision: Decision, values: dict[str, Any]) -> tuple[Decision, bool]:
    """Record a decision, or return the one that a concurrent request has recorded for the same message."""
    for _ in range(RECORD_ATTEMPTS):
        with db.write() as tx:
            if insert_if_absent(tx, tables.Decision, created_at=tx.now, **values):
                return decision, True
            first = _find_decision(tx.session, values["router_id"], values["message_key"])
        if first is not None:
            return first, False
        # The other decision was deleted after the INSERT had found it.
    raise Conflict(
        f"the decision on this message by router {decision.router} was deleted at the same time; send the "
        "message again",
        code="conflict",
    )


def record_shadow(ctx: AppContext, loaded: LoadedModels, decision_id: str, mail: MailDocument) -> None:
    """Record the prediction of the shadow version of a router. Runs after the response was sent."""
    try:
        with ctx.db.read() as session:
            row = session.get(tables.Decision, decision_id)
            if row is None:  # deleted in the meantime
                return
            router = _get_router_or_404(session, row.router)
        config = RouterPut.model_validate(router.config)
        if config.shadow is None:
            return
        version, found = load_version(ctx, loaded, config.model, config.shadow)
        prediction = _predict(version, found.pipeline, mail, explain=False)
    except (ApiError, _CannotReadMailError) as error:
        # The routing must not depend on the shadow version, which is for comparison only.
        log.warning("shadow.unavailable", decision_id=decision_id, reason=str(error))
        return
    shadow = ShadowDecision(
        version=version.version,
        labels=prediction.labels,
        ranking=ranked_labels(prediction.ranking[:SHADOW_RANKING]),
    )
    with ctx.db.write() as tx:
        tx.session.execute(
            update(tables.Decision)
            .where(tables.Decision.id == decision_id)
            .values(shadow=shadow.model_dump(mode="json"))
        )


def message_key(mail: MailDocument) -> str:
    """Return a key that is equal for equal messages: a digest of the Message-ID and the body."""
    return hashlib.sha256(f"{mail.message_id or ''}\n{mail.body_digest}".encode()).hexdigest()


def page_decisions(db: Database, name: str, page: Page) -> DecisionPage:
    """Return a page of the decisions of a router, newest first. It can have fewer items than requested."""
    with db.read() as session:
        router = _get_router_or_404(session, name)
        statement = select(tables.Decision).where(tables.Decision.router_id == router.id)
        items, cursor = newest_first_up_to(
            session, statement, tables.Decision.id, page, _decision_to_response, MAX_PAGE_BYTES
        )
        return DecisionPage(items=items, next_cursor=cursor)


def get_decision(db: Database, decision_id: str) -> RecordedDecision:
    """Return a decision."""
    with db.read() as session:
        return _decision_to_response(_get_decision_or_404(session, decision_id))


def delete_decision(db: Database, decision_id: str) -> None:
    """Delete a decision with all its data of the message."""
    with db.write() as tx:
        tx.session.delete(_get_decision_or_404(tx.session, decision_id, lock=True))


def give_feedback(db: Database, decision_id: str, body: Feedback) -> RecordedDecision:
    """Record the correct labels of a message; they replace earlier feedback."""
    with db.write() as tx:
        row = _get_decision_or_404(tx.session, decision_id, lock=True)
        row.feedback = sorted(set(body.labels))
        row.feedback_at = tx.now
        tx.session.flush()
        return _decision_to_response(row)


class _CannotReadMailError(Exception):
    """A version cannot read mail, because it was trained on numeric features."""

    def __init__(self, version: tables.ModelVersion) -> None:
        super().__init__(
            f"version {version.version} of {version.model} was trained on numeric features and cannot read "
            "e-mail; use a version trained on text or e-mail"
        )


def _check_reads_mail(version: tables.ModelVersion, pointer: str) -> None:
    if version.description["features"]["kind"] == "numeric":
        message = str(_CannotReadMailError(version))
        raise Invalid(message, errors=[(pointer, message)])


def _predict(
    version: tables.ModelVersion, pipeline: Pipeline, mail: MailDocument, *, explain: bool
) -> Prediction:
    explain = explain and pipeline.learner.can_explain  # a message is routed even without an explanation
    if pipeline.kind_ == "email":
        return pipeline.predict([mail], explain=explain)[0]
    if pipeline.kind_ == "text":
        return pipeline.predict([mail_to_text(mail)], explain=explain)[0]
    # An alias that the router uses was moved to this version.
    raise _CannotReadMailError(version)


def _build_decision(
    ctx: AppContext,
    router: str,
    version: VersionReference,
    outcome: RoutingOutcome,
    prediction: Prediction | None,
    mail: MailDocument,
) -> Decision:
    ranking = decision_ranking(prediction, outcome, ctx.settings.decision_ranking) if prediction else []
    ranked = {item.label for item in ranking}
    explanations = [item for item in prediction.explanation if item.label in ranked] if prediction else []
    return Decision(
        decision_id=new_id("dec"),
        router=router,
        model=version.model,
        version=version.version,
        disposition=outcome.disposition,
        departments=outcome.departments,
        destinations=outcome.destinations,
        ranking=ranking,
        explanation=label_explanations(explanations) or None,
        message=MessageSummary(
            message_id=mail.message_id,
            subject=mail.subject if ctx.settings.keep_decision_text else None,
            automated=mail.automated,
            defects=list(mail.defects),
            truncated=mail.truncated,
        ),
    )


def _find_decision(session: Session, router_id: str, key: str) -> Decision | None:
    row = session.scalars(
        select(tables.Decision).where(
            tables.Decision.router_id == router_id, tables.Decision.message_key == key
        )
    ).one_or_none()
    return None if row is None else Decision.model_validate(row.response)


def _get_router_or_404(session: Session, name: str, *, lock: bool = False) -> tables.Router:
    row = session.get(tables.Router, name, with_for_update=lock)
    if row is None:
        raise NotFound(f"there is no router {name}")
    return row


def _get_decision_or_404(session: Session, decision_id: str, *, lock: bool = False) -> tables.Decision:
    row = session.get(tables.Decision, decision_id, with_for_update=lock)
    if row is None:
        raise NotFound(f"there is no decision {decision_id}")
    return row


def _decision_to_response(row: tables.Decision) -> RecordedDecision:
    fields: dict[str, Any] = {
        **row.response,
        "created_at": row.created_at,
        "shadow": row.shadow,
        "feedback": row.feedback,
        "feedback_at": row.feedback_at,
    }
    return RecordedDecision.model_validate(fields)


def _router_to_response(row: tables.Router) -> Router:
    return Router.model_validate(
        {
            "explain": False,
            "destinations": {},
            **row.config,
            "name": row.name,
            "created_at": row.created_at,
            "updated_at": row.updated_at,
        }
    )
