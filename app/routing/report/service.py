"""Read the decisions of a router, and return its report and its drift."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Integer, Select, case, cast, func, literal, select, tuple_
from sqlalchemy.orm import Session

from app.db import tables
from app.db.session import Database
from app.errors import Invalid
from app.ids import first_id
from app.routing import service as routers
from app.routing.report import html
from app.routing.report.build import build_report, summary_of
from app.routing.report.facts import (
    DecisionCount,
    Facts,
    FeedbackFact,
    LabelCount,
    UnknownWordCount,
    VersionKey,
    VersionReference,
)
from app.routing.report.schemas import Drift, ReportBy, RouterReport
from models.pipeline.reference import ROUNDING, SHARE_BINS, Reference

DEFAULT_DAYS = 90
"""Length of the window if the request does not name its begin."""

MAX_DAYS = 400
"""Maximum length of the window."""

MAX_FEEDBACK = 100_000
"""Maximum number of decisions with feedback that are read one by one: the most recent ones."""

_BATCH_ROWS = 1000
_DECISION, _LABEL = tables.Decision, tables.DecisionLabel


@dataclass(frozen=True)
class Window:
    """The time whose decisions are in a report.

    Attributes:
        begin: its begin.
        end: its end, which does not belong to it.
    """

    begin: datetime
    end: datetime

    def weeks(self) -> list[datetime]:
        """Return the begins of the ISO weeks that overlap the window, in UTC."""
        midnight = self.begin.replace(hour=0, minute=0, second=0, microsecond=0)
        monday = midnight - timedelta(days=midnight.weekday())
        n = -((monday - self.end) // timedelta(weeks=1))
        return [monday + timedelta(weeks=i) for i in range(n)]


def window_of(begin: datetime | None, end: datetime | None, now: datetime) -> Window:
    """Return the window of a request; by default the last ``DEFAULT_DAYS`` days.

    Args:
        begin: the begin; None for the default.
        end: the end; None for now.
        now: the current time.

    Raises:
        Invalid: the window is empty or too long.
    """
    end = now if end is None else _utc(end)
    try:
        begin = end - timedelta(days=DEFAULT_DAYS) if begin is None else _utc(begin)
    except OverflowError as error:
        raise Invalid("to is out of range", errors=[("/query/to", "use a later time")]) from error
    if begin >= end:
        message = "from must be before to"
        raise Invalid(message, errors=[("/query/from", message)])
    if end - begin > timedelta(days=MAX_DAYS):
        message = f"a report covers at most {MAX_DAYS} days; move from and to closer together"
        raise Invalid(message, errors=[("/query/from", message)])
    if begin.year < 1971 or end.year > 9000:
        message = "from and to must be between the years 1971 and 9000"
        raise Invalid(message, errors=[("/query/from", message)])
    return Window(begin, end)


def get(db: Database, name: str, by: ReportBy, begin: datetime | None, end: datetime | None) -> RouterReport:
    """Return the report of a router.

    Raises:
        NotFound: the router does not exist.
        Invalid: the window is empty or too long.
    """
    now = datetime.now(UTC)
    window = window_of(begin, end, now)
    weeks = [f"{week:%G-W%V}" for week in window.weeks()]
    with db.read() as session:
        router = routers.get_or_404(session, name)
        reader = _Reader(session, router.id, window, by_week=by == "week")
        built = build_report(reader.facts(), by, weeks)
    return RouterReport.model_validate(
        {
            "router": name,
            "by": by,
            "from": window.begin,
            "to": window.end,
            "created_at": now,
            "feedback_limit": MAX_FEEDBACK if reader.n_feedback > MAX_FEEDBACK else None,
            "summary": summary_of(built.total),
            "total": built.total,
            "groups": built.groups,
            "omitted_groups": built.omitted_groups,
            "notes": built.notes,
        }
    )


def get_html(db: Database, name: str, by: ReportBy, begin: datetime | None, end: datetime | None) -> str:
    """Return the report of a router as an HTML page; see ``get``."""
    return html.render(get(db, name, by, begin, end))


def drift_of(session: Session, router: tables.Router, since: datetime) -> Drift | None:
    """Return the drift of a router's decisions since a moment against the training.

    Args:
        session: a session that reads.
        router: the router.
        since: the begin of the window, which ends now.

    Returns:
        The drift of labels, probabilities and unknown words, without bins; None if there is nothing to
        compare. Compare each index with its ``chance``, too, because few messages have a large index by
        chance.
    """
    reader = _Reader(session, router.id, Window(_utc(since), datetime.now(UTC)), by_week=False)
    total = build_report(reader.facts(with_feedback=False), "version", []).total
    return total.drift


class _Reader:
    """Read the facts of one router in one window.

    The identifiers of decisions contain their time, so one index serves the router and the window. The
    database counts; only decisions with feedback are read one by one, a limited number in batches.

    Args:
        session: a session that reads.
        router_id: id of the router.
        window: the window.
        by_week: whether to distinguish weeks; otherwise all decisions are in week 0.
    """

    def __init__(self, session: Session, router_id: str, window: Window, *, by_week: bool) -> None:
        self._session = session
        first, end = first_id("dec", window.begin), first_id("dec", window.end)
        self._conditions = (
            _DECISION.router_id == router_id,
            _DECISION.id >= first,
            _DECISION.id < end,
            _DECISION.disposition.is_not(None),
        )
        self._label_conditions = (
            _LABEL.router_id == router_id,
            _LABEL.decision_id >= first,
            _LABEL.decision_id < end,
            _DECISION.disposition.is_not(None),
        )
        later = window.weeks()[1:] if by_week else []
        self._week: ColumnElement[Any] = literal(0)
        if later:
            # A comparison of identifiers gives the week on every database.
            ends = [(_DECISION.id < first_id("dec", end), i) for i, end in enumerate(later)]
            self._week = case(*ends, else_=len(later))
        self._sqlite = session.get_bind().dialect.name == "sqlite"
        self.n_feedback = 0

    def facts(self, *, with_feedback: bool = True) -> Facts:
        """Read the references, and return the facts, which are read while they are iterated."""
        decisions = list(self._decisions())
        self.n_feedback = sum(item.count for item in decisions if item.right is not None)
        return Facts(
            decisions=decisions,
            labels=self._labels(),
            unknown_words=self._unknown_words(),
            feedback=self._feedback() if with_feedback and self.n_feedback else (),
            references=self._references({item.version for item in decisions}),
        )

    def _decisions(self) -> Iterator[DecisionCount]:
        of = _DECISION
        statement = select(
            self._week.label("week"),
            of.model,
            of.version,
            of.disposition,
            of.feedback_state,
            self._bin(of.set_probability).label("bin"),
            of.shadow_version,
            of.shadow_agrees,
            of.set_probability.label("share"),
        ).where(*self._conditions)
        for row in self._grouped(statement):
            week, model, version, disposition, state, bin_, shadow, agrees, probability, count = row
            yield DecisionCount(
                week=week,
                version=(model, version),
                disposition=disposition,
                right=_right(state),
                probability_bin=None if bin_ is None else min(bin_, SHARE_BINS - 1),
                probability_sum=probability,
                shadow=shadow,
                shadow_agrees=agrees,
                count=count,
            )

    def _labels(self) -> Iterator[LabelCount]:
        of = _DECISION
        statement = (
            select(
                self._week.label("week"),
                _LABEL.label,
                of.model,
                of.version,
                of.disposition,
                of.feedback_state,
                of.shadow_version,
                of.shadow_agrees,
            )
            # Nothing else restricts the decisions. Otherwise, SQLite would find them first, and then read
            # all labels of the router for each of them.
            .join(_LABEL, _LABEL.decision_id == of.id)
            .where(*self._label_conditions)
        )
        for week, label, model, version, disposition, state, shadow, agrees, count in self._grouped(
            statement
        ):
            yield LabelCount(label, week, (model, version), disposition, _right(state), shadow, agrees, count)

    def _unknown_words(self) -> Iterator[UnknownWordCount]:
        of = _DECISION
        statement = select(
            self._week.label("week"),
            of.model,
            of.version,
            self._bin(of.unknown_words).label("bin"),
            of.unknown_words.label("share"),
        ).where(*self._conditions, of.unknown_words.is_not(None))
        for week, model, version, bin_, share_sum, count in self._grouped(statement):
            yield UnknownWordCount(week, (model, version), min(bin_, SHARE_BINS - 1), share_sum, count)

    def _feedback(self) -> Iterator[FeedbackFact]:
        of = _DECISION
        statement = (
            select(self._week, of.model, of.version, of.disposition, of.response, of.feedback)
            .where(*self._conditions, of.feedback_state.is_not(None))
            .order_by(of.id.desc())
            .limit(MAX_FEEDBACK)
        )
        for week, model, version, disposition, response, feedback in self._rows(statement):
            yield FeedbackFact(
                week,
                (model, version),
                disposition,
                {item["label"]: item.get("probability") for item in response["departments"]},
                frozenset(feedback),
            )

    def _references(self, versions: set[VersionKey]) -> dict[VersionKey, VersionReference]:
        known = sorted(
            (model, number) for model, number in versions if model is not None and number is not None
        )
        if not known:
            return {}
        of = tables.ModelVersion
        rows = self._session.execute(
            select(of.model, of.version, of.description).where(tuple_(of.model, of.version).in_(known))
        )
        references: dict[VersionKey, VersionReference] = {}
        for model, number, description in rows:
            stored = description.get("reference")
            references[model, number] = VersionReference(
                description["labels"], None if stored is None else Reference.model_validate(stored)
            )
        return references

    def _grouped(self, statement: Select[Any]) -> Iterator[Any]:
        """Yield the distinct rows of a statement, each with the sum of ``share`` and the number of rows."""
        rows = statement.subquery()
        keys = [column for column in rows.c if column.name != "share"]
        sums = [func.coalesce(func.sum(rows.c.share), 0.0)] if "share" in rows.c else []
        return self._rows(select(*keys, *sums, func.count()).group_by(*keys))

    def _rows(self, statement: Select[Any]) -> Iterator[Any]:
        """Yield rows in batches, so that they are not in memory together."""
        return iter(self._session.execute(statement, execution_options={"yield_per": _BATCH_ROWS}))

    def _bin(self, column: ColumnElement[Any] | Any) -> ColumnElement[Any]:
        """Return the bin of a share or probability, as ``bins_of`` does; 100 instead of 99 for 1."""
        position = column * SHARE_BINS + ROUNDING
        # SQLite may lack FLOOR, and PostgreSQL rounds to the nearest integer.
        return cast(position if self._sqlite else func.floor(position), Integer)


def _right(state: str | None) -> bool | None:
    """Return whether the feedback has exactly the predicted labels; None without feedback."""
    return None if state is None else state == "agreed"


def _utc(moment: datetime) -> datetime:
    """Return a moment in UTC. One without a time zone is in UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
