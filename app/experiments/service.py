"""What happens to experiments.

An experiment is a job that shares the examples out and queues the cells, and a job a cell. Its end is
written once, by whichever of its jobs ends last.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.datasets import service as datasets
from app.db import tables
from app.db.session import Database, Transaction
from app.environment import Environment
from app.errors import ApiError, Invalid, NotFound, TooLarge, from_learning
from app.experiments import sharing
from app.experiments.naming import names_of
from app.experiments.schemas import (
    Configuration,
    Experiment,
    ExperimentCell,
    ExperimentCreate,
    ExperimentPage,
    FoldsSplit,
)
from app.idempotency import Once
from app.ids import new_id
from app.jobs import ledger
from app.limits import service as limits
from app.paging import Page, newest_first
from app.training.coverings import check_covering
from app.training.schemas import GivenSplit
from models import catalog
from models.catalog import FeaturesUnion
from models.decisions import DecisionUnion
from models.errors import ParameterError
from models.measures.directions import DIRECTIONS
from models.measures.tree import TREE_LOSSES


def create(env: Environment, body: ExperimentCreate, once: Once) -> Experiment:
    """Queue an experiment; whatever can be known to be impossible is refused now."""
    dataset = datasets.ready(env, body.dataset_id, pointer="/dataset_id")
    request = completed(body, dataset)
    cells = n_cells(request)
    if cells > env.settings.max_experiment_cells:
        message = (
            f"an experiment may have {env.settings.max_experiment_cells} cells, this one has {cells}; "
            "try fewer configurations or folds"
        )
        raise TooLarge(message, errors=[("/configurations", message)])

    for place, configuration in _written_out(body):
        # Which examples a fold leaves out is not known yet, so only what no fold could use is refused.
        n_examples = int((dataset.report or {})["n_examples"])
        check_covering(env.db, configuration.learner, dataset, left_out=n_examples, place=place)

    def work(tx: Transaction) -> Experiment:
        experiment_id = new_id("exp")
        job = ledger.enqueue(tx, "experiment", {"experiment_id": experiment_id}, dataset_id=dataset.id)
        limits.own(tx, job, once.key_id, env.settings.jobs_in_flight)
        row = tables.Experiment(
            id=experiment_id,
            name=request.name,
            dataset_id=dataset.id,
            dataset_sha256=dataset.sha256,
            request=request.model_dump(mode="json", exclude_none=True),
            state="running",
            job_id=job.id,
            created_at=tx.now,
        )
        tx.session.add(row)
        tx.session.flush()
        return shown(tx.session, row, whole=True)

    made = once.run(env.db, Experiment, work)
    sweep(env)
    return made


def completed(body: ExperimentCreate, dataset: tables.Dataset) -> ExperimentCreate:
    """The request with its defaults filled in for a data set, and a grid written out.

    Raises:
        Invalid: the data set, a configuration, the split and the measures do not go together.
    """
    report = dataset.report or {}
    splits = report.get("splits", {})
    given = splits.get("train", 0) > 0 and splits.get("test", 0) > 0
    if isinstance(body.split, GivenSplit) and not given:
        message = "the data set's examples bear no split with a training and a test part; choose folds"
        raise Invalid(message, errors=[("/split/kind", message)])
    split = body.split or (GivenSplit(kind="given") if given else FoldsSplit(kind="folds"))
    if isinstance(split, FoldsSplit) and split.folds > report["n_examples"]:
        message = f"the data set has {report['n_examples']} examples; make fewer folds"
        raise Invalid(message, errors=[("/split/folds", message)])
    for i, measure in enumerate(body.measures):
        known = measure in DIRECTIONS and (measure not in TREE_LOSSES or bool(dataset.label_tree))
        if not known:
            message = f"there is no measure {measure!r} of this data set; choose of {_listed(dataset)}"
            raise Invalid(message, errors=[(f"/measures/{i}", message)])
    configurations = [
        _completed(configuration, place, report["kind"]) for place, configuration in _written_out(body)
    ]
    given_names = [configuration.name for configuration in configurations]
    for i, name in enumerate(given_names):
        if name is not None and name in given_names[:i]:
            message = f"two configurations are called {name!r}"
            raise Invalid(message, errors=[(f"/configurations/{i}/name", message)])
    names = names_of([c.model_dump(mode="json", exclude_none=True) for c in configurations])
    return body.model_copy(
        update={
            "split": split,
            "grid": None,
            "configurations": [
                configuration.model_copy(update={"name": name})
                for configuration, name in zip(configurations, names, strict=True)
            ],
            "measures": list(dict.fromkeys(body.measures)),
        }
    )


def _written_out(body: ExperimentCreate) -> list[tuple[str, Configuration]]:
    """Every configuration, with the place in the request that it comes from."""
    if body.grid is None:
        return [(f"/configurations/{i}", c) for i, c in enumerate(body.configurations or [])]
    grid = body.grid
    features_of: Sequence[FeaturesUnion | None] = grid.features or [None]
    decisions: Sequence[DecisionUnion | None] = grid.decision or [None]
    combinations = itertools.product(grid.learner, features_of, decisions)
    return [
        ("/grid", Configuration(features=features, learner=learner, decision=decision))
        for learner, features, decision in combinations
    ]


def _completed(configuration: Configuration, place: str, kind: Any) -> Configuration:
    features = configuration.features or catalog.FEATURES_PARAMETERS.validate_python(
        {"kind": "numeric" if kind == "features" else "text"}
    )
    try:
        catalog.check_features(features, configuration.learner, kind)
        decision = catalog.resolve_decision(configuration.learner, configuration.decision)
    except ParameterError as error:
        raise _placed(error, place) from error
    return configuration.model_copy(update={"features": features, "decision": decision})


def _placed(error: ParameterError, place: str) -> ApiError:
    moved = ParameterError(str(error), place + error.pointer)
    return from_learning(moved)


def _listed(dataset: tables.Dataset) -> str:
    return ", ".join(sorted(m for m in DIRECTIONS if dataset.label_tree or m not in TREE_LOSSES))


def n_folds(request: ExperimentCreate) -> int:
    """How often examples are held out."""
    return request.split.folds if isinstance(request.split, FoldsSplit) else 1


def n_cells(request: ExperimentCreate) -> int:
    """Configurations times folds."""
    return len(request.configurations or []) * n_folds(request)


def get(db: Database, experiment_id: str) -> Experiment:
    """One experiment, with its cells."""
    with db.read() as session:
        return shown(session, found(session, experiment_id), whole=True)


def page(db: Database, page: Page) -> ExperimentPage:
    """A page of experiments, the newest first."""
    with db.read() as session:
        rows, cursor = newest_first(session, select(tables.Experiment), tables.Experiment.id, page)
        items = [shown(session, row, whole=False) for row in rows]
        return ExperimentPage(items=items, next_cursor=cursor)


def cancel(env: Environment, experiment_id: str) -> Experiment:
    """Ask an experiment to stop: what is finished is kept, what runs stops, the rest never starts."""
    with env.db.write() as tx:
        row = lock(tx, found(tx.session, experiment_id).id)
        if row.state != "running":
            return shown(tx.session, row, whole=True)
        # From here on no cells are made; those that there are can be asked one by one.
        row.cancel_requested_at = row.cancel_requested_at or tx.now
    with env.db.write() as tx:
        # Jobs before the experiment, as when a cell ends, so that neither waits for the other.
        for job_id in jobs_of(tx.session, experiment_id):
            job = ledger.lock(tx, job_id)
            assert job is not None, "jobs are not deleted"  # noqa: S101
            ledger.request_cancel(tx, job)
        close_if_done(tx, experiment_id)
        made = shown(tx.session, found(tx.session, experiment_id), whole=True)
    sweep(env)
    return made


def lock(tx: Transaction, experiment_id: str) -> tables.Experiment:
    """The experiment's row, held until the end of the transaction and read anew."""
    return tx.session.get_one(tables.Experiment, experiment_id, with_for_update=True, populate_existing=True)


