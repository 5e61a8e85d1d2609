"""Find the decisions of a router that meet several conditions at once, with bounded work for each page.

One condition chooses an index. The database reads the decisions that meet it in order of their ids, and tests
the other conditions on each. It reads a limited number of them for a page, so that a condition which nothing
meets cannot make a request read millions of rows. Such a page has few items, or none, and a cursor that
continues after the last decision that was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias

from sqlalchemy import BindParameter, ColumnElement, and_, bindparam, exists, literal, null, or_, select, true
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.api.paging import Page
from app.db.tables import Decision, DecisionLabel
from app.ids import first_id
from app.routing.schemas import Disposition, FeedbackState

MAX_READ = 5_000
"""Maximum number of decisions that are read for one page."""

MAX_READ_CONTENTS = 1_000
"""Maximum number of decisions of which one page reads the subject or the sender."""

CLOCK_DIFFERENCE = timedelta(minutes=1)
"""Maximum difference between the time in the id of a decision, by the clock of a process, and the time at
which it was recorded, by the clock of the database."""

ReviewReason: TypeAlias = Literal["any", "sample", "doubt", "fallback"]
"""Why a person should review a message."""

_WORDS = ("subject", "sender")
"""The conditions on text of a decision."""

_FIRST, _LAST = datetime(1970, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)
"""Times of ids."""


@dataclass(frozen=True)
class DecisionFilter:
    """Conditions that decisions must meet. A condition that is None is always met.

    Attributes:
        disposition: the outcome of the message.
        label: a predicted label.
        version: number of the version that decided.
        from_: the earliest time of the decision.
        to: the time before which the decision was recorded.
        message_id: Message-ID without angle brackets.
        subject: a part of the subject, in any case.
        sender: a part of the author's address, in any case.
        text: a part of the kept message, in any case. This module finds the decisions with a kept message,
            and ``app.routing.message_search`` reads the messages.
        feedback: whether there is feedback, and whether it agrees.
        review: why a person should review the message.
        oldest_first: whether the oldest decisions come first.
    """

    disposition: Disposition | None = None
    label: str | None = None
    version: int | None = None
    from_: datetime | None = None
    to: datetime | None = None
    message_id: str | None = None
    subject: str | None = None
    sender: str | None = None
    text: str | None = None
    feedback: FeedbackState | None = None
    review: ReviewReason | None = None
    oldest_first: bool = False


def find_ids(
    session: Session, router_id: str, conditions: DecisionFilter, page: Page
) -> tuple[list[str], str | None]:
    """Return the ids of a page of decisions, in order, and the position of the next page, if there is one."""
    indexed, others = _choose_index(conditions, _tests(router_id, conditions))
    words = {name: value.casefold() for name in _WORDS if (value := getattr(conditions, name)) is not None}
    # The databases do not ignore the case of all letters, and PostgreSQL cannot decode every text of JSON.
    content = Decision.response if words else null()
    if "label" in indexed:
        id_: InstrumentedAttribute[str] = DecisionLabel.decision_id
        statement = select(id_, and_(true(), *others.values()), content).where(
            DecisionLabel.router_id == router_id, DecisionLabel.label == conditions.label
        )
        if others or words:
            statement = statement.join(Decision, Decision.id == id_)
    else:
        id_ = Decision.id
        statement = select(id_, and_(true(), *others.values()), content).where(
            Decision.router_id == router_id, *indexed.values()
        )
    limit = MAX_READ_CONTENTS if words else MAX_READ if others else page.limit + 1
    statement = (
        statement.where(*_range(id_, conditions, page.after))
        .order_by(id_.asc() if conditions.oldest_first else id_.desc())
        .limit(limit)
    )
    ids: list[str] = []
    n_read, last = 0, ""
    options = {"yield_per": 500} if others or words else {}
    with closing(session.execute(statement, execution_options=options)) as rows:
        for last, meets_others, response in rows:
            n_read += 1
            if meets_others and (not words or _contains(response, words)):
                if len(ids) == page.limit:
                    return ids, ids[-1]
                ids.append(last)
    return ids, last if n_read == limit else None


def _contains(response: dict[str, Any], words: dict[str, str]) -> bool:
    message = response.get("message", {})
    return all(value in (message.get(name) or "").casefold() for name, value in words.items())


def needs_review(reason: ReviewReason = "any") -> ColumnElement[bool]:
    """Return the condition that a person should review the message of a decision.

    A partial index serves a statement only if both have the same constant.
    """
    match reason:
        case "sample":
            return Decision.sampled.expression
        case "doubt":
            return Decision.disposition == literal("review", literal_execute=True)
        case "fallback":
            return Decision.disposition == literal("fallback", literal_execute=True)
        case "any":
            return or_(Decision.sampled, Decision.disposition != literal("routed", literal_execute=True))


_Tests: TypeAlias = dict[str, ColumnElement[bool]]


def _tests(router_id: str, conditions: DecisionFilter) -> _Tests:
    """Return the conditions that are not None, by name."""
    tests: _Tests = {}
    if conditions.message_id is not None:
        tests["message_id"] = Decision.message_id == conditions.message_id
    if conditions.feedback in ("agreed", "corrected"):
        tests["feedback"] = Decision.feedback_state == conditions.feedback
    if conditions.label is not None:
        tests["label"] = exists().where(
            DecisionLabel.router_id == router_id,
            DecisionLabel.label == conditions.label,
            DecisionLabel.decision_id == Decision.id,
        )
    if conditions.disposition is not None:
        # A partial index serves a statement only if both have the same constant.
        value: BindParameter[str] = bindparam("disposition", conditions.disposition, literal_execute=True)
        tests["disposition"] = Decision.disposition == value
    if conditions.text is not None:
        tests["text"] = Decision.kept_message.is_not(None)
    if conditions.review is not None:
        tests["review"] = needs_review(conditions.review)
    if conditions.version is not None:
        tests["version"] = Decision.version == conditions.version
    if conditions.feedback == "none":
        tests["no feedback"] = Decision.feedback_state.is_(None)
    if conditions.from_ is not None:
        tests["from"] = Decision.created_at >= conditions.from_
    if conditions.to is not None:
        tests["to"] = Decision.created_at < conditions.to
    return tests


def _choose_index(conditions: DecisionFilter, tests: _Tests) -> tuple[_Tests, _Tests]:
    """Return the conditions that an index serves, and the other ones."""
    names: Sequence[str]
    needs_a_person = conditions.review is not None or conditions.disposition in ("review", "fallback")
    if "message_id" in tests:
        names = ["message_id"]
    elif needs_a_person and conditions.feedback == "none":
        names = ["queue", "no feedback"]  # the review queue has an index of its own
        tests = {"queue": needs_review(), **tests}
    else:
        by_index = ("feedback", "label", "disposition", "version")
        names = [name for name in by_index if name in tests][:1]
        if conditions.review is not None and conditions.review != "any":
            names = ["review"]
    return (
        {name: test for name, test in tests.items() if name in names},
        {name: test for name, test in tests.items() if name not in names},
    )


def _range(
    id_: InstrumentedAttribute[str], conditions: DecisionFilter, after: str | None
) -> list[ColumnElement[bool]]:
    """Return the range of ids that a page can have."""
    bounds: list[ColumnElement[bool]] = []
    if conditions.from_ is not None:
        bounds.append(id_ >= first_id("dec", max(conditions.from_, _FIRST) - CLOCK_DIFFERENCE))
    if conditions.to is not None:
        bounds.append(id_ < first_id("dec", min(max(conditions.to, _FIRST), _LAST) + CLOCK_DIFFERENCE))
    if after is not None:
        bounds.append(id_ > after if conditions.oldest_first else id_ < after)
    return bounds
