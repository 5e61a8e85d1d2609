"""Experiments run to their end, whatever happens to their cells, and end once."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import in_process
import numpy as np
import pytest
import rows
from sqlalchemy import select
from stack import departments

from app.db import tables
from app.environment import Environment
from app.experiments import report, service, sharing
from app.experiments.schemas import Experiment, ExperimentCreate, ExperimentReport
from app.jobs import kinds, ledger
from app.jobs.reporter import Reporter

QUICK: list[dict[str, Any]] = [
    {"learner": {"algorithm": "mp_boost", "rounds": 4}},
    {"learner": {"algorithm": "naive_bayes"}},
    {"name": "svm", "learner": {"algorithm": "svm"}, "features": {"kind": "text", "weighting": "tf"}},
]


def start(env: Environment, dataset_id: str, **fields: Any) -> Experiment:
    body = {
        "dataset_id": dataset_id,
        "split": {"kind": "folds", "folds": 3},
        "configurations": QUICK,
        "measures": ["f1_micro", "hamming_loss", "one_error"],
        **fields,
    }
    return service.create(env, ExperimentCreate.model_validate(body), in_process.ONCE)


def now(env: Environment, made: Experiment) -> Experiment:
    return service.get(env.db, made.id)


def reported(env: Environment, made: Experiment) -> ExperimentReport:
    return report.of(env, made.id)


def cell_jobs(env: Environment, made: Experiment) -> list[str]:
    with env.db.read() as session:
        return [job.id for _, job in service.cell_rows(session, made.id)]


def shared(env: Environment) -> list[str]:
    return sorted(found.key for found in env.storage.files(sharing.FOLDER))


def test_every_cell_is_counted_once(env: Environment) -> None:
    dataset = in_process.dataset(env, departments(60))
    made = start(env, dataset)
    assert (made.state, made.counts.total, made.counts.queued) == ("queued", 9, 9)
    assert in_process.work(env) == ["experiment"] + ["cell"] * 9
    ended = now(env, made)
    assert ended.state == "succeeded"
    assert ended.finished_at is not None
    assert ended.counts.model_dump() == {
        "total": 9, "queued": 0, "running": 0, "succeeded": 9, "failed": 0, "cancelled": 0
    }  # fmt: skip
    assert ended.cells is not None
    assert [(cell.configuration, cell.fold) for cell in ended.cells] == [
        (i, fold) for i in range(3) for fold in range(3)
    ]
    for row in reported(env, made).rows:
        assert row.complete
        assert row.folds == [0, 1, 2]
        assert len(row.test["f1_micro"].values) == 3


def test_every_example_is_held_out_once_and_the_folds_are_the_same_for_all(env: Environment) -> None:
    dataset = in_process.dataset(env, departments(60))
    made = start(env, dataset)
    in_process.work(env, 1)
    folds = sharing.load_folds(env, made.id)
    assert folds is not None
    assert sorted(set(folds.of_example.tolist())) == [0, 1, 2]
    held_out = np.sum([folds.test(fold) for fold in range(3)], axis=0)
    assert held_out.tolist() == [1] * 60
    for fold in range(3):
        assert (folds.training(fold) != folds.test(fold)).all()
    in_process.work(env)
    for cell in now(env, made).cells or []:
        assert cell.metrics is not None
        assert cell.metrics.test is not None
        assert cell.metrics.test["n_examples"] == folds.test(cell.fold).sum()
        assert cell.metrics.train["n_examples"] == folds.training(cell.fold).sum()


def test_features_are_computed_once_for_all_that_use_them_and_go_in_the_end(env: Environment) -> None:
    dataset = in_process.dataset(env, departments(60))
    made = start(env, dataset)
    in_process.work(env, 7)
    # The folds, two learners' common features by fold, and those of the third for its first fold.
    assert len(shared(env)) == 1 + 3 + 0
    in_process.work(env, 1)
    assert len(shared(env)) == 1 + 3 + 1
    in_process.work(env)
    assert shared(env) == []
    computed = [rows.job(env.db, job_id).result for job_id in cell_jobs(env, made)]
    assert [result is not None and result["features_computed"] for result in computed] == (
        [True] * 3 + [False] * 3 + [True] * 3
    )


def test_cells_created_in_one_transaction_are_queued_and_notified_in_their_order(
    env: Environment, rung: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = in_process.dataset(env, departments(60))
    made = start(env, dataset)
    rung.clear()
    now_ns = time.time_ns()
    monkeypatch.setattr("app.ids.time.time_ns", lambda: now_ns)
    in_process.work(env, 1)
    cells = cell_jobs(env, made)
    assert len(cells) == 9
    assert rung == cells
    assert in_process.queued(env) == cells
    with env.db.read() as session:
        assert ledger.unheard(session, datetime.now(UTC) + timedelta(days=1), limit=100) == cells
        assert ledger.unheard(session, datetime.now(UTC) + timedelta(days=1), limit=4) == cells[:4]


def test_what_is_shared_may_vanish(env: Environment) -> None:
    dataset = in_process.dataset(env, departments(60))
    made, undisturbed = start(env, dataset), start(env, dataset)
    while in_process.work(env, 1):
        for key in shared(env):
            if sharing.owner_of(key) == made.id:
                env.storage.delete(key)
    first, second = (now(env, each).cells for each in (made, undisturbed))
    assert first is not None
    assert second is not None
    assert [cell.metrics for cell in first] == [cell.metrics for cell in second]


def test_the_examples_own_split_is_one_fold(env: Environment) -> None:
    dataset = in_process.dataset(env, departments(40))
    made = start(env, dataset, split=None)
    assert made.request["split"] == {"kind": "given"}
    in_process.work(env)
    row = reported(env, made).rows[0]
    assert row.complete
    assert row.test["f1_micro"].deviation is None
    cells = now(env, made).cells
    assert cells is not None
    assert [cell.metrics.test["n_examples"] for cell in cells if cell.metrics and cell.metrics.test] == [
        10
    ] * 3


def test_a_random_part_is_held_out(env: Environment) -> None:
    dataset = in_process.dataset(env, departments(40))
    made = start(env, dataset, split={"kind": "random", "test_fraction": 0.2}, configurations=QUICK[:1])
    in_process.work(env)
    (cell,) = now(env, made).cells or []
    assert cell.metrics is not None
    assert cell.metrics.test is not None
    assert cell.metrics.test["n_examples"] == 8


def test_the_same_seed_gives_the_same_numbers(env: Environment) -> None:
    dataset = in_process.dataset(env, departments(60))
    numbers = []
    for seed in (5, 5, 6):
        made = start(env, dataset, seed=seed, configurations=QUICK[:2])
        in_process.work(env)
        numbers.append([row.test["hamming_loss"].values for row in reported(env, made).rows])
    assert numbers[0] == numbers[1] != numbers[2]


def negative(n: int) -> list[dict[str, Any]]:
    return [
        {"features": {"a": float(i % 3) - 1.0, "b": float(i % 2)}, "labels": [["x", "y"][i % 2]]}
        for i in range(n)
    ]


def test_a_configuration_that_cannot_learn_is_reported_and_the_others_go_on(env: Environment) -> None:
    dataset = in_process.dataset(env, negative(30))
    made = start(env, dataset, configurations=[{"learner": {"algorithm": a}} for a in ("naive_bayes", "svm")])
    in_process.work(env)
    ended = now(env, made)
    assert ended.state == "succeeded"
    assert (ended.counts.failed, ended.counts.succeeded) == (3, 3)
    bayes, svm = reported(env, made).rows
    assert not bayes.complete
    assert [failure.fold for failure in bayes.failures] == [0, 1, 2]
    assert "negative" in bayes.failures[0].detail
    assert bayes.test == {}
    assert svm.complete
    assert svm.test["f1_micro"].best


def test_what_failed_on_a_fold_only_is_not_the_best(env: Environment) -> None:
    dataset = in_process.dataset(env, departments(60))
    made = start(env, dataset, configurations=QUICK[:2])
    in_process.work(env, 1)
    claim = rows.claimed(env.db, cell_jobs(env, made)[0])
    kinds.fail(env, claim, {"detail": "for the test", "code": "test"})
    in_process.work(env)
    first, second = reported(env, made).rows
    assert (first.complete, first.folds) == (False, [1, 2])
    assert len(first.test["f1_micro"].values) == 2
    assert not any(summary.best for summary in first.test.values())
    assert all(summary.best for summary in second.test.values())
    assert {comparison.over for comparison in reported(env, made).comparisons} == {"folds", "examples"}


def test_when_every_cell_failed_the_experiment_has(env: Environment) -> None:
    dataset = in_process.dataset(env, negative(30))
    made = start(env, dataset, configurations=[{"learner": {"algorithm": "naive_bayes"}}])
    in_process.work(env)
    ended = now(env, made)
    assert ended.state == "failed"
    assert ended.error is not None
    assert "negative" in ended.error.detail
    assert reported(env, made).rows[0].test == {}


def test_what_cannot_be_shared_out_fails_before_there_are_cells(env: Environment) -> None:
    dataset = in_process.dataset(env, departments(1))
    made = start(env, dataset, split={"kind": "random", "test_fraction": 0.5})
    assert in_process.work(env) == ["experiment"]
    ended = now(env, made)
    assert ended.state == "failed"
    assert ended.error is not None
    assert "two parts" in ended.error.detail
    assert (ended.counts.cancelled, ended.cells) == (3, [])


def test_cancelling_keeps_what_is_finished_and_stops_the_rest(env: Environment) -> None:
    dataset = in_process.dataset(env, departments(60))
    made = start(env, dataset)
    in_process.work(env, 3)
    stopped = service.cancel(env, made.id)
    assert stopped.state == "cancelled"
    assert (stopped.counts.succeeded, stopped.counts.cancelled) == (2, 7)
    assert in_process.queued(env) == []
    assert shared(env) == []
    found = reported(env, made)
    assert found.state == "cancelled"
    assert found.rows[0].folds == [0, 1]
    assert service.cancel(env, made.id).finished_at == stopped.finished_at


def test_a_running_cell_stops_at_its_next_round_and_ends_the_experiment(env: Environment) -> None:
    dataset = in_process.dataset(env, departments(60))
    made = start(env, dataset)
    in_process.work(env, 1)
    claim = rows.claimed(env.db, cell_jobs(env, made)[0])
    waiting = service.cancel(env, made.id)
    assert waiting.state == "running"
    assert (waiting.counts.running, waiting.counts.cancelled) == (1, 8)
    with pytest.raises(Exception, match=claim.job_id):
        kinds.KINDS["cell"].run(env, claim, Reporter(env.db, claim))
    kinds.cancelled(env, claim)
    assert now(env, made).state == "cancelled"


def test_an_experiment_cancelled_before_it_begins_has_no_cells(env: Environment) -> None:
    dataset = in_process.dataset(env, departments(60))
    made = start(env, dataset)
    stopped = service.cancel(env, made.id)
    assert stopped.state == "cancelled"
    assert (stopped.counts.cancelled, stopped.cells) == (9, [])
    assert in_process.work(env) == []


def test_an_experiment_cancelled_while_it_shares_out_makes_no_cells(env: Environment) -> None:
    dataset = in_process.dataset(env, departments(60))
    made = start(env, dataset)
    (planning,) = in_process.queued(env)
    with env.db.write() as tx:
        service.lock(tx, made.id).cancel_requested_at = tx.now
    in_process.carry_out(env, planning)
    assert cell_jobs(env, made) == []
    assert now(env, made).state == "cancelled"


def test_a_cell_that_lost_its_worker_is_run_again_and_counted_once(env: Environment) -> None:
    dataset = in_process.dataset(env, departments(60))
    made = start(env, dataset, configurations=QUICK[:1])
    in_process.work(env, 1)
    job_id = cell_jobs(env, made)[1]
    dead = rows.claimed(env.db, job_id)
    with env.db.write() as tx:
        job = ledger.lock(tx, job_id)
        assert job is not None
        ledger.requeue_lost(tx, job, reason="test")
    assert in_process.work(env, 1) == ["cell"]
    # The one that was thought dead comes too late with its result.
    with pytest.raises(ledger.LostClaimError):
        kinds.KINDS["cell"].run(env, dead, Reporter(env.db, dead))
    in_process.work(env)
    ended = now(env, made)
    assert (ended.state, ended.counts.succeeded) == ("succeeded", 3)
    assert [cell.attempt for cell in ended.cells or []] == [1, 2, 1]
    assert len(reported(env, made).rows[0].test["f1_micro"].values) == 3


def test_two_cells_that_end_at_the_same_moment_end_the_experiment_once(env: Environment) -> None:
    dataset = in_process.dataset(env, departments(60))
    made = start(env, dataset, configurations=QUICK[:1])
    in_process.work(env, 2)
    claims = [rows.claimed(env.db, job_id) for job_id in cell_jobs(env, made)[1:]]
    together = threading.Barrier(2)
    ended: list[bool] = []

    def finish(claim: ledger.Claim) -> None:
        together.wait()
        with env.db.write() as tx:
            ledger.finish(tx, claim, "succeeded", result={"metrics": {"train": {}, "test": {}}})
            ended.append(service.close_if_done(tx, made.id))

    threads = [threading.Thread(target=finish, args=(claim,)) for claim in claims]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ended) == [False, True]
    assert now(env, made).state == "succeeded"


def test_a_cell_cancelled_from_outside_while_another_ends_leaves_nothing_open(env: Environment) -> None:
    dataset = in_process.dataset(env, departments(60))
    made = start(env, dataset, configurations=QUICK[:1])
    in_process.work(env, 3)
    claim = rows.claimed(env.db, cell_jobs(env, made)[2])
    together = threading.Barrier(2)

    def finish() -> None:
        together.wait()
        with env.db.write() as tx:
            ledger.finish(tx, claim, "succeeded", result={"metrics": {"train": {}, "test": {}}})
            service.close_if_done(tx, made.id)

    def cancel() -> None:
        together.wait()
        service.cancel(env, made.id)

    threads = [threading.Thread(target=target) for target in (finish, cancel)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert now(env, made).state == "succeeded"


def test_a_data_set_is_needed_while_its_experiment_runs(env: Environment) -> None:
    from app.datasets import service as datasets
    from app.errors import Conflict

    dataset = in_process.dataset(env, departments(60))
    made = start(env, dataset, configurations=QUICK[:1])
    with pytest.raises(Conflict):
        datasets.delete(env, dataset)
    in_process.work(env)
    before = reported(env, made)
    datasets.delete(env, dataset)
    assert reported(env, made) == before


def test_cells_keep_their_curves(env: Environment) -> None:
    dataset = in_process.dataset(env, departments(60))
    made = start(env, dataset, configurations=QUICK[:2])
    in_process.work(env)
    found = reported(env, made)
    assert {(curve.configuration, curve.measure) for curve in found.curves} == {
        (0, "f1_micro"), (0, "hamming_loss"), (0, "one_error")
    }  # fmt: skip
    for curve in found.curves:
        assert (curve.unit, curve.steps) == ("rounds", [1, 2, 3, 4])
        row = found.rows[0]
        assert curve.out_of_folds[-1] == pytest.approx(row.test[curve.measure].mean)
        assert curve.within_folds[-1] == pytest.approx(row.train[curve.measure].mean)
    with env.db.read() as session:
        points = session.scalars(select(tables.CurvePoint)).all()
    assert len(points) == 3 * 4
