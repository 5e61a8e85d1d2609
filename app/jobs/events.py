"""Read what jobs have recorded: their events and their learning curves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from app.api.paging import MAX_LIMIT, Page, ascending
from app.db import tables
from app.db.session import Database
from app.jobs.queue import FINISHED
from app.jobs.schemas import CurvePage, CurvePoint, JobEvent, JobEventPage


def list_events(session: Session, job_id: str, page: Page) -> JobEventPage:
    """Return a page of a job's events, oldest first."""
    statement = select(tables.JobEvent).where(tables.JobEvent.job_id == job_id)
    rows, cursor = ascending(session, statement, tables.JobEvent.seq, page)
    return JobEventPage(items=[_to_event(row) for row in rows], next_cursor=cursor)


@dataclass(frozen=True)
class JobChange:
    """The new events of a job, and whether it has ended.

    Attributes:
        events: new events, oldest first; at most ``MAX_LIMIT``.
        ended: whether no event will follow these: the job has ended, or does not exist any more.
    """

    events: list[JobEvent]
    ended: bool


def changes(db: Database, watched: Mapping[str, int]) -> dict[str, JobChange]:
    """Return the changes of jobs, in one statement and one more for each job that has changed.

    Args:
        db: the database.
        watched: number of the last known event of each job.

    Returns:
        the changes by job id; without jobs that continue and have no new events.
    """
    # The state and the number of the last event belong together, because one statement reads both.
    last = select(func.max(tables.JobEvent.seq)).where(tables.JobEvent.job_id == tables.Job.id)
    with db.read() as session:
        rows = session.execute(
            select(tables.Job.id, tables.Job.state, last.scalar_subquery()).where(tables.Job.id.in_(watched))
        ).all()
        result = {job_id: JobChange([], ended=True) for job_id in watched}
        for job_id, state, number in rows:
            ended = state in FINISHED
            new = _events_after(session, job_id, watched[job_id]) if (number or 0) > watched[job_id] else []
            if not new and not ended:
                del result[job_id]
                continue
            result[job_id] = JobChange(new, ended and (not new or new[-1].seq >= number))
        return result


def progress_of(db: Database, job_ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
    """Return the latest progress of jobs, by job id; without jobs that have reported none."""
    with db.read() as session:
        rows = session.execute(
            select(tables.Job.id, tables.Job.progress).where(tables.Job.id.in_(job_ids))
        ).all()
    return {job_id: progress for job_id, progress in rows if progress is not None}


def events_after(db: Database, job_id: str, number: int) -> list[JobEvent]:
    """Return the first events of a job after the one with a number; at most ``MAX_LIMIT``."""
    with db.read() as session:
        return _events_after(session, job_id, number)


def _events_after(session: Session, job_id: str, number: int) -> list[JobEvent]:
    rows = session.scalars(
        select(tables.JobEvent)
        .where(tables.JobEvent.job_id == job_id, tables.JobEvent.seq > number)
        .order_by(tables.JobEvent.seq)
        .limit(MAX_LIMIT)
    )
    return [_to_event(row) for row in rows]


def _to_event(row: tables.JobEvent) -> JobEvent:
    return JobEvent(seq=row.seq, at=row.at, type=row.type, detail=row.detail)


def list_curve(session: Session, job_id: str, page: Page) -> CurvePage:
    """Return a page of a job's learning curve, by ascending step."""
    statement = select(tables.CurvePoint).where(tables.CurvePoint.job_id == job_id)
    rows, cursor = ascending(session, statement, tables.CurvePoint.step, page)
    items = [CurvePoint(step=row.step, measures=row.measures) for row in rows]
    return CurvePage(items=items, next_cursor=cursor)


def curve_outline(session: Session, job_id: str, max_points: int) -> list[CurvePoint]:
    """Return points of a job's learning curve at about equal distances, by ascending step, with the last one.

    Args:
        session: the session.
        job_id: id of the job.
        max_points: about how many points; one or two more are possible.
    """
    points = tables.CurvePoint
    n_points = session.scalar(select(func.count()).where(points.job_id == job_id)) or 0
    distance = max(-(-n_points // max_points), 1)
    position = func.row_number().over(order_by=points.step).label("position")
    numbered = select(points.step, position).where(points.job_id == job_id).subquery()
    chosen = select(numbered.c.step).where(
        or_(numbered.c.position % distance == 1 % distance, numbered.c.position == n_points)
    )
    rows = session.scalars(
        select(points).where(points.job_id == job_id, points.step.in_(chosen)).order_by(points.step)
    )
    return [CurvePoint(step=row.step, measures=row.measures) for row in rows]


def curves_of(session: Session, job_ids: Sequence[str]) -> dict[str, dict[int, dict[str, float]]]:
    """Return the whole learning curves of several jobs: measures by step, by job id."""
    curves: dict[str, dict[int, dict[str, float]]] = {}
    points = select(tables.CurvePoint).where(tables.CurvePoint.job_id.in_(job_ids))
    for point in session.scalars(points):
        curves.setdefault(point.job_id, {})[point.step] = point.measures
    return curves