def close_if_done(tx: Transaction, experiment_id: str) -> bool:
    """End an experiment if none of its jobs is left to end.

    Called in the transaction that ends a job. Two that end at the same moment meet at the experiment's
    row: the second waits there, and sees what the first has written.

    Returns:
        whether the experiment has ended.
    """
    row = lock(tx, experiment_id)
    if row.state != "running":
        return True
    planning = tx.session.get_one(tables.Job, row.job_id, populate_existing=True)
    if planning.state not in ledger.FINISHED:
        return False
    jobs = tx.session.scalars(
        select(tables.Job)
        .join(tables.ExperimentCell, tables.ExperimentCell.job_id == tables.Job.id)
        .where(tables.ExperimentCell.experiment_id == experiment_id)
        .order_by(tables.ExperimentCell.configuration, tables.ExperimentCell.fold)
        .execution_options(populate_existing=True)
    ).all()
    if any(job.state not in ledger.FINISHED for job in jobs):
        return False
    states = Counter(job.state for job in [*jobs, planning])
    # Stopped before it had cells, or while it had some left.
    if states["cancelled"] or (row.cancel_requested_at is not None and not jobs):
        row.state = "cancelled"
    elif any(job.state == "succeeded" for job in jobs):
        row.state = "succeeded"
    else:
        row.state = "failed"
        row.error = next(job.error for job in [planning, *jobs] if job.error is not None)
    row.finished_at = tx.now
    tx.session.flush()
    return True


