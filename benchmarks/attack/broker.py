"""A broker that is away or mute, and heartbeats that something slow could hold up."""

from __future__ import annotations

import time
from collections.abc import Iterator

import psycopg
from dependencies import Dependencies

from benchmarks.attack.harness import (
    LONG,
    Result,
    Targets,
    at_most,
    attack,
    expect,
    within,
)

MAX_GAP_SECONDS = 5.0
"""Longest time between heartbeats; a worker counts as gone after 15 s."""
OBSERVED_SECONDS = 25.0


@attack("trainings while the broker is away")
def away(targets: Targets) -> Iterator[Result]:
    """Train while the broker refuses connections and is mute, with workers that started before and after."""
    with targets.with_dependencies() as (service, servers):
        service.prepare()
        for condition in (servers.broker.refuse, servers.broker.mute):
            for restart in (False, True):
                what = f"{condition.__name__}, with {'new' if restart else 'old'} workers"
                condition()
                if restart:
                    service.production.stop_workers()
                    service.production.start_workers()
                began = time.monotonic()
                job = service.stack.train(service.dataset, model="meanwhile")["id"]
                yield within(f"time until it was accepted, {what}", time.monotonic() - began, 1.0)
                servers.broker.heal()
                ended = service.stack.finished(job, 120)
                yield expect(f"state of a training, {what}", ended["state"], "succeeded")
                yield expect(f"attempts, {what}", ended["attempt"], 1)


def _longest_gap(servers: Dependencies) -> float:
    """Observe the heartbeats of all workers, and return the longest time without one."""
    longest = 0.0
    query = "SELECT extract(epoch FROM clock_timestamp() - max(last_seen_at)) FROM workers WHERE NOT stopping"
    with psycopg.connect(servers.database_url, autocommit=True) as connection:
        until = time.monotonic() + OBSERVED_SECONDS
        while time.monotonic() < until:
            row = connection.execute(query).fetchone()
            longest = max(longest, float(row[0]) if row is not None and row[0] is not None else 0.0)
            time.sleep(0.1)
    return longest


@attack("heartbeats with a mute broker and with slow storage")
def heartbeats(targets: Targets) -> Iterator[Result]:
    """Queue jobs that no worker can take, so that their tasks are sent again and again; list slow storage."""
    settings = {"COVEY_WORKER_CONCURRENCY": "1", "COVEY_COLLECT_SECONDS": "1"}
    with targets.with_dependencies(settings) as (service, servers):
        service.prepare()
        jobs = [service.stack.train(service.dataset, model="long", learner=LONG)["id"] for _ in range(5)]
        servers.broker.mute()
        yield at_most(
            "longest time without a heartbeat, mute broker", _longest_gap(servers), MAX_GAP_SECONDS, "s"
        )
        servers.broker.heal()
        servers.storage.delay(6.0)
        yield at_most(
            "longest time without a heartbeat, slow storage", _longest_gap(servers), MAX_GAP_SECONDS, "s"
        )
        servers.storage.heal()
        for job in jobs:
            service.stack.call("POST", f"/v1/training-jobs/{job}/cancel", 202)
