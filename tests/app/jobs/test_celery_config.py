"""Celery's configuration: what would lose, delay or repeat jobs is off, and an import starts nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from celery.app.defaults import DEFAULTS

from app.jobs.celery_config import celery_config
from app.jobs.kinds import KINDS, QUEUE_OF, Kind
from app.settings import Settings
from workers.job_kinds import WORK

BROKERS = ("redis://127.0.0.1/0", "amqp://127.0.0.1//")


@pytest.mark.parametrize("url", BROKERS)
def test_a_task_is_acknowledged_before_it_runs_and_runs_in_a_process_that_stays(url: str) -> None:
    conf = celery_config(Settings(broker_url=url))
    # RabbitMQ closes the connection of a worker that acknowledges later than half an hour.
    assert conf["task_acks_late"] is False
    # A new process for each task takes a second; the job has one of its own anyway.
    assert "worker_max_tasks_per_child" not in conf
    assert conf["worker_pool_start_method"] == "fork"
    # Otherwise running jobs end with the connection to the broker.
    assert conf["worker_cancel_long_running_tasks_on_connection_loss"] is False
    assert conf["task_ignore_result"] is True


@pytest.mark.parametrize("url", BROKERS)
def test_queues_are_classic_and_every_kind_has_one(url: str) -> None:
    conf = celery_config(Settings(broker_url=url))
    queues = {queue.name: queue for queue in conf["task_queues"]}
    assert {queue.queue_arguments for queue in queues.values()} == {None}
    assert set(WORK) == set(KINDS) == set(get_args(Kind))
    routes = {name: route["queue"] for name, route in conf["task_routes"].items()}
    assert routes == {f"covey.{kind}": queue for kind, queue in QUEUE_OF.items()}
    assert set(routes.values()) == set(queues)


def test_every_option_is_known_to_celery() -> None:
    assert set(celery_config(Settings())) <= set(DEFAULTS)


def test_remote_control_and_events_can_be_turned_off() -> None:
    for on in (False, True):
        conf = celery_config(Settings(remote_control=on))
        names = ("worker_enable_remote_control", "worker_send_task_events", "task_send_sent_event")
        assert [conf[name] for name in names] == [on] * 3


def test_importing_the_application_starts_nothing() -> None:
    program = """
import os, threading
import workers.celery
import workers.tasks

assert threading.active_count() == 1, threading.enumerate()
opened = [fd for fd in range(3, 1024) if os.path.exists(f"/proc/self/fd/{fd}")]
assert not [fd for fd in opened if os.readlink(f"/proc/self/fd/{fd}").startswith("socket:")]
with open("/proc/thread-self/children") as children:
    assert children.read() == ""
tasks = sorted(name for name in workers.celery.app.tasks if name.startswith("covey."))
print(*tasks)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == sorted(f"covey.{kind}" for kind in KINDS)