def close_ended(tx: Transaction, dataset_id: str | None) -> None:
    """End the experiments on a data set that have no job left to end."""
    running = tx.session.scalars(
        select(tables.Experiment.id)
        .where(tables.Experiment.dataset_id == dataset_id, tables.Experiment.state == "running")
        .order_by(tables.Experiment.id)
    ).all()
    for experiment_id in running:
        close_if_done(tx, experiment_id)


def sweep(env: Environment) -> None:
    """Remove what ended experiments shared."""
    owners = {found.key: sharing.owner_of(found.key) for found in env.storage.files(sharing.FOLDER)}
    if not owners:
        return
    with env.db.read() as session:
        running = set(
            session.scalars(
                select(tables.Experiment.id).where(
                    tables.Experiment.id.in_(set(owners.values())), tables.Experiment.state == "running"
                )
            )
        )
    for key, owner in owners.items():
        if owner not in running:
            env.storage.delete(key)


def jobs_of(session: Session, experiment_id: str) -> list[str]:
    """The unfinished jobs of an experiment, by id."""
    cells = select(tables.ExperimentCell.job_id).where(tables.ExperimentCell.experiment_id == experiment_id)
    own = select(tables.Experiment.job_id).where(tables.Experiment.id == experiment_id)
    return list(
        session.scalars(
            select(tables.Job.id)
            .where(tables.Job.id.in_(cells.union(own)), tables.Job.state.not_in(ledger.FINISHED))
            .order_by(tables.Job.id)
        )
    )


def found(session: Session, experiment_id: str) -> tables.Experiment:
    """The experiment's row.

    Raises:
        NotFound: there is none.
    """
    row = session.get(tables.Experiment, experiment_id)
    if row is None:
        raise NotFound(f"there is no experiment {experiment_id}")
    return row


def shown(session: Session, row: tables.Experiment, *, whole: bool) -> Experiment:
    """A row as clients see it."""
    total = n_cells(ExperimentCreate.model_validate(row.request))
    counts = _counts(session, row.id)
    made = sum(counts.values())
    waiting = "cancelled" if row.state in ledger.FINISHED else "queued"
    counts[waiting] += total - made
    planning = session.get_one(tables.Job, row.job_id)
    return Experiment.model_validate(
        {
            "id": row.id,
            "name": row.name,
            "dataset_id": row.dataset_id,
            "request": row.request,
            "state": "queued" if planning.state == "queued" else row.state,
            "counts": {
                "total": total,
                **{s: counts[s] for s in ("queued", "running", "succeeded", "failed", "cancelled")},
            },
            "created_at": row.created_at,
            "finished_at": row.finished_at,
            "cancel_requested_at": row.cancel_requested_at,
            "error": row.error,
            "cells": _cells(session, row.id) if whole else None,
        }
    )


def _counts(session: Session, experiment_id: str) -> Counter[str]:
    rows = session.execute(
        select(tables.Job.state, func.count())
        .join(tables.ExperimentCell, tables.ExperimentCell.job_id == tables.Job.id)
        .where(tables.ExperimentCell.experiment_id == experiment_id)
        .group_by(tables.Job.state)
    )
    counts: Counter[str] = Counter()
    for state, count in rows:
        counts[state] = count
    return counts


def cell_rows(session: Session, experiment_id: str) -> list[tuple[tables.ExperimentCell, tables.Job]]:
    """Every cell with its job, by configuration and fold."""
    rows = session.execute(
        select(tables.ExperimentCell, tables.Job)
        .join(tables.Job, tables.Job.id == tables.ExperimentCell.job_id)
        .where(tables.ExperimentCell.experiment_id == experiment_id)
        .order_by(tables.ExperimentCell.configuration, tables.ExperimentCell.fold)
    )
    return [(cell, job) for cell, job in rows]


def _cells(session: Session, experiment_id: str) -> list[ExperimentCell]:
    return [
        ExperimentCell.model_validate(
            {
                "configuration": cell.configuration,
                "fold": cell.fold,
                "state": job.state,
                "progress": job.progress if job.state == "running" else None,
                "attempt": job.attempt,
                "metrics": (job.result or {}).get("metrics"),
                "error": job.error,
            }
        )
        for cell, job in cell_rows(session, experiment_id)
    ]


def curves_of(session: Session, job_ids: Sequence[str]) -> dict[str, dict[int, dict[str, float]]]:
    """The measures of cells by step, by the cell's job."""
    curves: dict[str, dict[int, dict[str, float]]] = {}
    points = select(tables.CurvePoint).where(tables.CurvePoint.job_id.in_(job_ids))
    for point in session.scalars(points):
        curves.setdefault(point.job_id, {})[point.step] = point.measures
    return curves
