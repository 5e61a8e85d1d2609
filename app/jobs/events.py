"""Reads what jobs have recorded: their events and their learning curves."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.db import tables
from app.http.paging import Page, cut
from app.jobs.schemas import CurvePage, CurvePoint, JobEvent, JobEventPage


def list_events(session: Session, job_id: str, page: Page) -> JobEventPage:
    """Return a page of a job's events, oldest first."""
    rows = session.scalars(
        select(tables.JobEvent)
        .where(tables.JobEvent.job_id == job_id, tables.JobEvent.seq > page.after_number())
        .order_by(tables.JobEvent.seq)
        .limit(page.limit + 1)
    ).all()
    on_page, cursor = cut(rows, page, lambda row: row.seq)
    items = [JobEvent(seq=row.seq, at=row.at, type=row.type, detail=row.detail) for row in on_page]
    return JobEventPage(items=items, next_cursor=cursor)


def list_curve(session: Session, job_id: str, page: Page) -> CurvePage:
    """Return a page of a job's learning curve, by ascending step."""
    rows = session.scalars(
        select(tables.CurvePoint)
        .where(tables.CurvePoint.job_id == job_id, tables.CurvePoint.step > page.after_number())
        .order_by(tables.CurvePoint.step)
        .limit(page.limit + 1)
    ).all()
    on_page, cursor = cut(rows, page, lambda row: row.step)
    items = [CurvePoint(step=row.step, measures=row.measures) for row in on_page]
    return CurvePage(items=items, next_cursor=cursor)


def curves_of(session: Session, job_ids: Sequence[str]) -> dict[str, dict[int, dict[str, float]]]:
    """Return the whole learning curves of several jobs: measures by step, by job id."""
    curves: dict[str, dict[int, dict[str, float]]] = {}
    points = select(tables.CurvePoint).where(tables.CurvePoint.job_id.in_(job_ids))
    for point in session.scalars(points):
        curves.setdefault(point.job_id, {})[point.step] = point.measures
    return curves
