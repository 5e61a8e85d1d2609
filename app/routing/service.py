"""What happens to routers and to the messages that they route."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any

import structlog
from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.context import AppContext
from app.db import tables
from app.db.session import Database
from app.http.errors import ApiError, Invalid, NotFound
from app.http.paging import Page, by_name, newest_first
from app.ids import new_id
from app.registry import service as versions
from app.routing.deciding import Outcome, decide, unreadable
from app.routing.schemas import (
    Decision,
    DecisionPage,
    Feedback,
    MessageJson,
    MessageSummary,
    RecordedDecision,
    Router,
    RouterPage,
    RouterPut,
    ShadowDecision,
)
from app.serving.loaded_models import LoadedModels
from app.serving.prediction import as_text, label_explanations, load_version, ranked_labels
from models.mail import MailDocument, read_email, read_message
from models.mail.email import Email
from models.pipeline import Pipeline, Prediction

log = structlog.get_logger()

SHADOW_RANKING = 10
"""How many labels of a shadow's ranking are kept."""


def put(db: Database, name: str, body: RouterPut) -> Router:
    """Make or replace a router; what it names must exist."""
    with db.write() as tx:
        try:
            _expect_mail(versions.resolve(tx.session, body.model, body.version), "/model")
            if body.shadow is not None:
                shadow = versions.resolve(tx.session, body.model, body.shadow, pointer="/shadow")
                _expect_mail(shadow, "/shadow")
        except NotFound as error:
            places = error.errors or [("/model", error.detail)]
            raise Invalid(error.detail, code="unknown_version", errors=places) from error
        row = tx.session.get(tables.Router, name, with_for_update=True)
        if row is None:
            row = tables.Router(name=name, id=new_id("rtr"), created_at=tx.now)
            tx.session.add(row)
        row.model = body.model
        row.config = body.model_dump(mode="json", exclude_none=True)
        row.updated_at = tx.now
        tx.session.flush()
        return _shown(row)


def get(db: Database, name: str) -> Router:
    """One router."""
    with db.read() as session:
        return _shown(_router(session, name))


def page(db: Database, page: Page) -> RouterPage:
    """A page of routers, by name."""
    with db.read() as session:
        rows, cursor = by_name(session, select(tables.Router), tables.Router.name, page)
        return RouterPage(items=[_shown(row) for row in rows], next_cursor=cursor)


def delete(db: Database, name: str) -> None:
    """Delete a router; its decisions stay."""
    with db.write() as tx:
        tx.session.delete(_router(tx.session, name))


def read_json(body: MessageJson) -> MailDocument:
    """The message in a JSON body.

    Raises:
        Invalid: ``raw_email`` is not base64. (What cannot be read *inside* a message is no error.)
    """
    if body.email is not None:
        parts = body.email
        return read_email(
            Email(subject=parts.subject, from_=parts.from_, to=parts.to, text=parts.text, html=parts.html)
        )
    try:
        return read_message(base64.b64decode(body.raw_email or "", validate=True))
    except (binascii.Error, ValueError) as error:
        message = "raw_email is not base64"
        raise Invalid(message, errors=[("/raw_email", message)]) from error


def route(
    ctx: AppContext, loaded: LoadedModels, name: str, mail: MailDocument, *, explain: bool | None
) -> tuple[Decision, bool]:
    """Decide where a message goes, and record it before answering.

    Returns:
        the decision, and whether it is new: the same message again gets the decision of the first time.
    """
    key = message_key(mail)
    while True:
        try:
            return _route(ctx, loaded, name, mail, key, explain)
        except IntegrityError:
            # The same message was posted twice at once, and the other one was first.
            continue


def _route(
    ctx: AppContext, loaded: LoadedModels, name: str, mail: MailDocument, key: str, explain: bool | None
) -> tuple[Decision, bool]:
    with ctx.db.read() as session:
        router = _router(session, name)
        earlier = _earlier(session, router.id, key)
    if earlier is not None:
        return earlier, False
    config = RouterPut.model_validate(router.config)
    version, pipeline = load_version(ctx, loaded, config.model, config.version)
    prediction = _predict(pipeline, mail, explain=config.explain if explain is None else explain)
    readable = any(text.strip() for text, weight in mail.learning_parts() if weight > 0)
    outcome = decide(config, pipeline, prediction) if readable else unreadable(config)
    decision = _decision(ctx, router.name, version, outcome, prediction, mail)
    row = tables.Decision(
        id=decision.decision_id,
        router_id=router.id,
        router=router.name,
        message_key=key,
        response=decision.model_dump(
            mode="json",
            exclude_none=True,
            # Its terms are words of the message.
            exclude=set() if ctx.settings.keep_decision_text else {"explanation"},
        ),
    )
    with ctx.db.write() as tx:
        row.created_at = tx.now
        tx.session.add(row)
        tx.session.flush()
    return decision, True


