"""Whether people have answered the random sample of a router, on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from app.datasets.feedback import SampleAnswers, sample_answers
from app.db import tables
from app.db.session import Database

NOW = datetime(2026, 1, 10, tzinfo=UTC)
DAY = timedelta(days=1)


def test_answers_are_counted_from_the_first_selected_one_to_the_last(database: Database) -> None:
    # For each message of a day: its disposition, whether it is sampled, and the day of its feedback.
    messages = (
        ("routed", True, None),  # before the first selected answer
        ("review", True, 4),
        ("routed", True, 2),  # answered for an earlier data set
        ("routed", True, None),
        ("routed", False, 5),
        ("fallback", True, 20),  # answered too late for this one
        ("routed", True, 6),
        ("routed", True, None),  # after the last selected answer
    )
    with database.write() as tx:
        for day, (disposition, sampled, answered) in enumerate(messages):
            tx.session.add(
                tables.Decision(
                    id=f"dec_{day}",
                    router_id="rtr_1",
                    router="desk",
                    message_key=str(day),
                    response={},
                    created_at=NOW,
                    disposition=disposition,
                    sampled=sampled,
                    feedback_state=None if answered is None else "agreed",
                    feedback_at=None if answered is None else NOW + answered * DAY,
                )
            )
    request = {"router_id": "rtr_1", "from": (NOW + 3 * DAY).isoformat(), "to": (NOW + 9 * DAY).isoformat()}
    answers = sample_answers(database, request)
    assert answers.of_disposition == {"fallback": (1, 0), "review": (1, 1), "routed": (3, 2)}
    assert answers.is_complete, "all but one of each disposition"
    assert sample_answers(database, {**request, "router_id": "rtr_2"}).of_disposition == {}


def test_three_quarters_of_each_disposition_must_be_answered() -> None:
    assert SampleAnswers({}).is_complete
    assert SampleAnswers({"routed": (100, 74), "review": (1, 0)}).is_complete
    assert not SampleAnswers({"routed": (100, 73), "review": (50, 50)}).is_complete
    assert not SampleAnswers({"routed": (100, 100), "fallback": (10, 6)}).is_complete
