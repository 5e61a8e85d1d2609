"""Decisions are found by every combination of conditions, through an index, in bounded pages."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any

import pytest
from sqlalchemy import event, insert, text

from app.api.paging import Page
from app.db import tables
from app.db.session import Database
from app.ids import first_id
from app.routing import decision_search
from app.routing.decision_search import DecisionFilter, find_ids

START = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
LABELS = ("billing", "legal", "sales", "support")
LONG_ID = "x" * 600 + "@example.org"


def decision(n: int, rng: random.Random, router_id: str = "rtr_1") -> dict[str, Any]:
    """Return a decision of second ``n``. A few are recorded up to half a minute after their ids were made."""
    disposition = rng.choices(("routed", "review", "fallback"), (7, 2, 1))[0]
    labels = [] if disposition == "fallback" else rng.sample(LABELS, rng.choice((1, 1, 2)))
    message_id = LONG_ID[:500] if n == 40 else f"{n % 150}@example.org"
    return {
        "id": first_id("dec", START + n * SECOND)[:-8] + f"{n:08d}",
        "router_id": router_id,
        "router": "desk",
        "message_key": str(n),
        "response": {
            "departments": [{"label": label} for label in labels],
            "message": {"subject": f"Rückgabe {n % 7} \0", "sender": f"ann{n % 5}@example.org"},
        },
        "kept_message": f"messages/2026-01-01/{n}.zst" if n % 3 else None,
        "created_at": START + n * SECOND + rng.choice((0, 0, 0.001, 30)) * SECOND,
        "disposition": disposition,
        "sampled": rng.random() < 0.1,
        "version": rng.choice((1, 2, None)),
        "message_id": message_id,
        "feedback_state": rng.choice((None, None, None, "agreed", "corrected")),
    }


def store(db: Database, decisions: Sequence[dict[str, Any]]) -> None:
    labels = [
        {"router_id": row["router_id"], "label": department["label"], "decision_id": row["id"]}
        for row in decisions
        for department in row["response"]["departments"]
    ]
    with db.write() as tx:
        tx.session.execute(insert(tables.Decision), decisions)
        tx.session.execute(insert(tables.DecisionLabel), labels)


REASONS = {"routed": (), "review": ("any", "doubt"), "fallback": ("any", "fallback")}
SAMPLED = {True: ("any", "sample"), False: ()}


def meets(row: dict[str, Any], conditions: DecisionFilter) -> bool:
    feedback = conditions.feedback
    return (
        (conditions.disposition in (None, row["disposition"]))
        and conditions.label in (None, *(item["label"] for item in row["response"]["departments"]))
        and conditions.version in (None, row["version"])
        and (conditions.from_ is None or row["created_at"] >= conditions.from_)
        and (conditions.to is None or row["created_at"] < conditions.to)
        and (conditions.message_id is None or row["message_id"] == conditions.message_id[:500])
        and (conditions.subject or "").casefold() in row["response"]["message"]["subject"].casefold()
        and (conditions.sender or "") in row["response"]["message"]["sender"]
        and (conditions.text is None or row["kept_message"] is not None)
        and (feedback is None or (row["feedback_state"] or "none") == feedback)
        and conditions.review in {None, *REASONS[row["disposition"]], *SAMPLED[row["sampled"]]}
    )


def pages(
    db: Database, conditions: DecisionFilter, limit: int, router_id: str = "rtr_1"
) -> Iterator[list[str]]:
    after: str | None = None
    while True:
        with db.read() as session:
            ids, after = find_ids(session, router_id, conditions, Page(limit, after))
        yield ids
        if after is None:
            return


VALUES: dict[str, Sequence[Any]] = {
    "disposition": ("routed", "review", "fallback"),
    "label": ("billing", "unknown"),
    "version": (1, 3),
    "from_": (START + 100 * SECOND,),
    "to": (START + 200 * SECOND,),
    "message_id": ("7@example.org", LONG_ID),
    "feedback": ("none", "agreed", "corrected"),
    "review": ("any", "sample", "doubt", "fallback"),
    "subject": ("RÜCKGABE 3", "rückgabe", "x"),
    "sender": ("ann3@",),
    "text": ("whatever",),
}


def filters(n_conditions: int) -> Iterator[DecisionFilter]:
    """Yield filters with every choice of names."""
    for names in combinations(VALUES, n_conditions):
        n_values = max((len(VALUES[name]) for name in names), default=1)
        for i in range(n_values if n_conditions < 3 else 1):
            yield DecisionFilter(
                **{name: VALUES[name][i % len(VALUES[name])] for i, name in enumerate(names, i)}
            )


def test_every_combination_finds_the_decisions_that_meet_all_conditions(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(1)  # noqa: S311 - no secret
    rows = [decision(n, rng) for n in range(300)]
    other = [decision(n, rng, "rtr_2") for n in range(300, 350)]
    store(database, rows + other)
    n_found = 0
    for max_read, numbers in ((5_000, (0, 1, 2)), (90, (1, 3, len(VALUES)))):
        monkeypatch.setattr(decision_search, "MAX_READ", max_read)
        monkeypatch.setattr(decision_search, "MAX_READ_CONTENTS", max_read // 2)
        cases = [case for n_conditions in numbers for case in filters(n_conditions)]
        for i, case in enumerate(cases):
            conditions = replace(case, oldest_first=i % 2 == 1)
            expected = [row["id"] for row in rows if meets(row, conditions)]
            found = list(pages(database, conditions, (21, 50)[i % 3 == 0]))
            in_order = expected if conditions.oldest_first else expected[::-1]
            assert [id_ for page in found for id_ in page] == in_order, conditions
            n_found += len(expected)
    assert n_found > 1_500


def test_a_page_reads_a_limited_number_of_decisions(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing meets both conditions, although each of them alone is met often."""
    rng = random.Random(1)  # noqa: S311 - no secret
    rows = [decision(n, rng) for n in range(100)]
    for n, row in enumerate(rows):
        row.update(disposition="review", version=1 + (n < 3), feedback_state="agreed")
    store(database, rows)
    monkeypatch.setattr(decision_search, "MAX_READ", 20)
    conditions = DecisionFilter(disposition="review", version=2)
    assert list(pages(database, conditions, 10)) == [[], [], [], [], [row["id"] for row in rows[2::-1]], []]


