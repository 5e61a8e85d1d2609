"""What all parts of the benchmark use: the models, the requests, and the folders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import postgres

from benchmarks.serving_sides import bodies
from benchmarks.serving_sides.processes import Target
from benchmarks.serving_sides.service import ROUTER, Service, service
from benchmarks.serving_sides.trained import trained


@dataclass(frozen=True)
class Setup:
    """The models and requests.

    Attributes:
        cache: folder of what is made once.
        folder: temporary folder of this run, on the same file system as the cache.
        artifacts: the models by name.
        texts: texts of about 800 characters.
        rounds: number of rounds.
        seconds: duration of one measurement.
    """

    cache: Path
    folder: Path
    artifacts: Mapping[str, Path]
    texts: list[str]
    rounds: int
    seconds: float

    @classmethod
    def make(cls, cache: Path, folder: Path, *, rounds: int, seconds: float) -> Setup:
        """Train the models if necessary, and write the bodies of the requests."""
        artifacts = trained(cache)
        stories = bodies.stories()
        texts = bodies.short_texts(stories)
        bodies.predictions(texts).write(folder / "full.bodies")
        bodies.predictions(texts, top=5).write(folder / "top5.bodies")
        bodies.messages(stories).write(folder / "messages.bodies")
        return cls(cache, folder, artifacts, texts, rounds, seconds)

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

    @contextmanager
    def sqlite(self, name: str, *options: str) -> Iterator[Service]:
        """Run a service on SQLite."""
        with service(self.folder / name, self.artifacts, {}, *options) as running:
            yield running

    @contextmanager
    def postgresql(self, name: str, *options: str, **settings: str) -> Iterator[Service]:
        """Run a service on a PostgreSQL of its own, whose commits wait for the disk."""
        with postgres.server(durable=True) as database:
            settings = {"COVEY_DATABASE_URL": database.create(), **settings}
            with service(self.folder / name, self.artifacts, settings, *options) as running:
                yield running