def shadow(ctx: AppContext, loaded: LoadedModels, decision_id: str, mail: MailDocument) -> None:
    """Let the router's shadow version decide too, after the answer has been given."""
    try:
        with ctx.db.read() as session:
            row = session.get(tables.Decision, decision_id)
            if row is None:  # deleted meanwhile
                return
            router = _router(session, row.router)
        config = RouterPut.model_validate(router.config)
        if config.shadow is None:
            return
        version, pipeline = load_version(ctx, loaded, config.model, config.shadow)
    except ApiError as error:
        # The shadow is for comparison only; one that is gone must not disturb the routing.
        log.warning("shadow.absent", decision_id=decision_id, reason=error.detail)
        return
    prediction = _predict(pipeline, mail, explain=False)
    said = ShadowDecision(
        version=version.version,
        labels=prediction.labels,
        ranking=ranked_labels(prediction.ranking[:SHADOW_RANKING]),
    )
    with ctx.db.write() as tx:
        tx.session.execute(
            update(tables.Decision)
            .where(tables.Decision.id == decision_id)
            .values(shadow=said.model_dump(mode="json"))
        )


def message_key(mail: MailDocument) -> str:
    """What makes two posts the same message: Message-ID and body."""
    return hashlib.sha256(f"{mail.message_id or ''}\n{mail.body_digest}".encode()).hexdigest()


def page_decisions(db: Database, name: str, page: Page) -> DecisionPage:
    """A page of a router's decisions, the newest first."""
    with db.read() as session:
        router = _router(session, name)
        statement = select(tables.Decision).where(tables.Decision.router_id == router.id)
        rows, cursor = newest_first(session, statement, tables.Decision.id, page)
        return DecisionPage(items=[_recorded(row) for row in rows], next_cursor=cursor)


def get_decision(db: Database, decision_id: str) -> RecordedDecision:
    """One decision."""
    with db.read() as session:
        return _recorded(_found(session.get(tables.Decision, decision_id), decision_id))


def delete_decision(db: Database, decision_id: str) -> None:
    """Delete a decision and all that it kept of the message."""
    with db.write() as tx:
        tx.session.delete(_found(tx.session.get(tables.Decision, decision_id), decision_id))


def give_feedback(db: Database, decision_id: str, body: Feedback) -> RecordedDecision:
    """Tell which labels would have been right; telling again replaces it."""
    with db.write() as tx:
        row = _found(tx.session.get(tables.Decision, decision_id, with_for_update=True), decision_id)
        row.feedback = sorted(set(body.labels))
        row.feedback_at = tx.now
        tx.session.flush()
        return _recorded(row)


def _expect_mail(version: tables.ModelVersion, pointer: str) -> None:
    if version.description["features"]["kind"] == "numeric":
        message = (
            f"version {version.version} of {version.model} was trained on named numbers; it reads no mail"
        )
        raise Invalid(message, errors=[(pointer, message)])


def _predict(pipeline: Pipeline, mail: MailDocument, *, explain: bool) -> Prediction:
    explain = explain and pipeline.learner.can_explain  # no mail is refused for want of an explanation
    if pipeline.kind_ == "email":
        return pipeline.predict([mail], explain=explain)[0]
    if pipeline.kind_ == "text":
        return pipeline.predict([as_text(mail)], explain=explain)[0]
    raise Invalid("this router's model was trained on named numbers; it cannot read messages")


def _decision(
    ctx: AppContext,
    router: str,
    version: tables.ModelVersion,
    outcome: Outcome,
    prediction: Prediction,
    mail: MailDocument,
) -> Decision:
    explanation = label_explanations(prediction.explanation) if prediction.explanation else None
    return Decision(
        decision_id=new_id("dec"),
        router=router,
        model=version.model,
        version=version.version,
        disposition=outcome.disposition,
        departments=outcome.departments,
        destinations=outcome.destinations,
        ranking=ranked_labels(prediction.ranking),
        explanation=explanation,
        message=MessageSummary(
            message_id=mail.message_id,
            subject=mail.subject if ctx.settings.keep_decision_text else None,
            automated=mail.automated,
            defects=list(mail.defects),
            truncated=mail.truncated,
        ),
    )


def _earlier(session: Session, router_id: str, key: str) -> Decision | None:
    row = session.scalars(
        select(tables.Decision).where(
            tables.Decision.router_id == router_id, tables.Decision.message_key == key
        )
    ).one_or_none()
    return None if row is None else Decision.model_validate(row.response)


def _router(session: Session, name: str) -> tables.Router:
    row = session.get(tables.Router, name)
    if row is None:
        raise NotFound(f"there is no router {name}")
    return row


def _found(row: tables.Decision | None, decision_id: str) -> tables.Decision:
    if row is None:
        raise NotFound(f"there is no decision {decision_id}")
    return row


def _recorded(row: tables.Decision) -> RecordedDecision:
    fields: dict[str, Any] = {
        **row.response,
        "created_at": row.created_at,
        "shadow": row.shadow,
        "feedback": row.feedback,
        "feedback_at": row.feedback_at,
    }
    return RecordedDecision.model_validate(fields)


def _shown(row: tables.Router) -> Router:
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
