"""PostgreSQL, a broker and a bucket behind proxies that make them slow or unavailable."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

import bucket
import fault_proxy
import postgres
import production
from fault_proxy import FaultProxy
from sqlalchemy import URL, make_url

Fault: TypeAlias = Literal["healthy", "delayed", "away"]
"""``away``: connections are refused, or they are accepted and nothing answers."""

FAULTS: tuple[Fault, ...] = ("healthy", "delayed", "away")
DELAYS = (0.1, 10.0)
"""Shortest and longest delay of a round trip, in seconds."""


@dataclass(frozen=True)
class Dependencies:
    """Servers of a service behind proxies.

    Attributes:
        database: proxy before PostgreSQL.
        broker: proxy before the broker.
        storage: proxy before the bucket.
        database_url: URL of the database without its proxy.
        settings: settings of a service that uses the proxies.
    """

    database: FaultProxy
    broker: FaultProxy
    storage: FaultProxy
    database_url: str
    settings: dict[str, str]

    @property
    def proxies(self) -> dict[str, FaultProxy]:
        """The proxies by the names of the dependencies."""
        return {"database": self.database, "broker": self.broker, "storage": self.storage}

    def heal(self) -> None:
        """Make all dependencies healthy."""
        for proxy in self.proxies.values():
            proxy.heal()


@contextmanager
def dependencies(folder: Path) -> Iterator[Dependencies]:
    """Run the servers and their proxies while the block lasts.

    Args:
        folder: for logs and data.

    Raises:
        postgres.UnavailableError: if PostgreSQL is not available.
    """
    with ExitStack() as opened:
        database_url = opened.enter_context(postgres.server()).create()
        direct = make_url(database_url)
        database = opened.enter_context(fault_proxy.proxy(_database_target(direct)))
        broker_url = opened.enter_context(production.valkey(folder))
        broker = opened.enter_context(fault_proxy.proxy(_target(broker_url)))
        buckets = opened.enter_context(bucket.server(folder / "bucket.log"))
        storage = opened.enter_context(fault_proxy.proxy(_target(buckets.url)))
        through = direct.set(host="127.0.0.1", port=database.port, query={})
        settings = {
            "COVEY_DATABASE_URL": through.render_as_string(hide_password=False),
            "COVEY_BROKER_URL": f"redis://{broker.address}/0",
            "COVEY_STORAGE_URL": buckets.create().replace(buckets.url, f"http://{storage.address}"),
            **bucket.CREDENTIALS,
        }
        yield Dependencies(database, broker, storage, database_url, settings)


def _target(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


def _database_target(url: URL) -> tuple[str, int] | Path:
    host, port = str(url.query.get("host") or url.host), url.port or 5432
    return Path(host) / f".s.PGSQL.{port}" if host.startswith("/") else (host, port)


def combinations(rng: random.Random) -> Iterator[dict[str, Fault]]:
    """Yield all combinations of at least one fault, in random order, again and again."""
    names = ("database", "broker", "storage")
    every = [
        dict(zip(names, faults, strict=True))
        for faults in itertools.product(FAULTS, repeat=len(names))
        if set(faults) != {"healthy"}
    ]
    while True:
        yield from rng.sample(every, len(every))


def apply(servers: Dependencies, faults: dict[str, Fault], rng: random.Random) -> None:
    """Make dependencies slow or unavailable. Delays and kinds of unavailability are random."""
    for name, proxy in servers.proxies.items():
        match faults[name]:
            case "healthy":
                proxy.heal()
            case "delayed":
                shortest, longest = DELAYS
                proxy.delay(shortest * (longest / shortest) ** rng.random())
            case "away":
                rng.choice([proxy.refuse, proxy.mute])()
