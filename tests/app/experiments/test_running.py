"""Running experiments: every experiment ends exactly once, whatever happens to its cells."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import in_process
import numpy as np
import pytest
import rows
from sqlalchemy import event, select
from stack import departments

from app.context import AppContext
from app.db import tables
from app.db.session import Database
from app.experiments import completion, service, shared_files
from app.experiments.report import service as reports
from app.experiments.report.schemas import ExperimentReport
from app.experiments.schemas import Experiment, ExperimentCreate
from app.jobs import queue
from app.jobs.handing_out import hand_out
from app.jobs.progress import ProgressReporter
from app.maintenance import unused_files
from app.training import service as trainings
from app.training.schemas import TrainingJobCreate
from workers import job_kinds

SIGN = {"kind": "sign"}

QUICK: list[dict[str, Any]] = [
    {"learner": {"algorithm": "mp_boost", "rounds": 4}, "features": {"kind": "text"}, "decision": SIGN},
    {"learner": {"algorithm": "naive_bayes"}, "features": {"kind": "text"}, "decision": SIGN},
    {
        "name": "svm",
        "learner": {"algorithm": "svm"},
        "features": {"kind": "text", "weighting": "tf"},
        "decision": SIGN,
    },
]


def start(ctx: AppContext, dataset_id: str, **fields: Any) -> Experiment:
    body = {
        "dataset_id": dataset_id,
        "split": {"kind": "folds", "folds": 3},
        "configurations": QUICK,
        "measures": ["f1_micro", "hamming_loss", "one_error"],
        **fields,
    }
    return service.create(ctx, ExperimentCreate.model_validate(body), in_process.WITHOUT_KEY)


def current(ctx: AppContext, experiment: Experiment) -> Experiment:
    return service.get(ctx.db, experiment.id)


def report_of(ctx: AppContext, experiment: Experiment) -> ExperimentReport:
    return reports.get(ctx, experiment.id)


def cell_jobs(ctx: AppContext, experiment: Experiment) -> list[str]:
    with ctx.db.read() as session:
        return [job.id for _, job in service.cell_rows(session, experiment.id)]


@contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    """Record the statements that the database executes while the block runs."""
    executed: list[str] = []

    def record(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        executed.append(statement)

    event.listen(database.engine, "before_cursor_execute", record)
    try:
        yield executed
    finally:
        event.remove(database.engine, "before_cursor_execute", record)


def stored_files(ctx: AppContext) -> list[str]:
    return sorted(file.key for file in ctx.storage.files(shared_files.FOLDER))


def test_the_plan_of_more_cells_takes_no_more_statements(ctx: AppContext) -> None:
    """They are in one transaction, and SQLite has no other writer during it."""
    dataset = in_process.dataset(ctx, departments(60))
    counts = []
    for folds in (2, 9):
        experiment = start(ctx, dataset, split={"kind": "folds", "folds": folds})
        with statements(ctx.db) as executed:
            in_process.work(ctx, max_jobs=1)
        assert len(cell_jobs(ctx, experiment)) == 3 * folds
        service.cancel(ctx, experiment.id)
        counts.append(len(executed))
    assert counts[0] == counts[1]


def test_every_cell_is_counted_once(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(60))
    experiment = start(ctx, dataset)
    assert (experiment.state, experiment.counts.total, experiment.counts.queued) == ("queued", 9, 9)
    assert in_process.work(ctx) == ["experiment"] + ["cell"] * 9
    ended = current(ctx, experiment)
    assert ended.state == "succeeded"
    assert ended.finished_at is not None
    assert ended.counts.model_dump() == {
        "total": 9, "queued": 0, "running": 0, "succeeded": 9, "failed": 0, "cancelled": 0
    }  # fmt: skip
    assert ended.cells is not None
    assert [(cell.configuration, cell.fold) for cell in ended.cells] == [
        (i, fold) for i in range(3) for fold in range(3)
    ]
    for row in report_of(ctx, experiment).rows:
        assert row.complete
        assert row.folds == [0, 1, 2]
        assert len(row.test["f1_micro"].values) == 3


def test_every_example_is_held_out_once_and_all_configurations_have_the_same_folds(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(60))
    experiment = start(ctx, dataset)
    in_process.work(ctx, 1)
    folds = shared_files.load_folds(ctx, experiment.id)
    assert folds is not None
    assert sorted(set(folds.of_example.tolist())) == [0, 1, 2]
    held_out = np.sum([folds.test(fold) for fold in range(3)], axis=0)
    assert held_out.tolist() == [1] * 60
    for fold in range(3):
        assert (folds.training(fold) != folds.test(fold)).all()
    in_process.work(ctx)
    for cell in current(ctx, experiment).cells or []:
        assert cell.metrics is not None
        assert cell.metrics.test is not None
        assert cell.metrics.test["n_examples"] == folds.test(cell.fold).sum()
        assert cell.metrics.train["n_examples"] == folds.training(cell.fold).sum()


def test_an_experiment_measures_what_a_training_with_the_same_defaults_gives(ctx: AppContext) -> None:
    parts = {"a": "invoice", "b": "parcel", "c": "printer"}
    examples = [
        {
            "text": f"please see n{i % 5} x{i}{parts[label]}{i}",
            "labels": [label],
            "split": "test" if i % 3 == 0 else "train",
        }
        for i in range(60)
        for label in parts
    ]
    dataset = in_process.dataset(ctx, examples)
    learner = {"algorithm": "svm"}
    experiment = start(
        ctx, dataset, configurations=[{"learner": learner}], split={"kind": "given"}, measures=["f1_micro"]
    )
    in_process.work(ctx)
    (row,) = report_of(ctx, experiment).rows
    assert row.features == {"kind": "auto"}
    with ctx.db.read() as session:
        ((_, cell),) = service.cell_rows(session, experiment.id)
    assert cell.result is not None
    assert set(cell.result["facts"]["average_precision_of_features"]) == {"words", "words, pairs and parts"}

    body = TrainingJobCreate.model_validate({"model": "m", "dataset_id": dataset, "learner": learner})
    job = trainings.create(ctx, body, in_process.WITHOUT_KEY)
    in_process.work(ctx)
    result = trainings.get(ctx.db, job.id).result
    assert result is not None
    assert result.metrics.test is not None
    assert row.test["f1_micro"].mean == result.metrics.test["f1_micro"] > 0.9


def test_features_are_computed_once_and_deleted_at_the_end(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(60))
    experiment = start(ctx, dataset)
    in_process.work(ctx, 7)
    # The folds; features of each fold for the first two learners; later the first fold's for the third.
    assert len(stored_files(ctx)) == 1 + 3 + 0
    in_process.work(ctx, 1)
    assert len(stored_files(ctx)) == 1 + 3 + 1
    in_process.work(ctx)
    assert stored_files(ctx) == []
    computed = [rows.job(ctx.db, job_id).result for job_id in cell_jobs(ctx, experiment)]
    assert [result is not None and result["features_computed"] for result in computed] == (
        [True] * 3 + [False] * 3 + [True] * 3
    )


def test_cells_created_in_one_transaction_are_handed_out_in_their_order_after_one_notification(
    ctx: AppContext, notified: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = in_process.dataset(ctx, departments(60))
    experiment = start(ctx, dataset)
    notified.clear()
    now_ns = time.time_ns()
    monkeypatch.setattr("app.ids.time.time_ns", lambda: now_ns)
    in_process.work(ctx, 1)
    cells = cell_jobs(ctx, experiment)
    assert len(cells) == 9
    assert notified == cells[-1:]
    assert [task.job_id for task in hand_out(ctx.db, ahead=9)] == cells


def test_missing_shared_files_are_computed_again(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(60))
    experiment, undisturbed = start(ctx, dataset), start(ctx, dataset)
    while in_process.work(ctx, 1):
        for key in stored_files(ctx):
            if shared_files.experiment_of(key) == experiment.id:
                ctx.storage.delete(key)
    first, second = (current(ctx, each).cells for each in (experiment, undisturbed))
    assert first is not None
    assert second is not None
    assert [cell.metrics for cell in first] == [cell.metrics for cell in second]


def test_the_data_sets_own_split_is_one_fold(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(40))
    experiment = start(ctx, dataset, split=None)
    assert experiment.request["split"] == {"kind": "given"}
    in_process.work(ctx)
    row = report_of(ctx, experiment).rows[0]
    assert row.complete
    assert row.test["f1_micro"].deviation is None
    cells = current(ctx, experiment).cells
    assert cells is not None
    assert [cell.metrics.test["n_examples"] for cell in cells if cell.metrics and cell.metrics.test] == [
        10
    ] * 3


def test_a_random_part_is_held_out(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(40))
    experiment = start(ctx, dataset, split={"kind": "random", "test_fraction": 0.2}, configurations=QUICK[:1])
    in_process.work(ctx)
    (cell,) = current(ctx, experiment).cells or []
    assert cell.metrics is not None
    assert cell.metrics.test is not None
    assert cell.metrics.test["n_examples"] == 8


def test_the_same_seed_gives_the_same_numbers(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(60))
    numbers = []
    for seed in (5, 5, 6):
        experiment = start(ctx, dataset, seed=seed, configurations=QUICK[:2])
        in_process.work(ctx)
        numbers.append([row.test["hamming_loss"].values for row in report_of(ctx, experiment).rows])
    assert numbers[0] == numbers[1] != numbers[2]


def negative(n: int) -> list[dict[str, Any]]:
    return [
        {"features": {"a": float(i % 3) - 1.0, "b": float(i % 2)}, "labels": [["x", "y"][i % 2]]}
        for i in range(n)
    ]


def test_a_configuration_that_cannot_learn_is_reported_and_the_others_continue(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, negative(30))
    experiment = start(
        ctx, dataset, configurations=[{"learner": {"algorithm": a}} for a in ("naive_bayes", "svm")]
    )
    in_process.work(ctx)
    ended = current(ctx, experiment)
    assert ended.state == "succeeded"
    assert (ended.counts.failed, ended.counts.succeeded) == (3, 3)
    bayes, svm = report_of(ctx, experiment).rows
    assert not bayes.complete
    assert [failure.fold for failure in bayes.failures] == [0, 1, 2]
    assert "negative" in bayes.failures[0].detail
    assert bayes.test == {}
    assert svm.complete
    assert svm.test["f1_micro"].best


def test_a_configuration_that_failed_on_one_fold_is_not_the_best(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(60))
    experiment = start(ctx, dataset, configurations=QUICK[:2])
    in_process.work(ctx, 1)
    claim = rows.claimed(ctx.db, cell_jobs(ctx, experiment)[0])
    job_kinds.fail(ctx, claim, {"detail": "for the test", "code": "test"})
    in_process.work(ctx)
    first, second = report_of(ctx, experiment).rows
    assert (first.complete, first.folds) == (False, [1, 2])
    assert len(first.test["f1_micro"].values) == 2
    assert not any(summary.best for summary in first.test.values())
    assert all(summary.best for summary in second.test.values())
    assert {comparison.over for comparison in report_of(ctx, experiment).comparisons} == {"folds", "examples"}


def test_an_experiment_fails_if_every_cell_fails(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, negative(30))
    experiment = start(ctx, dataset, configurations=[{"learner": {"algorithm": "naive_bayes"}}])
    in_process.work(ctx)
    ended = current(ctx, experiment)
    assert ended.state == "failed"
    assert ended.error is not None
    assert "negative" in ended.error.detail
    assert report_of(ctx, experiment).rows[0].test == {}


def test_an_impossible_split_fails_before_cells_are_created(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(1))
    experiment = start(ctx, dataset, split={"kind": "random", "test_fraction": 0.5})
    assert in_process.work(ctx) == ["experiment"]
    ended = current(ctx, experiment)
    assert ended.state == "failed"
    assert ended.error is not None
    assert "too few examples (1) for the 2 parts" in ended.error.detail
    assert (ended.counts.cancelled, ended.cells) == (3, [])


def test_cancelling_keeps_finished_cells_and_stops_the_rest(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(60))
    experiment = start(ctx, dataset)
    in_process.work(ctx, 3)
    stopped = service.cancel(ctx, experiment.id)
    assert stopped.state == "cancelled"
    assert (stopped.counts.succeeded, stopped.counts.cancelled) == (2, 7)
    assert in_process.queued(ctx) == []
    unused_files.delete_unused(ctx, lambda: False)  # as retention does
    assert stored_files(ctx) == []
    report = report_of(ctx, experiment)
    assert report.state == "cancelled"
    assert report.rows[0].folds == [0, 1]
    assert service.cancel(ctx, experiment.id).finished_at == stopped.finished_at


def test_a_running_cell_stops_at_its_next_round_and_ends_the_experiment(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(60))
    experiment = start(ctx, dataset)
    in_process.work(ctx, 1)
    claim = rows.claimed(ctx.db, cell_jobs(ctx, experiment)[0])
    waiting = service.cancel(ctx, experiment.id)
    assert waiting.state == "running"
    assert (waiting.counts.running, waiting.counts.cancelled) == (1, 8)
    with pytest.raises(Exception, match=claim.job_id):
        job_kinds.WORK["cell"].run(ctx, claim, ProgressReporter(ctx.db, claim))
    job_kinds.cancel(ctx, claim)
    assert current(ctx, experiment).state == "cancelled"


def test_an_experiment_cancelled_before_it_starts_has_no_cells(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(60))
    experiment = start(ctx, dataset)
    stopped = service.cancel(ctx, experiment.id)
    assert stopped.state == "cancelled"
    assert (stopped.counts.cancelled, stopped.cells) == (9, [])
    assert in_process.work(ctx) == []


def test_an_experiment_cancelled_during_planning_creates_no_cells(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(60))
    experiment = start(ctx, dataset)
    (plan,) = in_process.queued(ctx)
    with ctx.db.write() as tx:
        completion.lock(tx, experiment.id).cancel_requested_at = tx.now
    in_process.run_job(ctx, plan)
    assert cell_jobs(ctx, experiment) == []
    assert current(ctx, experiment).state == "cancelled"


def test_a_cell_that_lost_its_worker_is_run_again_and_counted_once(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(60))
    experiment = start(ctx, dataset, configurations=QUICK[:1])
    in_process.work(ctx, 1)
    job_id = cell_jobs(ctx, experiment)[1]
    dead = rows.claimed(ctx.db, job_id)
    with ctx.db.write() as tx:
        job = queue.lock(tx, job_id)
        assert job is not None
        queue.requeue_lost(tx, job, reason="test")
    assert in_process.work(ctx, 1) == ["cell"]
    # The first worker is still alive, but its claim has been lost.
    with pytest.raises(queue.LostClaimError):
        job_kinds.WORK["cell"].run(ctx, dead, ProgressReporter(ctx.db, dead))
    in_process.work(ctx)
    ended = current(ctx, experiment)
    assert (ended.state, ended.counts.succeeded) == ("succeeded", 3)
    assert [cell.attempt for cell in ended.cells or []] == [1, 2, 1]
    assert len(report_of(ctx, experiment).rows[0].test["f1_micro"].values) == 3


def test_two_cells_that_end_at_the_same_moment_end_the_experiment_once(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(60))
    experiment = start(ctx, dataset, configurations=QUICK[:1])
    in_process.work(ctx, 2)
    claims = [rows.claimed(ctx.db, job_id) for job_id in cell_jobs(ctx, experiment)[1:]]
    together = threading.Barrier(2)
    ended: list[bool] = []

    def finish(claim: queue.Claim) -> None:
        together.wait()
        with ctx.db.write() as tx:
            queue.finish(tx, claim, "succeeded", result={"metrics": {"train": {}, "test": {}}})
            ended.append(completion.finish_if_done(tx, experiment.id))

    threads = [threading.Thread(target=finish, args=(claim,)) for claim in claims]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ended) == [False, True]
    assert current(ctx, experiment).state == "succeeded"


def test_cancelling_while_the_last_cell_ends_finishes_the_experiment(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(60))
    experiment = start(ctx, dataset, configurations=QUICK[:1])
    in_process.work(ctx, 3)
    claim = rows.claimed(ctx.db, cell_jobs(ctx, experiment)[2])
    together = threading.Barrier(2)

    def finish() -> None:
        together.wait()
        with ctx.db.write() as tx:
            queue.finish(tx, claim, "succeeded", result={"metrics": {"train": {}, "test": {}}})
            completion.finish_if_done(tx, experiment.id)

    def cancel() -> None:
        together.wait()
        service.cancel(ctx, experiment.id)

    threads = [threading.Thread(target=target) for target in (finish, cancel)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert current(ctx, experiment).state == "succeeded"


def test_a_data_set_cannot_be_deleted_while_an_experiment_uses_it(ctx: AppContext) -> None:
    from app.datasets import service as datasets
    from app.errors import Conflict

    dataset = in_process.dataset(ctx, departments(60))
    experiment = start(ctx, dataset, configurations=QUICK[:1])
    with pytest.raises(Conflict):
        datasets.delete(ctx, dataset)
    in_process.work(ctx)
    before = report_of(ctx, experiment)
    datasets.delete(ctx, dataset)
    assert report_of(ctx, experiment) == before


def test_learning_curves_are_recorded(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(60))
    experiment = start(ctx, dataset, configurations=QUICK[:2])
    in_process.work(ctx)
    report = report_of(ctx, experiment)
    assert {(curve.configuration, curve.measure) for curve in report.curves} == {
        (0, "f1_micro"), (0, "hamming_loss"), (0, "one_error")
    }  # fmt: skip
    for curve in report.curves:
        assert (curve.unit, curve.steps) == ("rounds", [1, 2, 3, 4])
        row = report.rows[0]
        assert curve.out_of_folds[-1] == pytest.approx(row.test[curve.measure].mean)
        assert curve.within_folds[-1] == pytest.approx(row.train[curve.measure].mean)
    with ctx.db.read() as session:
        points = session.scalars(select(tables.CurvePoint)).all()
    assert len(points) == 3 * 4
