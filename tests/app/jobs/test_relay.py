"""Tasks of queued jobs reach the broker, and are sent again if it loses them. Nothing waits for a broker."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import production
import pytest
import redis
import rows
from pydantic import SecretStr
from waiting import LIMIT_SECONDS, wait_for

from app.context import AppContext
from app.db.session import DATABASE_UNAVAILABLE, Database
from app.jobs.kinds import Kind
from app.jobs.relay import Relay, RelayThread
from app.settings import Settings

StartRelay = Callable[[str], Relay]


@contextmanager
def unresponsive_server() -> Iterator[str]:
    """Run a server that accepts connections and never responds. Yield its host and port."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def with_broker(ctx: AppContext, url: str) -> Settings:
    return ctx.settings.model_copy(update={"broker_url": SecretStr(url)})


@pytest.fixture
def start_relay(ctx: AppContext) -> Iterator[StartRelay]:
    relays: list[Relay] = []

    def start(url: str) -> Relay:
        relays.append(Relay(with_broker(ctx, url)))
        return relays[-1]

    yield start
    for relay in relays:
        relay.close()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tuple[str, redis.Redis]]:
    with production.valkey(tmp_path) as url, redis.Redis.from_url(url) as client:
        yield url, client


def messages(client: redis.Redis, queue: str = "training") -> list[dict[str, Any]]:
    return [json.loads(message) for message in reversed(client.lrange(queue, 0, -1))]


def ids(client: redis.Redis, queue: str = "training") -> list[str]:
    return [message["headers"]["id"] for message in messages(client, queue)]


def test_the_id_of_a_task_is_that_of_its_job_and_its_name_and_queue_tell_the_kind(
    database: Database, start_relay: StartRelay, broker: tuple[str, redis.Redis]
) -> None:
    url, client = broker
    of_kinds: list[tuple[str, Kind]] = [
        ("training", "train"),
        ("ingest", "ingest"),
        ("evaluation", "batch_prediction"),
        ("cells", "cell"),
    ]
    jobs = {kind: rows.queued(database, kind=kind) for _, kind in of_kinds}
    start_relay(url).run_once()
    for queue, kind in of_kinds:
        (message,) = messages(client, queue)
        assert (message["headers"]["id"], message["headers"]["task"]) == (jobs[kind], f"covey.{kind}")
        assert message["headers"]["argsrepr"] == "()", "the database alone knows what the job is"


def test_the_api_hands_out_jobs_after_a_commit_and_before_it_ends(
    ctx: AppContext, broker: tuple[str, redis.Redis], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.jobs.relay.CLOSE_SECONDS", LIMIT_SECONDS)
    url, client = broker
    relay = RelayThread(with_broker(ctx, url))
    first = rows.queued(ctx.db)
    relay.notify(first)
    wait_for(lambda: ids(client) == [first] or None, what="the task")
    second = rows.queued(ctx.db)
    relay.notify(second)
    relay.close()
    assert ids(client) == [first, second]


def test_a_lost_task_is_sent_again_and_one_that_waits_for_a_worker_is_not(
    database: Database, clock: Any, start_relay: StartRelay, broker: tuple[str, redis.Redis]
) -> None:
    url, client = broker
    relay = start_relay(url)
    jobs = [rows.queued(database) for _ in range(2)]
    relay.run_once()
    clock.advance(10)
    relay.heal()
    assert ids(client) == jobs, "the broker has both"
    client.flushall()
    relay.heal()
    assert ids(client) == jobs
    client.flushall()
    relay.heal()
    assert ids(client) == [], "a worker may just have received them"
    clock.advance(10)
    relay.heal()
    assert ids(client) == jobs


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
@pytest.mark.parametrize("server", ["unresponsive", "absent"])
def test_an_unavailable_broker_is_no_error_and_loses_nothing(
    database: Database,
    clock: Any,
    start_relay: StartRelay,
    broker: tuple[str, redis.Redis],
    scheme: str,
    server: str,
) -> None:
    job = rows.queued(database)
    with unresponsive_server() as address, pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.jobs.celery_config.CONNECT_SECONDS", 0.2)
        patch.setattr("app.jobs.celery_config.RESPONSE_SECONDS", 0.2)
        relay = start_relay(
            f"{scheme}://{address if server == 'unresponsive' else f'127.0.0.1:{production.free_port()}'}/"
        )
        relay.run_once()
        assert relay.unavailable_since is not None
        clock.advance(10)
        relay.heal()
    url, client = broker
    again = start_relay(url)
    clock.advance(10)
    again.heal()
    assert ids(client) == [job]
    assert again.unavailable_since is None


def test_a_caller_never_waits_for_an_unresponsive_broker(ctx: AppContext) -> None:
    with unresponsive_server() as address:
        relay = RelayThread(with_broker(ctx, f"redis://{address}/"))
        for _ in range(1000):
            relay.notify(rows.queued(ctx.db) if _ < 3 else "job")
        relay.close()


def test_without_the_database_no_task_is_sent(ctx: AppContext, broker: tuple[str, redis.Redis]) -> None:
    url, client = broker
    settings = with_broker(ctx, url).model_copy(
        update={"database_url": SecretStr(f"postgresql+psycopg://127.0.0.1:{production.free_port()}/none")}
    )
    relay = Relay(settings)
    for look in (relay.run_once, relay.heal, relay.tick):
        with pytest.raises(DATABASE_UNAVAILABLE):
            look()
    relay.close()
    assert client.keys("*") == []
