"""Lists whose number of SQL statements grows with the page."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
from psycopg import sql
from sqlalchemy import make_url
from stack import BYTES

from benchmarks.attack.harness import MODEL, Result, Service, Targets, at_most, attack

SMALL, LARGE = 5, 60
MORE = 3
"""Number of statements by which the large page may exceed the small one."""


class _StatementLog:
    """Counts the statements that PostgreSQL logs for a database.

    Args:
        url: URL of the database.
    """

    def __init__(self, url: str) -> None:
        name = make_url(url).database
        assert name is not None
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                sql.SQL("ALTER DATABASE {} SET log_statement = 'all'").format(sql.Identifier(name))
            )
        self._path = Path(str(make_url(url).query["host"])) / "log"

    def count(self, service: Service, path: str) -> int:
        """Return the number of SELECT statements of a request; background work is subtracted."""
        service.get(path).raise_for_status()
        counts = []
        for _ in range(3):  # statements of workers can fall into a measurement
            before = self._lines()
            service.get(path).raise_for_status()
            time.sleep(0.05)
            counts.append(self._lines() - before)
        return min(counts)

    def _lines(self) -> int:
        return self._path.read_text(errors="replace").count(": SELECT")


@attack("pages of 5 and of 60 items")
def pages(targets: Targets) -> Iterator[Result]:
    """Count the statements of lists with pages of two sizes."""
    with targets.with_postgres() as (service, url):
        log = _StatementLog(url)
        service.stack.stop()
        service.stack.start()  # with new connections, whose statements are logged
        service.prepare()
        artifact = service.get(f"/v1/models/{MODEL}/versions/1/artifact").content
        for n in range(LARGE):
            service.stack.call("POST", f"/v1/models/m{n}/versions", 201, content=artifact, headers=BYTES)
            service.stack.call("POST", "/v1/models/many/versions", 201, content=artifact, headers=BYTES)
        for n in range(LARGE):
            message = {"email": {"subject": f"{n}", "text": "my invoice"}}
            service.stack.call("POST", "/v1/routers/attacked/message-parts", 200, json=message)
            service.stack.call("POST", "/v1/datasets", 201, json={"name": f"{n}"})
        dataset = service.dataset
        evaluations = f"/v1/models/{MODEL}/versions/1/evaluations"
        jobs = [service.stack.train(dataset, model="trained")["id"] for _ in range(LARGE)]
        for _ in range(LARGE):
            service.stack.call("POST", evaluations, 202, json={"dataset_id": dataset})
        for job in jobs:
            service.stack.finished(job)
        paths = ["/v1/models", "/v1/models/many/versions", evaluations, "/v1/datasets", "/v1/training-jobs"]
        for path in [*paths, "/v1/routers/attacked/decisions"]:
            small, large = (log.count(service, f"{path}?limit={n}") for n in (SMALL, LARGE))
            yield at_most(f"statements of {path}, {LARGE} items", large, small + MORE, "statements")
