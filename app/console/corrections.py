"""From reviewed messages to the next version: the form of a data set, and the training that follows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import Request, Response

from app.api.base_route import Context, TrainScope
from app.api.paging import Page
from app.api.schemas import RouterName
from app.console.rendering import page
from app.console.route import pages
from app.console.training import choose_dataset
from app.console.versions import reading
from app.context import AppContext
from app.datasets.schemas import Dataset
from app.db.session import Database
from app.errors import NotFound
from app.registry import service as registry
from app.registry.schemas import ModelVersion
from app.routing import decisions, service

router = pages("/routers")

PROMOTE = {"if_better": {"metric": "f1_micro"}}
"""The measure that must be better before the next version is put live."""


@router.get("/{name}/dataset", dependencies=[TrainScope])
def corrections_dataset(ctx: Context, request: Request, name: RouterName) -> Response:
    """Show the form that makes a data set from the reviewed messages of a router."""
    found = service.get(ctx.db, name)
    version = served_version(ctx.db, found.model)
    ready, _ = choose_dataset(ctx, None)
    return page(
        request,
        "routers/dataset.html",
        router=found,
        reviewed=decisions.count_reviewed(ctx.db, name),
        proposed_name=f"{name} {datetime.now(UTC):%Y-%m-%d}",
        datasets=[item for item in ready if item.kind != "features"],
        served=version,
    )


def served_version(db: Database, model: str) -> ModelVersion | None:
    """Return the live version of a model, or its newest one; None if it has no version."""
    live = reading.live_alias(db, model)
    if live is not None:
        return registry.get_version(db, model, live.version)
    return next(iter(registry.page_versions(db, model, Page(1, None)).items), None)


def next_training(ctx: AppContext, dataset: Dataset) -> dict[str, Any] | None:
    """Return what the page of a data set from feedback needs to train the next version with it.

    Returns:
        The ``request``, and the ``version`` whose settings it has; None if the data set is not ready or not
        from feedback, or if its router or the version does not exist any more.
    """
    if dataset.state != "ready" or dataset.lineage is None or dataset.lineage.feedback is None:
        return None
    try:
        model = service.get(ctx.db, dataset.lineage.feedback.router).model
    except NotFound:
        return None
    version = served_version(ctx.db, model)
    return None if version is None else {"request": _request(ctx.db, dataset, version), "version": version}


def _request(db: Database, dataset: Dataset, version: ModelVersion) -> dict[str, Any]:
    """Return the request of a training with the settings of a version."""
    job = reading.training_job(db, version)
    own = {"learner": version.learner, "features": version.features, "decision": version.decision}
    settings = {**(own if job is None else job.request)}
    if dataset.kind == "text":  # a text has no fields
        settings["features"] = {
            name: value for name, value in settings["features"].items() if name != "fields"
        }
    split = settings.get("split", {})
    if dataset.splits is not None and dataset.splits.train and dataset.splits.test:
        split = {"kind": "given"}
    elif split.get("kind") != "random":
        split = {"kind": "random", "test_fraction": 0.25}
    return {
        **settings,
        "model": version.model,
        "dataset_id": dataset.id,
        "split": split,
        "promote": PROMOTE,
        "priority": 0,
    }
