"""Read what the pages of models show, with the functions that the API calls."""

from __future__ import annotations

from app.api.paging import MAX_LIMIT, Page
from app.console.charts import Curve
from app.console.versions.comparison import ComparedVersion
from app.context import AppContext
from app.datasets import service as datasets
from app.datasets.schemas import Dataset
from app.db.session import Database
from app.errors import NotFound
from app.evaluations import service as evaluations
from app.evaluations.schemas import TrainingEvaluation
from app.registry import aliases
from app.registry import service as registry
from app.registry.schemas import Alias, AliasChange, ModelVersion
from app.training import service as training
from app.training.schemas import TrainingJob

MAX_STEPS = 5 * MAX_LIMIT
"""Maximum number of steps of a curve that are read."""


def read_version(ctx: AppContext, name: str, number: int) -> ComparedVersion:
    """Return a version with its training and its evaluation.

    Raises:
        NotFound: there is no such version.
    """
    version = registry.get_version(ctx.db, name, number)
    job = training_job(ctx.db, version)
    evaluation = training_evaluation(ctx, version)
    return ComparedVersion(
        version,
        {} if job is None else job.request,
        None if evaluation is None else evaluation.train,
        None if evaluation is None else evaluation.test,
    )


def training_job(db: Database, version: ModelVersion) -> TrainingJob | None:
    """Return the training of a version; None if it has none, or if it was deleted."""
    if version.training_job_id is None:
        return None
    try:
        return training.get(db, version.training_job_id)
    except NotFound:
        return None


def training_evaluation(
    ctx: AppContext, version: ModelVersion, *, texts: bool = False
) -> TrainingEvaluation | None:
    """Return the evaluation of the training of a version; None if it has none."""
    try:
        return evaluations.get_of_training(ctx, version.model, version.version, texts=texts)
    except NotFound:
        return None


def dataset_of(db: Database, version: ModelVersion) -> Dataset | None:
    """Return the data set that a version was trained on; None if it is unknown or deleted."""
    if version.dataset_id is None:
        return None
    try:
        return datasets.get(db, version.dataset_id)
    except NotFound:
        return None


def live_alias(db: Database, name: str) -> Alias | None:
    """Return the alias ``live`` of a model; None if it has none."""
    try:
        return aliases.get(db, name, "live")
    except NotFound:
        return None


def history(db: Database, name: str, alias: str, page: Page) -> tuple[list[AliasChange], str | None]:
    """Return a page of the changes of an alias, newest first, and the next cursor."""
    try:
        changes = aliases.page_history(db, name, alias, page)
    except NotFound:
        return [], None
    return changes.items, changes.next_cursor


def curves_of(db: Database, version: ModelVersion, title: str) -> list[Curve]:
    """Return the measures of a version by step of its training."""
    job = training_job(db, version)
    if job is None:
        return []
    steps: list[int] = []
    points: list[dict[str, float]] = []
    after: str | None = None
    while len(steps) < MAX_STEPS:
        items = training.curve(db, job.id, Page(MAX_LIMIT, after)).items
        steps += [item.step for item in items]
        points += [item.measures for item in items]
        if len(items) < MAX_LIMIT:
            break
        after = str(steps[-1])
    names = dict.fromkeys(name for point in points for name in point)
    curves = []
    for name in names:
        known = [(step, point[name]) for step, point in zip(steps, points, strict=True) if name in point]
        curves.append(Curve(title, name, [step for step, _ in known], [value for _, value in known]))
    return curves


def unit_of_steps(version: ModelVersion) -> str:
    """Return what a step of the training of a version is."""
    units = {"rounds": "round", "epochs": "epoch", "passes": "pass"}
    return next((unit for name, unit in units.items() if name in version.learner), "step")
