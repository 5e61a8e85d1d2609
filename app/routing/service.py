"""Create and delete routers, and find and change their decisions while they route."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import delete as delete_rows
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.api.etags import accepts
from app.api.paging import EVERYTHING, ListFilter, Page, ascending
from app.api.structs import to_builtins
from app.db import tables
from app.db.deadlocks import retry_deadlocks
from app.db.session import Database
from app.db.upsert import upsert
from app.errors import Invalid, NotFound, PreconditionFailed
from app.ids import new_id
from app.registry import service as registry
from app.registry.queries import resolve
from app.registry.router_requirements import has_curves, is_calibrated
from app.routing.policies import has_policies, policy_of
from app.routing.schemas import (
    DEFAULT_KEEP_DAYS,
    DEFAULT_REVIEW_SAMPLE,
    Router,
    RouterPage,
    RouterPut,
    ShadowDecision,
)
from app.serving.loaded_models import VersionReference
from app.serving.snapshot import version_references
from models.data.record import json_pointer


@retry_deadlocks
def put(db: Database, name: str, body: RouterPut, if_match: str | None = None) -> Router:
    """Create or replace a router.

    Raises:
        PreconditionFailed: ``if_match`` is not the current ``ETag`` of the router.
        Invalid: the model, version or shadow does not exist, or cannot read e-mail, the version has no label
            of this name, ``review_below`` needs probabilities and the version is not calibrated, or policies
            need held-out curves and the version has none.
    """
    with db.write() as tx:
        try:
            registry.lock_model(tx, body.model)
            _check_unchanged(tx.session, name, if_match)
            versions = [
                resolve(tx.session, body.model, reference, pointer=f"/versions/{i}/version")
                if body.versions
                else resolve(tx.session, body.model, reference)
                for i, reference in enumerate(body.references)
            ]
            _check_labels(body, versions)
            for version in versions:
                _check_reads_mail(version, "/model")
                _check_review(body, version)
                _check_policies(body, version)
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
        of = tables.RouterVersion
        tx.session.execute(delete_rows(of).where(of.router == name))
        for position, item in enumerate(body.versions):
            tx.session.add(
                of(router=name, position=position, model=body.model, **_reference("", item.version))
            )
        return _router_to_response(row)


def _references(body: RouterPut) -> dict[str, int | str | None]:
    """Return the columns whose foreign keys keep what a router uses from being deleted."""
    return {**_reference("", body.version), **_reference("shadow_", body.shadow)}


def _reference(prefix: str, reference: int | str | None) -> dict[str, int | str | None]:
    return {
        f"{prefix}version": reference if isinstance(reference, int) else None,
        f"{prefix}alias": reference if isinstance(reference, str) else None,
    }


def get(db: Database, name: str) -> Router:
    """Return a router."""
    with db.read() as session:
        return _router_to_response(get_or_404(session, name))


def page(db: Database, page: Page, conditions: ListFilter = EVERYTHING) -> RouterPage:
    """Return a page of routers that meet conditions, by name."""
    with db.read() as session:
        statement = conditions.apply(select(tables.Router), tables.Router.name)
        rows, cursor = ascending(session, statement, tables.Router.name, page)
        return RouterPage(items=[_router_to_response(row) for row in rows], next_cursor=cursor)


def etag(router: Router) -> str:
    """Return the ``ETag`` of a router: the time of its last change."""
    return f'"{router.updated_at:%Y%m%dT%H%M%S%f}"'


def used_versions(db: Database) -> list[tuple[tables.Router, tables.ModelVersion]]:
    """Return each router with each of the versions that it uses now."""
    used = []
    with db.read() as session:
        for router in session.scalars(select(tables.Router).order_by(tables.Router.name)).all():
            for reference in version_references(router.config):
                with suppress(NotFound):
                    used.append((router, resolve(session, router.model, reference)))
    return used


def delete(db: Database, name: str) -> None:
    """Delete a router. Its decisions are kept."""
    with db.write() as tx:
        tx.session.delete(get_or_404(tx.session, name, lock=True))


def find_response(db: Database, router_id: str, key: str) -> dict[str, Any] | None:
    """Return the stored decision of a router on a message, or None if there is none."""
    with db.read() as session:
        return session.scalars(
            select(tables.Decision.response).where(
                tables.Decision.router_id == router_id, tables.Decision.message_key == key
            )
        ).one_or_none()


@retry_deadlocks
def record_shadows(db: Database, shadows: Mapping[str, ShadowDecision]) -> None:
    """Record what shadow versions predict.

    Args:
        db: the database.
        shadows: the predictions by the id of the decision. Decisions that were deleted are ignored.
    """
    with db.write() as tx:
        for decision_id, shadow in sorted(shadows.items()):  # other processes lock the rows in the same order
            tx.session.execute(
                update(tables.Decision)
                .where(tables.Decision.id == decision_id)
                .values(
                    shadow=to_builtins(shadow),
                    shadow_version=shadow.version,
                    shadow_agrees=shadow.agrees,
                )
            )


def cannot_read_mail(version: VersionReference) -> str:
    """Return why a version that was trained on numeric features cannot decide on messages."""
    return (
        f"version {version.version} of {version.model} was trained on numeric features and cannot read "
        "e-mail; use a version trained on text or e-mail"
    )


def _check_unchanged(session: Session, name: str, if_match: str | None) -> None:
    if if_match is None:
        return
    row = session.get(tables.Router, name, with_for_update=True)
    current = None if row is None else etag(_router_to_response(row))
    if not accepts(if_match, current):
        raise PreconditionFailed(
            f"router {name} has the ETag {current or 'none'}, not {if_match}; check the router and send its "
            "current ETag"
        )


def _check_reads_mail(version: tables.ModelVersion, pointer: str) -> None:
    if version.description["features"]["kind"] == "numeric":
        message = cannot_read_mail(version)
        raise Invalid(message, errors=[(pointer, message)])


def _check_labels(body: RouterPut, versions: Sequence[tables.ModelVersion]) -> None:
    labels = {label for version in versions for label in version.description["labels"]}
    numbers = " and ".join(str(version.version) for version in versions)
    name = f"version {numbers} of {body.model}"
    for field, of_labels in (("thresholds", body.thresholds), ("label_policies", body.label_policies)):
        unknown = [label for label in of_labels if label not in labels]
        errors = [(json_pointer(field, label), f"{name} has no label {label!r}") for label in unknown]
        if errors:
            raise Invalid(f"{errors[0][1]}; remove it from {field}", errors=errors)


def _check_review(body: RouterPut, version: tables.ModelVersion) -> None:
    if body.review_below is not None and not is_calibrated(version):
        message = (
            f"version {version.version} of {version.model} is not calibrated, so it has no set_probability "
            "to compare with review_below; train a version with the decision auto, or omit review_below"
        )
        raise Invalid(message, errors=[("/review_below", message)])


def _check_policies(body: RouterPut, version: tables.ModelVersion) -> None:
    if not has_policies(body) or has_curves(version):
        return
    message = (
        f"version {version.version} of {version.model} has no held-out curves, from which thresholds follow; "
        "train a version with the decision auto, or omit the policies"
    )
    names = ("target_precision", "target_recall", "costs") if policy_of(body) else ("label_policies",)
    errors = [(f"/{name}", message) for name in names if getattr(body, name)]
    raise Invalid(message, errors=errors)


def get_or_404(session: Session, name: str, *, lock: bool = False) -> tables.Router:
    """Return the row of a router.

    Raises:
        NotFound: there is no such router.
    """
    row = session.get(tables.Router, name, with_for_update=lock)
    if row is None:
        raise NotFound(f"there is no router {name}")
    return row


def _router_to_response(row: tables.Router) -> Router:
    return Router.model_validate(
        {
            "explain": False,
            "destinations": {},
            "review_sample": DEFAULT_REVIEW_SAMPLE,
            "keep_messages": "none",
            "keep_days": DEFAULT_KEEP_DAYS,
            **{field: value for field, value in row.config.items() if field != "versions" or value},
            "name": row.name,
            "created_at": row.created_at,
            "updated_at": row.updated_at,
        }
    )