NUMBERS = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 30000)"
INSERTS = (
    """
    INSERT INTO decisions (id, router_id, router, message_key, response, created_at, disposition, sampled,
        version, message_id, feedback_state)
    NUMBERS SELECT 'dec_' || (10000000 + n), 'rtr_' || (n % 8), 'desk', CAST(n AS TEXT), '{}', '2026-01-01',
        CASE n / 8 % 20 WHEN 0 THEN 'fallback' WHEN 1 THEN 'review' ELSE 'routed' END,
        n / 8 % 50 = 0, n / 8 % 7,
        n || '@example.org',
        CASE WHEN n / 8 % 5 > 0 THEN NULL WHEN n / 8 % 3 = 0 THEN 'corrected' ELSE 'agreed' END
    FROM numbers
    """,
    """
    INSERT INTO decision_labels (router_id, label, decision_id)
    NUMBERS SELECT 'rtr_' || (n % 8), 'label' || (n / 8 % 30), 'dec_' || (10000000 + n) FROM numbers
    """,
)


@pytest.fixture
def database_with_many(database: Database) -> Database:
    """A database with many decisions of several routers."""
    with database.write() as tx:
        for statement in INSERTS:
            tx.session.execute(text(statement.replace("NUMBERS", NUMBERS)))
    with database.autocommit() as connection:
        for statement in ("VACUUM", "ANALYZE"):
            connection.execute(text(statement))
    return database


