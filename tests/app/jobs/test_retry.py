"""The end of a job is written exactly once, also if the database is unavailable for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import rows
from sqlalchemy.exc import OperationalError

from app.db.session import Database, Transaction
from app.jobs import queue
from app.jobs.queue import LostClaimError
from app.jobs.retry import write_with_retry


@pytest.fixture
def delays(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    delays: list[float] = []
    monkeypatch.setattr("app.jobs.retry.sleep", delays.append)
    return delays


def database_error() -> OperationalError:
    return OperationalError("UPDATE", {}, OSError("the server closed the connection"))


class FinishAfterFailures:
    """Finishes a job after a number of failed transactions."""

    def __init__(self, claim: queue.Claim, failures: int) -> None:
        self.claim = claim
        self.failures = failures

    def __call__(self, tx: Transaction) -> str:
        queue.finish(tx, self.claim, "succeeded", result={"failures": self.failures})
        if self.failures:
            self.failures -= 1
            raise database_error()
        return "written"


def test_the_transaction_is_retried_until_the_database_is_available(
    database: Database, delays: list[float]
) -> None:
    claim = rows.claimed(database, rows.queued(database))
    assert write_with_retry(database, FinishAfterFailures(claim, 40)) == "written"
    assert rows.job(database, claim.job_id).result == {"failures": 0}
    assert rows.events(database, claim.job_id).count("succeeded") == 1
    assert len(delays) == 40
    assert delays == sorted(delays)
    assert sum(delays) > 60
    assert max(delays) <= 2


def test_a_commit_whose_response_was_lost_is_not_repeated(
    database: Database, delays: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = rows.claimed(database, rows.queued(database))
    write = Database.write

    @contextmanager
    def commit_and_raise(db: Database) -> Iterator[Transaction]:
        """Commit, and then raise an error as if the commit had failed."""
        with write(db) as tx:
            yield tx
        monkeypatch.setattr(Database, "write", write)
        raise database_error()

    monkeypatch.setattr(Database, "write", commit_and_raise)
    with pytest.raises(LostClaimError):
        write_with_retry(database, FinishAfterFailures(claim, 0))
    assert rows.events(database, claim.job_id).count("succeeded") == 1


def test_retries_end_if_give_up_returns_true(database: Database, delays: list[float]) -> None:
    claim = rows.claimed(database, rows.queued(database))
    with pytest.raises(OperationalError):
        write_with_retry(database, FinishAfterFailures(claim, 40), give_up=lambda: len(delays) == 3)
    assert rows.job(database, claim.job_id).state == "running"
