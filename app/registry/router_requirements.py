"""The requirements of routers for the versions that their aliases name."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, or_, select

from app.db import tables
from app.db.session import Transaction
from app.errors import Conflict

POLICIES = ("target_precision", "target_recall", "costs", "label_policies")
"""Fields of a router from which thresholds follow."""


def is_calibrated(version: tables.ModelVersion) -> bool:
    """Whether a version predicts probabilities."""
    return bool(version.description.get("calibrated", False))


def has_curves(version: tables.ModelVersion) -> bool:
    """Whether thresholds for a version can follow from policies."""
    return bool(version.description.get("has_curves", False))


def decides_by(model: str, alias: str) -> ColumnElement[bool]:
    """Return the condition that the version which an alias names decides for a router."""
    of = tables.RouterVersion
    several = select(of.router).where(of.model == model, of.alias == alias)
    return or_(tables.Router.alias == alias, tables.Router.name.in_(several))


def uses_version(model: str, version: int) -> ColumnElement[bool]:
    """Return the condition that a router names a version by its number."""
    of, router = tables.RouterVersion, tables.Router
    several = select(of.router).where(of.model == model, of.version == version)
    return or_(router.version == version, router.shadow_version == version, router.name.in_(several))


def check(tx: Transaction, version: tables.ModelVersion, alias: str) -> None:
    """Check that a version has what the routers that use an alias require.

    Raises:
        Conflict: a router requires something that the version does not have.
    """
    if is_calibrated(version) and has_curves(version):
        return
    routers = tx.session.execute(
        select(tables.Router.name, tables.Router.config)
        .where(tables.Router.model == version.model, decides_by(version.model, alias))
        .order_by(tables.Router.name)
    )
    for name, config in routers:
        _check_router(version, name, config)


def _check_router(version: tables.ModelVersion, router: str, config: dict[str, Any]) -> None:
    name = f"version {version.version} of {version.model}"
    if config.get("review_below") is not None and not is_calibrated(version):
        raise Conflict(
            f"router {router} uses review_below, and {name} is not calibrated; train a version with "
            "the decision auto, or remove review_below from the router",
            code="version_not_calibrated",
        )
    policy = next((field for field in POLICIES if config.get(field)), None)
    if policy is not None and not has_curves(version):
        raise Conflict(
            f"router {router} uses {policy}, and {name} has no held-out curves; train a version with "
            f"the decision auto, or remove {policy} from the router",
            code="version_without_curves",
        )