OF_ROUTER = r"ix_decisions_router_id_id\b|pk_decisions"
QUEUE = r"ix_decisions_router_id_id_sampled\b"
OF_LABEL = "pk_decision_labels|SEARCH decision_labels USING PRIMARY KEY"
PLANS = [
    (DecisionFilter(), OF_ROUTER),
    (DecisionFilter(feedback="none"), OF_ROUTER),
    (DecisionFilter(from_=START, to=START + timedelta(days=1)), OF_ROUTER),
    (DecisionFilter(disposition="routed"), r"ix_decisions_router_id_disposition_id\b"),
    (DecisionFilter(disposition="fallback"), r"ix_decisions_router_id_disposition_id\b"),
    (DecisionFilter(disposition="review"), r"ix_decisions_router_id_disposition_id\b"),
    (DecisionFilter(disposition="review", feedback="none"), QUEUE),
    (DecisionFilter(review="any", feedback="none"), QUEUE),
    (DecisionFilter(review="sample", feedback="none"), QUEUE),
    (DecisionFilter(review="fallback", feedback="none"), QUEUE),
    (DecisionFilter(review="fallback"), r"ix_decisions_router_id_disposition_id\b"),
    (DecisionFilter(review="doubt", feedback="none", version=3), QUEUE),
    (DecisionFilter(review="sample"), r"ix_decisions_router_id_sampled_id\b"),
    (DecisionFilter(review="sample", feedback="agreed"), r"ix_decisions_router_id_sampled_id\b"),
    (DecisionFilter(review="doubt"), r"ix_decisions_router_id_disposition_id\b"),
    (DecisionFilter(review="any"), OF_ROUTER),
    (DecisionFilter(disposition="review", feedback="none", label="label1"), QUEUE),
    (DecisionFilter(version=3), r"ix_decisions_router_id_version_id\b"),
    (DecisionFilter(message_id="3@example.org"), r"ix_decisions_router_id_message_id_id\b"),
    (DecisionFilter(message_id="3@example.org", feedback="none"), r"ix_decisions_router_id_message_id_id\b"),
    (DecisionFilter(feedback="agreed"), r"ix_decisions_router_id_feedback_state_id\b"),
    (DecisionFilter(feedback="corrected", version=1), r"ix_decisions_router_id_feedback_state_id\b"),
    (DecisionFilter(label="label7"), OF_LABEL),
    (DecisionFilter(label="label7", version=1), OF_LABEL),
    (DecisionFilter(label="label7", subject="a"), OF_LABEL),
    (DecisionFilter(sender="a"), OF_ROUTER),
    (DecisionFilter(text="a"), OF_ROUTER),
]


def plan_of(db: Database, conditions: DecisionFilter) -> str:
    """Return how the database executes a search."""
    statements: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if "decision" in statement:
            statements.append((statement, parameters))

    event.listen(db.engine, "before_cursor_execute", note)
    with db.read() as session:
        find_ids(session, "rtr_1", conditions, Page(50, "dec_10025000"))
    event.remove(db.engine, "before_cursor_execute", note)
    ((statement, parameters),) = statements
    explain = "EXPLAIN" if db.engine.dialect.name == "postgresql" else "EXPLAIN QUERY PLAN"
    with db.engine.connect() as connection:
        rows = connection.exec_driver_sql(f"{explain} {statement}", parameters).all()
    return "\n".join(str(row[-1]) for row in rows)


def test_an_index_serves_every_condition(
    database_with_many: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision_search, "MAX_READ", 100)  # a small part of the rows, as in a large table
    for conditions, index in PLANS:
        for oldest_first in (False, True):
            plan = plan_of(database_with_many, replace(conditions, oldest_first=oldest_first))
            assert re.search(index, plan), (conditions, plan)
            assert not re.search(r"Seq Scan|SCAN|TEMP B-TREE", plan), (conditions, plan)
            # PostgreSQL sorts if the statistics say that the index has few rows for these values.
            assert "Sort" not in plan or "Bitmap Index Scan" in plan, (conditions, plan)
