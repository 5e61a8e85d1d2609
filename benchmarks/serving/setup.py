"""What all parts of the benchmark use: the models, the requests, and the folders."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

import postgres

from benchmarks.serving import bodies
from benchmarks.serving.processes import Target
from benchmarks.serving.service import ROUTER, Service, service
from benchmarks.serving.trained import trained


class Setup:
    """The models, requests and services. Leaving the context stops the services.

    Args:
        cache: folder of what is made once. The models are trained if it does not contain them.
        folder: temporary folder of this run, on the same file system as the cache.
        rounds: number of rounds.
        seconds: duration of one measurement.

    Attributes:
        artifacts: the models by name.
        texts: texts of about 800 characters.
    """

    def __init__(self, cache: Path, folder: Path, *, rounds: int, seconds: float) -> None:
        self.cache, self.folder = cache, folder
        self.rounds, self.seconds = rounds, seconds
        self.artifacts = trained(cache)
        stories = bodies.stories()
        self.texts = bodies.short_texts(stories)
        bodies.predictions(self.texts).write(folder / "full.bodies")
        bodies.predictions(self.texts, top=5).write(folder / "top5.bodies")
        bodies.messages(stories).write(folder / "messages.bodies")
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    @cached_property
    def _database(self) -> postgres.PostgresServer:
        """A server of PostgreSQL whose commits wait for the disk."""
        return self._opened.enter_context(postgres.server(durable=True))

    def predict(self, running: Service, model: str, *, top5: bool = False) -> Target:
        """Return predictions with a model of a service."""
        return Target(
            f"{running.urls[0]}/v1/models/{model}/predict",
            self.folder / ("top5.bodies" if top5 else "full.bodies"),
            {"Content-Type": "application/json", **running.headers},
        )

    def messages(self, running: Service) -> Target:
        """Return messages to the router of a service."""
        return Target(
            f"{running.urls[0]}/v1/routers/{ROUTER}/messages",
            self.folder / "messages.bodies",
            {"Content-Type": "message/rfc822", **running.headers},
        )

    @cached_property
    def sqlite(self) -> Service:
        """A service on SQLite with one process, which several parts use."""
        return self._opened.enter_context(service(self.folder / "sqlite", self.artifacts, {}))

    @cached_property
    def postgresql(self) -> Service:
        """A service on PostgreSQL with one process, which several parts use."""
        return self._opened.enter_context(self.start("postgresql"))

    @contextmanager
    def start(self, name: str, *options: str, **settings: str) -> Iterator[Service]:
        """Run another service on a database of its own while the block lasts.

        Args:
            name: name of its folder.
            options: options of ``covey api``.
            settings: environment variables, ``COVEY_…``.
        """
        settings = {"COVEY_DATABASE_URL": self._database.create(), **settings}
        with service(self.folder / name, self.artifacts, settings, *options) as running:
            yield running
