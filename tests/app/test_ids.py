"""Identifiers are unique and sort in the order in which they were created."""

from __future__ import annotations

import os
import threading

import pytest

from app import ids
from app.ids import MonotonicUlids, new_id

# The forked process writes to a pipe and exits.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")

MILLISECOND = 1_000_000
NOW = 1_800_000_000_000 * MILLISECOND


@pytest.fixture
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.ids.time.time_ns", lambda: NOW)


def test_ids_of_one_millisecond_sort_in_the_order_of_creation(stopped_clock: None) -> None:
    created = [new_id("job") for _ in range(10_000)]
    assert created == sorted(set(created))


def test_the_time_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.ids.time.time_ns", lambda: NOW)
    assert MonotonicUlids().next() >> 80 == NOW // MILLISECOND


def test_ids_keep_their_order_if_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([NOW, NOW - 3_600_000 * MILLISECOND, NOW - 1, NOW + MILLISECOND])
    monkeypatch.setattr("app.ids.time.time_ns", lambda: next(times))
    ulids = MonotonicUlids()
    created = [ulids.next() for _ in range(4)]
    assert created == sorted(set(created))
    assert created[1:3] == [created[0] + 1, created[0] + 2]
    assert created[3] >> 80 == NOW // MILLISECOND + 1


def test_an_overflow_of_the_random_bits_increments_the_time(
    monkeypatch: pytest.MonkeyPatch, stopped_clock: None
) -> None:
    monkeypatch.setattr("app.ids.os.urandom", lambda size: b"\xff" * size)
    ulids = MonotonicUlids()
    first, second = ulids.next(), ulids.next()
    assert second == first + 1
    assert second >> 80 == NOW // MILLISECOND + 1


def test_ids_of_several_threads_are_unique_and_each_thread_sees_them_in_order(stopped_clock: None) -> None:
    barrier = threading.Barrier(8)
    created: list[list[str]] = [[] for _ in range(8)]

    def create(ids_of_thread: list[str]) -> None:
        barrier.wait()
        ids_of_thread.extend(new_id("job") for _ in range(2_000))

    threads = [threading.Thread(target=create, args=(ids_of_thread,)) for ids_of_thread in created]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(ids_of_thread == sorted(ids_of_thread) for ids_of_thread in created)
    assert len({id_ for ids_of_thread in created for id_ in ids_of_thread}) == 8 * 2_000


def test_a_forked_process_starts_its_own_sequence(stopped_clock: None) -> None:
    new_id("job")
    read_end, write_end = os.pipe()
    with ids._ulids._lock:  # as if another thread were creating an id at this moment
        pid = os.fork()
        if pid == 0:
            os.write(write_end, new_id("job").encode())
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        id_of_child = pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert len(id_of_child) == len("job_") + 26
    # The child's next value is random; the parent's is the last one plus one.
    assert id_of_child != new_id("job")
