"""Read, list and cancel the resources that are a job or have one: each shows the same fields of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from pydantic import BaseModel
from sqlalchemy import Row, Select, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.api.paging import Page, newest_first
from app.db import tables
from app.db.session import Database
from app.db.tables import Job
from app.errors import NotFound
from app.jobs import queue

_FIELDS = (
    *(Job.state, Job.priority, Job.progress, Job.attempt, Job.started_at, Job.finished_at),
    *(Job.cancel_requested_at, Job.error),
)
"""The fields of a job in responses; some schemas have only some of them. Other columns can be large."""

Resource = TypeVar("Resource", bound=tables.Base)
Shown = TypeVar("Shown", bound=BaseModel)
ShownPage = TypeVar("ShownPage", bound=BaseModel)


def job_fields(job: Job | Row[Any]) -> dict[str, Any]:
    """Return the fields of a job that responses show. A job that has succeeded reports no later progress."""
    fields = {field.key: getattr(job, field.key) for field in _FIELDS}
    if job.state == "succeeded" and job.progress is not None and "fraction" in job.progress:
        fields["progress"] = {**job.progress, "fraction": 1.0}
    return fields


class JobResource(Generic[Resource, Shown, ShownPage]):
    """A resource that is a job, or has one.

    Args:
        noun: what it is called in errors.
        response: the schema of a response.
        page: the schema of a page.
        fields: returns the fields of a row that its job does not have.
        id_: the column with its id.
        job_id: the column with the id of its job.
        rows: selects the rows of the resource.
    """

    def __init__(
        self,
        noun: str,
        response: type[Shown],
        page: type[ShownPage],
        fields: Callable[[Resource], dict[str, Any]],
        *,
        id_: InstrumentedAttribute[str],
        job_id: InstrumentedAttribute[str],
        rows: Select[Resource],
    ) -> None:
        self._noun = noun
        self._response = response
        self._page = page
        self._fields = fields
        self._id = id_
        self._job_id = job_id
        self.rows = rows

    def get(self, db: Database, id_: str) -> Shown:
        """Return a resource.

        Raises:
            NotFound: it does not exist.
        """
        with db.read() as session:
            return self.to_response(*self.get_or_404(session, id_))

    def page(self, db: Database, page: Page) -> ShownPage:
        """Return a page of all resources, newest first."""
        with db.read() as session:
            return self.page_of(session, self.rows, page)

    def page_of(self, session: Session, statement: Select[Resource], page: Page) -> ShownPage:
        """Return a page of the resources that a statement selects, newest first."""
        rows, cursor = newest_first(session, statement, self._id, page)
        jobs: dict[str, Any]
        if self._id is self._job_id:
            jobs = {self._job_of(row): row for row in rows}
        else:
            ids = [self._job_of(row) for row in rows]
            job_statement = select(Job.id, *_FIELDS).where(Job.id.in_(ids))
            jobs = {job.id: job for job in session.execute(job_statement)}
        items = [self.to_response(row, jobs[self._job_of(row)]) for row in rows]
        return self._page(items=items, next_cursor=cursor)

    def cancel(self, db: Database, id_: str) -> Shown:
        """Request the cancellation of a job; has no effect on one that has ended or is being cancelled.

        Raises:
            NotFound: the resource does not exist.
        """
        with db.write() as tx:
            row, _ = self.get_or_404(tx.session, id_)
            job = queue.lock(tx, self._job_of(row))
            if job is None:  # it has just expired
                raise self._not_found(id_)
            queue.request_cancel(tx, job)
            return self.to_response(row, job)

    def get_or_404(self, session: Session, id_: str) -> tuple[Resource, Job]:
        """Return the row of a resource and its job.

        Raises:
            NotFound: the resource does not exist.
        """
        row = session.scalars(self.rows.where(self._id == id_)).one_or_none()
        if row is None:
            raise self._not_found(id_)
        return row, session.get_one(Job, self._job_of(row))

    def to_response(self, row: Resource, job: Job | Row[Any], **more: Any) -> Shown:
        """Convert a row, its job and further fields to the response schema."""
        return self._response.model_validate({**job_fields(job), **self._fields(row), **more})

    def _job_of(self, row: Resource) -> str:
        return str(getattr(row, self._job_id.key))

    def _not_found(self, id_: str) -> NotFound:
        return NotFound(f"there is no {self._noun} {id_}")
