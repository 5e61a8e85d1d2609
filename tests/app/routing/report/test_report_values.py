"""The values of a report are those of a plain computation over all decisions, on both databases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import numpy as np
import pytest
from decision_rows import LABELS, START, RoutedMessage, insert_decisions, insert_router, random_messages

from app.db import tables
from app.db.session import Database
from app.errors import Invalid, NotFound
from app.routing.report import service
from app.routing.report.schemas import Quality, ReportBy, ReportGroup, RouterReport, Share
from models.measures.calibration import expected_calibration_error
from models.measures.intervals import wilson
from models.pipeline.reference import histogram

END = START + timedelta(weeks=4)
REFERENCE: dict[str, Any] = {
    "source": "folds",
    "examples": 100,
    "label_counts": [40, 20, 30],
    "without_label": 10,
    "set_probabilities": [1] * 100,
    "unknown_terms": [10, *[2] * 20, *[0] * 69, *[5] * 10],
    "mean_unknown_terms": 0.25,
}

Test = Callable[[RoutedMessage], bool]


def of_week(number: int) -> Test:
    return lambda message: (message.at - START) // timedelta(weeks=1) == number


@pytest.fixture
def messages(database: Database) -> list[RoutedMessage]:
    found = random_messages(250)
    insert_router(database, {1: REFERENCE, 2: None})
    insert_decisions(database, found)
    outside = [RoutedMessage(at=START - timedelta(seconds=1)), RoutedMessage(at=END)]
    insert_decisions(database, outside, router_id="rtr_1")
    insert_decisions(database, found[:7], router_id="rtr_other")
    return found


def report(database: Database, by: ReportBy) -> RouterReport:
    return service.get(database, "desk", by, START, END)


def check_share(share: Share | None, count: int, of: int) -> None:
    if not of:
        assert share is None
        return
    assert share is not None
    assert (share.count, share.of, share.share) == (count, of, count / of)
    assert 0 <= share.low <= share.share <= share.high <= 1


def check_counts(group: ReportGroup, messages: Sequence[RoutedMessage]) -> None:
    assert group.messages == len(messages)
    counts = Counter(message.disposition for message in messages)
    assert {item.disposition: item.count for item in group.dispositions if item.count} == counts
    for quality in group.quality:
        part = [m for m in messages if quality.disposition in (None, m.disposition)]
        with_feedback = [m for m in part if m.feedback is not None]
        assert (quality.messages, quality.with_feedback) == (len(part), len(with_feedback))
        right = sum({*(m.feedback or ())} == m.labels for m in with_feedback)
        check_share(quality.set_accuracy, right, len(with_feedback))
        if quality.set_accuracy is not None:
            interval = wilson(right / len(with_feedback), len(with_feedback))
            assert (quality.set_accuracy.low, quality.set_accuracy.high) == interval


def check_labels(quality: Quality, pairs: Sequence[tuple[set[str], set[str]]]) -> None:
    both = sum(len(predicted & correct) for predicted, correct in pairs)
    n_predicted, n_correct = (sum(map(len, sets)) for sets in zip(*pairs, strict=True))
    check_share(quality.precision, both, n_predicted)
    check_share(quality.recall, both, n_correct)
    assert (quality.f1 is None) == (n_predicted + n_correct == 0)
    if quality.f1 is not None:
        assert quality.f1.value == pytest.approx(2 * both / (n_predicted + n_correct))
        assert quality.f1.low <= quality.f1.value <= quality.f1.high


def pairs_of(messages: Sequence[RoutedMessage], only: set[str]) -> list[tuple[set[str], set[str]]]:
    return [(m.labels & only, {*m.feedback} & only) for m in messages if m.feedback is not None]


def test_a_report_by_week(database: Database, messages: list[RoutedMessage]) -> None:
    found = report(database, "week")
    check_counts(found.total, messages)
    assert [group.name for group in found.groups] == ["2026-W10", "2026-W11", "2026-W12", "2026-W13"]
    for number, group in enumerate(found.groups):
        check_counts(group, list(filter(of_week(number), messages)))
        for quality in group.quality:
            part = [
                m for m in filter(of_week(number), messages) if quality.disposition in (None, m.disposition)
            ]
            if any(m.feedback is not None for m in part):
                check_labels(quality, pairs_of(part, {*LABELS}))


def test_a_report_by_version(database: Database, messages: list[RoutedMessage]) -> None:
    found = report(database, "version")
    assert [group.name for group in found.groups] == ["m 1", "m 2"]
    for number, group in enumerate(found.groups, start=1):
        of_version = [m for m in messages if m.version == number]
        check_counts(group, of_version)
        check_labels(group.quality[0], pairs_of(of_version, {*LABELS}))
        shadowed = [m for m in of_version if m.shadow is not None]
        (agreement,) = group.shadows
        assert (agreement.model, agreement.version, agreement.shadow) == ("m", number, 2)
        agreeing = sum({*(m.shadow or ())} == m.labels for m in shadowed)
        check_share(agreement.agreement, agreeing, len(shadowed))


def test_a_report_by_department(database: Database, messages: list[RoutedMessage]) -> None:
    found = report(database, "department")
    assert {group.name for group in found.groups} == {*LABELS}
    sizes = [group.messages for group in found.groups]
    assert sizes == sorted(sizes, reverse=True)
    for group in found.groups:
        of_department = [m for m in messages if group.name in m.labels]
        check_counts(group, of_department)
        check_share(group.share, len(of_department), len(messages))
        check_labels(group.quality[0], pairs_of(messages, {group.name}))
        assert group.drift is None
        assert group.expected_share == pytest.approx(
            REFERENCE["label_counts"][LABELS.index(group.name)] / 100
        )


@pytest.mark.parametrize("by", ["week", "department"])
def test_the_calibration_is_measured_on_messages_with_a_probability_and_feedback(
    database: Database, messages: list[RoutedMessage], by: ReportBy
) -> None:
    calibration = report(database, by).total.calibration
    measured = [m for m in messages if m.feedback is not None and m.set_probability is not None]
    # A bin contains its upper bound there, and its lower bound here.
    p = np.array([m.set_probability for m in measured], dtype=np.float64)
    right = np.array([{*(m.feedback or ())} == m.labels for m in measured])
    assert calibration is not None
    assert calibration.messages == len(measured)
    assert calibration.expected_calibration_error == pytest.approx(expected_calibration_error(p, right))
    assert sum(bin_.observed.of for bin_ in calibration.bins) == len(measured)
    assert 0 < calibration.expected_by_chance < 0.5


def test_the_calibration_of_a_department_is_that_of_its_probabilities(
    database: Database, messages: list[RoutedMessage]
) -> None:
    for group in report(database, "department").groups:
        pairs = [
            (probability, group.name in (m.feedback or ()))
            for m in messages
            if m.feedback is not None
            for label, probability in m.predicted
            if label == group.name and probability is not None
        ]
        assert group.calibration is not None
        assert group.calibration.messages == len(pairs)
        error = expected_calibration_error(
            np.array([p for p, _ in pairs]), np.array([right for _, right in pairs])
        )
        assert group.calibration.expected_calibration_error == pytest.approx(error)


def test_drift_compares_the_messages_of_versions_with_a_reference(
    database: Database, messages: list[RoutedMessage]
) -> None:
    found = report(database, "version")
    drift = found.total.drift
    of_version = [m for m in messages if m.version == 1]
    assert drift is not None
    assert drift.set_probability is not None
    probabilities = [m.set_probability for m in of_version if m.set_probability is not None]
    assert drift.set_probability.values == len(probabilities)
    assert drift.set_probability.bins is not None
    assert len(drift.set_probability.bins) == 10
    assert sum(bin_.expected_share for bin_ in drift.set_probability.bins) == pytest.approx(1.0)
    counts = np.array(histogram(np.array(probabilities))).reshape(10, 10).sum(axis=1)
    assert [bin_.count for bin_ in drift.set_probability.bins] == counts.tolist()

    words = [m.unknown_words for m in of_version if m.unknown_words is not None]
    assert drift.unknown_words is not None
    assert drift.unknown_words.values == len(words)
    assert drift.unknown_words.mean == pytest.approx(np.mean(words))
    assert drift.unknown_words.expected_mean == 0.25

    assert drift.labels is not None
    assert drift.labels.bins is not None
    found_labels = {bin_.name: (bin_.count, bin_.expected_share) for bin_ in drift.labels.bins}
    # A fallback without a probability was not decided by a calibrated version.
    undecided = {id(m) for m in of_version if not m.labels and m.set_probability is None}
    expected = Counter(label for m in of_version for label in m.labels)
    expected["(no department)"] = sum(not m.labels and id(m) not in undecided for m in of_version)
    assert {name: count for name, (count, _) in found_labels.items()} == expected
    assert found_labels["billing"][1] == pytest.approx(0.4)

    assert [group.drift is not None for group in found.groups] == [True, False]
    assert found.groups[0].drift is not None
    assert found.groups[0].drift.labels is not None
    assert found.groups[0].drift.labels.bins is None
    assert any("deleted versions" in note and "m 2" in note for note in found.notes)


def test_the_drift_of_a_router_for_other_parts_of_the_service(
    database: Database, messages: list[RoutedMessage]
) -> None:
    assert messages
    with database.read() as session:
        router = session.get_one(tables.Router, "desk")
        drift = service.drift_of(session, router, START)
        nothing = service.drift_of(session, router, datetime.now(UTC) - timedelta(seconds=1))
    assert drift is not None
    assert drift.labels is not None
    assert drift.labels.population_stability_index > 0
    assert nothing is None


def test_the_quality_is_honest_about_who_got_feedback(
    database: Database, messages: list[RoutedMessage]
) -> None:
    found = report(database, "week")
    (coverage,) = [note for note in found.notes if "messages have feedback" in note]
    n = sum(m.feedback is not None for m in messages)
    assert coverage.startswith(f"{n} of 250 messages have feedback (routed: ")
    assert "not a random sample" in coverage
    wrong = sum(m.feedback is not None and {*m.feedback} != m.labels for m in messages)
    assert found.summary == f"{wrong} of {n} checked messages were wrong."
    strata = []
    for disposition in ("routed", "review", "fallback"):
        part = [m for m in messages if m.disposition == disposition]
        known = [m for m in part if m.feedback is not None]
        strata.append(len(part) / len(messages) * np.mean([{*(m.feedback or ())} == m.labels for m in known]))
    assert found.total.estimated_set_accuracy is not None
    assert found.total.estimated_set_accuracy.value == pytest.approx(sum(strata))


def test_feedback_on_reviewed_messages_only_gives_no_estimate_for_all(database: Database) -> None:
    insert_router(database, {1: None})
    review = RoutedMessage(disposition="review", feedback=["billing"])
    insert_decisions(database, [RoutedMessage(), review, review])
    found = service.get(database, "desk", "week", START, END)
    assert found.total.estimated_set_accuracy is None
    by_disposition = {quality.disposition: quality.with_feedback for quality in found.total.quality}
    assert by_disposition == {None: 2, "routed": 0, "review": 2}
    assert any("outcome routed has feedback" in note for note in found.notes)
    assert found.summary == "0 of 2 checked messages were wrong."


def test_a_router_without_decisions_has_an_empty_report(database: Database) -> None:
    insert_router(database, {1: REFERENCE})
    for by in get_args(ReportBy.__value__.__origin__):
        found = service.get(database, "desk", by, None, None)
        assert found.total.messages == 0
        assert found.total.drift is None
        assert found.notes == ["The router has no decisions in this window."]
        assert found.summary == "There are no messages in this time."
    assert found.to - found.from_ == timedelta(days=service.DEFAULT_DAYS)


def test_an_unknown_router_and_wrong_windows_are_rejected(database: Database) -> None:
    with pytest.raises(NotFound):
        service.get(database, "nobody", "week", START, END)
    insert_router(database, {1: REFERENCE})
    for begin, end in (
        (END, START),
        (START, START),
        (START, START + timedelta(days=401)),
        (datetime(1960, 1, 1, tzinfo=UTC), datetime(1960, 2, 1, tzinfo=UTC)),
        (None, datetime(1, 1, 1, tzinfo=UTC)),
    ):
        with pytest.raises(Invalid):
            service.get(database, "desk", "week", begin, end)


def test_only_the_most_recent_feedback_is_read_one_by_one(
    database: Database, messages: list[RoutedMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_FEEDBACK", 20)
    found = report(database, "version")
    recent = [m for m in messages if m.feedback is not None][-20:]
    assert found.feedback_limit == 20
    check_counts(found.total, messages)
    check_labels(found.total.quality[0], pairs_of(recent, {*LABELS}))


def test_weeks_are_those_of_utc(database: Database) -> None:
    insert_router(database, {1: None})
    sunday = datetime(2026, 1, 4, 23, 59, 59, tzinfo=UTC)
    monday = sunday + timedelta(seconds=1)
    insert_decisions(database, [RoutedMessage(at=sunday), RoutedMessage(at=monday), RoutedMessage(at=monday)])
    found = service.get(
        database, "desk", "week", datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 12, tzinfo=UTC)
    )
    assert [(group.name, group.messages) for group in found.groups] == [("2026-W01", 1), ("2026-W02", 2)]


def test_departments_with_few_messages_are_left_out(
    database: Database, messages: list[RoutedMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert messages
    monkeypatch.setattr("app.routing.report.build.MAX_DEPARTMENTS", 2)
    found = report(database, "department")
    assert (len(found.groups), found.omitted_groups) == (2, 1)


@pytest.mark.parametrize("kind_of_database", ["sqlite"], indirect=True)
def test_the_work_of_the_database_grows_linearly(database: Database) -> None:
    """SQLite counts the instructions of its virtual machine."""
    insert_router(database, {1: REFERENCE, 2: None})
    steps = []
    for first, n in ((0, 200), (200, 1600)):
        message = RoutedMessage(at=START + timedelta(hours=first / 10), feedback=["legal"], unknown_words=0.5)
        insert_decisions(database, [replace(message, version=1 + i % 2) for i in range(n - first)])
        count = 0

        def note() -> None:
            nonlocal count
            count += 1

        with database.read() as session:
            connection: Any = session.connection().connection.driver_connection
            connection.set_progress_handler(note, 100)
            router = session.get_one(tables.Router, "desk")
            assert service.drift_of(session, router, START) is not None
            connection.set_progress_handler(None, 100)
        steps.append(count)
    assert steps[1] < 16 * steps[0], steps
