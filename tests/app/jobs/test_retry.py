"""What ends a job is written when the database is back, and once."""

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
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waited: list[float] = []
    monkeypatch.setattr("app.jobs.retry.sleep", waited.append)
    return waited


def away() -> OperationalError:
    return OperationalError("UPDATE", {}, OSError("the server has gone away"))


class Failing:
    """Ends a job, at the n-th time."""

    def __init__(self, claim: queue.Claim, failures: int) -> None:
        self.claim = claim
        self.failures = failures

    def __call__(self, tx: Transaction) -> str:
        queue.finish(tx, self.claim, "succeeded", result={"failures": self.failures})
        if self.failures:
            self.failures -= 1
            raise away()
        return "written"


def test_it_is_tried_until_the_database_is_back(database: Database, waits: list[float]) -> None:
    claim = rows.claimed(database, rows.queued(database))
    assert write_with_retry(database, Failing(claim, 40)) == "written"
    assert rows.job(database, claim.job_id).result == {"failures": 0}
    assert rows.events(database, claim.job_id).count("succeeded") == 1
    assert len(waits) == 40
    assert waits == sorted(waits)
    assert sum(waits) > 60
    assert max(waits) <= 2


def test_a_commit_whose_answer_was_lost_is_not_repeated(
    database: Database, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = rows.claimed(database, rows.queued(database))
    write = Database.write

    @contextmanager
    def losing(db: Database) -> Iterator[Transaction]:
        """Commits, and says that it could not."""
        with write(db) as tx:
            yield tx
        monkeypatch.setattr(Database, "write", write)
        raise away()

    monkeypatch.setattr(Database, "write", losing)
    with pytest.raises(LostClaimError):
        write_with_retry(database, Failing(claim, 0))
    assert rows.events(database, claim.job_id).count("succeeded") == 1


def test_who_has_to_stop_gives_up(database: Database, waits: list[float]) -> None:
    claim = rows.claimed(database, rows.queued(database))
    with pytest.raises(OperationalError):
        write_with_retry(database, Failing(claim, 40), give_up=lambda: len(waits) == 3)
    assert rows.job(database, claim.job_id).state == "running"
