"""A prediction runs on the event loop only if measurements say that it is short."""

from __future__ import annotations

from app.serving.latency_estimate import LOOP_SECONDS, CostEstimate

KB = 1024


def test_nothing_is_small_before_a_measurement() -> None:
    assert not CostEstimate().is_small(1, 1)


def test_instances_and_bytes_count() -> None:
    cost = CostEstimate()
    cost.record(1, KB, LOOP_SECONDS / 5)
    assert cost.is_small(1, KB)
    assert cost.is_small(4, 4 * KB)
    assert not cost.is_small(100, KB)
    assert not cost.is_small(1, 100 * KB)


def test_predictions_of_a_slow_version_leave_the_event_loop() -> None:
    cost = CostEstimate()
    cost.record(1, KB, LOOP_SECONDS / 2)
    for _ in range(20):
        cost.record(1, KB, 10 * LOOP_SECONDS)
    assert not cost.is_small(1, KB)


def test_one_slow_prediction_of_a_fast_version_changes_little() -> None:
    cost = CostEstimate()
    cost.record(1, KB, LOOP_SECONDS / 5)
    cost.record(1, KB, 1000 * LOOP_SECONDS)
    assert cost.is_small(1, KB)


def test_a_version_that_was_slow_at_first_returns_to_the_event_loop() -> None:
    cost = CostEstimate()
    cost.record(1, KB, 100 * LOOP_SECONDS)  # its pages were read from disk
    for _ in range(10):
        cost.record(1, KB, LOOP_SECONDS / 5)
    assert cost.is_small(1, KB)
