"""The work of a worker for one kind of job."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from app.context import AppContext
from app.db.session import Transaction
from app.db.tables import Job
from app.jobs.progress import ProgressReporter
from app.jobs.queue import Claim


class Work(ABC):
    """The work of one kind of job."""

    @abstractmethod
    def run(self, ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
        """Run the job, and finish it in the transaction that writes its result.

        Raises:
            CoveyError: the job cannot succeed; the message states the reason.
            CancelledError: cancellation was requested.
        """

    def on_failure(self, tx: Transaction, job: Job | Claim, error: dict[str, Any]) -> None:  # noqa: B027
        """Update other rows in the transaction in which a job fails or is cancelled.

        By default there are none: responses take the state and the error from the job.
        """
