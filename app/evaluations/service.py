"""Create, return and list evaluations."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.orm import defer

from app.api.idempotency import Idempotency
from app.api.paging import Page
from app.context import AppContext
from app.datasets import service as datasets
from app.db import tables
from app.db.session import Database, Transaction
from app.errors import Invalid, NotFound
from app.evaluations.coverings import check_covering_of_version, check_measured_covering
from app.evaluations.schemas import (
    Evaluation,
    EvaluationCreate,
    EvaluationPage,
    PartEvaluation,
    TrainingEvaluation,
)
from app.ids import new_id
from app.jobs import queue
from app.jobs.views import JobResource
from app.limits import service as limits
from app.registry import service as versions
from app.registry.compatibility import check_kind
from app.registry.queries import resolve
from models.data.examples import Examples
from models.data.store import StoredExamples
from models.errors import BadDataError
from models.mail import read_email
from models.mail.email import Email

MAX_TEXT_CHARACTERS = 2_000
"""Number of characters of a document that a response includes."""


EVALUATIONS: JobResource[tables.Evaluation, Evaluation, EvaluationPage] = JobResource(
    "evaluation",
    Evaluation,
    EvaluationPage,
    lambda row: {
        "id": row.id,
        "model": row.model,
        "version": row.version,
        "dataset_id": row.dataset_id,
        "part": row.request["part"],
        "covering": row.request.get("covering"),
        "created_at": row.created_at,
    },
    id_=tables.Evaluation.id,
    job_id=tables.Evaluation.job_id,
    rows=select(tables.Evaluation).where(tables.Evaluation.of_training.is_(False)),
)


def create(
    ctx: AppContext, name: str, version: int, body: EvaluationCreate, idempotency: Idempotency
) -> Evaluation:
    """Queue the evaluation of a version on a data set.

    Raises:
        NotFound: the version or the data set does not exist.
        Conflict: the data set is not ready.
        Invalid: the data set does not have the part, or has another kind of examples than the version.
    """
    if (first := idempotency.first_response(ctx.db, Evaluation)) is not None:
        return first
    dataset = datasets.get_ready(ctx, body.dataset_id, pointer="/dataset_id")
    datasets.check_labelled(dataset, pointer="/dataset_id")
    splits = (dataset.report or {}).get("splits", {})
    if body.part != "all" and not splits.get(body.part):
        message = f"the data set has no {body.part} part; set part to all"
        raise Invalid(message, errors=[("/part", message)])
    check_measured_covering(body.covering, dataset)
    if body.covering is not None:
        with ctx.db.read() as session:
            evaluated = resolve(session, name, version)
        check_covering_of_version(body.covering, evaluated)

    def work(tx: Transaction) -> Evaluation:
        datasets.lock_ready(tx, dataset.id, pointer="/dataset_id")
        versions.lock_model(tx, name, shared=True)
        check_kind(resolve(tx.session, name, version), dataset, pointer="/dataset_id")
        job = queue.enqueue(
            tx,
            "evaluate",
            {},
            dataset_id=dataset.id,
            model=name,
            priority=body.priority,
            key_id=idempotency.key_id,
        )
        limits.check_job_limit(tx, idempotency.key_id, ctx.settings.jobs_in_flight)
        row = tables.Evaluation(
            id=new_id("evl"),
            model=name,
            version=version,
            job_id=job.id,
            of_training=False,
            dataset_id=dataset.id,
            request=body.model_dump(mode="json", exclude_none=True),
            created_at=tx.now,
        )
        tx.session.add(row)
        tx.session.flush()
        return EVALUATIONS.to_response(row, job)

    return idempotency.run(ctx.db, Evaluation, work)


def get_of_training(ctx: AppContext, name: str, version: int, *, texts: bool) -> TrainingEvaluation:
    """Return the evaluation of a version on its own training and test part.

    Raises:
        NotFound: the version does not exist, or was imported and so has no such evaluation.
    """
    with ctx.db.read() as session:
        resolve(session, name, version)
        row = session.scalars(
            _of_version(name, version, of_training=True).order_by(tables.Evaluation.id.desc())
        ).first()
    if row is None or row.content is None:
        message = (
            f"version {version} of {name} was imported; to evaluate it on a data set, post to …/evaluations"
        )
        raise NotFound(message, code="not_evaluated")
    parts = {part: PartEvaluation.model_validate(content) for part, content in row.content.items()}
    if texts:
        for part, content in row.content.items():
            _add_texts(ctx, row.dataset_id, parts[part], content)
    return TrainingEvaluation(
        model=row.model,
        version=row.version,
        dataset_id=row.dataset_id,
        training_job_id=row.job_id,
        created_at=row.created_at,
        train=parts["train"],
        test=parts.get("test"),
    )


def get(ctx: AppContext, name: str, version: int, evaluation_id: str, *, texts: bool) -> Evaluation:
    """Return an evaluation of a version on a data set.

    Raises:
        NotFound: the evaluation does not exist.
    """
    with ctx.db.read() as session:
        row = session.get(tables.Evaluation, evaluation_id)
        if row is None or (row.model, row.version) != (name, version) or row.of_training:
            raise NotFound(f"version {version} of {name} has no evaluation {evaluation_id}")
        result = None if row.content is None else row.content["all"]
        evaluation = EVALUATIONS.to_response(row, session.get_one(tables.Job, row.job_id), result=result)
    if texts and evaluation.result is not None and row.content is not None:
        _add_texts(ctx, row.dataset_id, evaluation.result, row.content["all"])
    return evaluation


def page(db: Database, name: str, version: int, page: Page) -> EvaluationPage:
    """Return a page of evaluations of a version on data sets, newest first.

    Raises:
        NotFound: the version does not exist.
    """
    with db.read() as session:
        resolve(session, name, version)
        statement = _of_version(name, version, of_training=False)
        statement = statement.options(defer(tables.Evaluation.content, raiseload=True))
        return EVALUATIONS.page_of(session, statement, page)


def _of_version(name: str, version: int, *, of_training: bool) -> Select[tables.Evaluation]:
    return select(tables.Evaluation).where(
        tables.Evaluation.model == name,
        tables.Evaluation.version == version,
        tables.Evaluation.of_training.is_(of_training),
    )


def _add_texts(ctx: AppContext, dataset_id: str, part: PartEvaluation, content: dict[str, Any]) -> None:
    """Add the beginnings of the texts of the worst documents, if the data set still exists."""
    with ctx.db.read() as session:
        dataset = session.get(tables.Dataset, dataset_id)
    if dataset is None or dataset.storage_key is None:
        return
    try:
        stored = StoredExamples(ctx.storage.local(dataset.storage_key))
    except (FileNotFoundError, BadDataError):  # deleted after the database was read, or damaged
        return
    for document, fields in zip(part.worst, content["worst"], strict=True):
        document.text = _text(stored.page(fields["position"], 1))


def _text(example: Examples) -> str | None:
    if example.kind == "features":
        return None
    document: Any = example.documents[0]  # type: ignore[index]  # the case of features is handled above
    if isinstance(document, Email):
        document = "\n".join(part.text for part in read_email(document).learning_parts())
    return str(document)[:MAX_TEXT_CHARACTERS]
