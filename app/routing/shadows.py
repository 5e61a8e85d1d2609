"""Record what the shadow version of a router predicts, after the message was routed.

A task of the event loop takes the messages in groups, so that a shadow version delays other messages as
little as possible: the messages of a group are scored together, and recorded in one transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby

import structlog
from sqlalchemy.exc import SQLAlchemyError

from app.api.structs import unvalidated
from app.db.session import Database
from app.errors import ServiceError
from app.metrics import SHADOW_DECISIONS
from app.routing import service
from app.routing.decision_rules import best_labels, set_probability
from app.routing.policies import router_rule
from app.routing.schemas import RouterPut, ShadowDecision
from app.routing.scoring import reads_mail, to_documents
from app.serving.latency_estimate import CostEstimate, run_measured
from app.serving.loaded_models import LoadedModels
from app.serving.loaded_version import LoadedVersion
from app.serving.snapshot import ServedRouter
from app.serving.state import Catalog
from app.serving.version_loading import load_version
from app.threads import REQUESTS
from models.errors import CoveyError
from models.mail import MailDocument

log = structlog.get_logger()

_new_shadow = unvalidated(ShadowDecision)

SHADOW_RANKING = 10
"""Number of labels in the recorded ranking of a shadow version."""

MAX_WAITING = 1000
"""Maximum number of messages that wait for their shadow version. Further ones get no shadow."""

MAX_WAITING_CHARS = 32 * 1024 * 1024
"""Maximum size of the text of these messages."""

PAUSE_SECONDS = 0.1
"""Time between two groups."""

MAX_GROUP = 16
"""Maximum number of messages that are scored together."""

STOP_SECONDS = 5.0
"""How long a stop waits for the messages that wait."""


@dataclass(frozen=True, slots=True)
class ShadowMessage:
    """A routed message.

    Attributes:
        decision_id: id of the decision.
        router: the router.
        config: its configuration.
        shadow: number or alias of the shadow version.
        labels: the labels of the departments.
        mail: the message.
    """

    decision_id: str
    router: ServedRouter
    config: RouterPut
    shadow: int | str
    labels: frozenset[str]
    mail: MailDocument

    @property
    def n_chars(self) -> int:
        """Size of the text."""
        return len(self.mail.new_text) + len(self.mail.quoted_text)


class ShadowRecorder:
    """Recorder of the results of shadow versions for routed messages. It belongs to the event loop.

    Args:
        db: the database.
        catalog: knows the versions.
        loaded: the versions in memory.
    """

    def __init__(self, db: Database, catalog: Catalog, loaded: LoadedModels) -> None:
        self._db = db
        self._catalog = catalog
        self._loaded = loaded
        self._waiting: list[ShadowMessage] = []
        self._chars_waiting = 0
        self._cost = CostEstimate()
        self._wake = asyncio.Event()
        self._stopping = asyncio.Event()

    def start(self) -> None:
        """Start the task."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Record the messages that wait, unless that takes long, and stop the task."""
        self._stopping.set()
        self._wake.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._task, STOP_SECONDS)

    def add(self, message: ShadowMessage) -> None:
        """Score and record a message soon; not if too many wait."""
        if len(self._waiting) >= MAX_WAITING or self._chars_waiting > MAX_WAITING_CHARS:
            _log_unavailable([message], "too many messages wait for their shadow version")
            return
        self._waiting.append(message)
        self._chars_waiting += message.n_chars
        self._wake.set()

    async def _run(self) -> None:
        while not (self._stopping.is_set() and not self._waiting):
            await self._wake.wait()
            self._wake.clear()
            waiting, self._waiting, self._chars_waiting = self._waiting, [], 0
            for group in _groups(waiting):
                await self._process(group)
            with suppress(TimeoutError):  # messages gather until then
                await asyncio.wait_for(self._stopping.wait(), PAUSE_SECONDS)

    async def _process(self, group: Sequence[ShadowMessage]) -> None:
        """Score and record messages of one version."""
        first = group[0]
        try:
            version, loaded = await load_version(
                self._catalog, self._loaded, first.config.model, first.shadow
            )
            if not reads_mail(loaded.pipeline):
                raise _CannotReadMailError(service.cannot_read_mail(version))
            shadows = await run_measured(
                self._cost,
                len(group),
                sum(message.n_chars for message in group),
                lambda: _score(loaded, version.version, group),
            )
            await REQUESTS.run(service.record_shadows, self._db, shadows)
            for shadow in shadows.values():
                agreement = "agreed" if shadow.agrees else "disagreed"
                SHADOW_DECISIONS.labels(first.router.name, agreement).inc()
        except (ServiceError, CoveyError, _CannotReadMailError, OSError, SQLAlchemyError) as error:
            # The routing must not depend on the shadow version, which is for comparison only.
            _log_unavailable(group, str(error))
        except Exception:
            # An unforeseen error must not end the task, which also serves all later messages.
            log.exception("shadow.failed", decision_id=first.decision_id)


class _CannotReadMailError(Exception):
    """The shadow version cannot read mail."""


def _groups(messages: Sequence[ShadowMessage]) -> Iterator[list[ShadowMessage]]:
    """Yield groups of messages of the same router, and so of the same version."""

    def version(message: ShadowMessage) -> tuple[str, int, str]:
        return message.router.id, id(message.router), repr(message.shadow)

    for _, same in groupby(sorted(messages, key=version), key=version):
        of_version = list(same)
        for start in range(0, len(of_version), MAX_GROUP):
            yield of_version[start : start + MAX_GROUP]


def _score(loaded: LoadedVersion, version: int, group: Sequence[ShadowMessage]) -> dict[str, ShadowDecision]:
    """Return the shadow decisions by the ids of the decisions.

    The shadow decides as it would if it was the version of the router.
    """
    pipeline = loaded.pipeline
    rule = router_rule(loaded, group[0].router, group[0].config).rule
    documents = to_documents(pipeline, [message.mail for message in group])
    ranking = pipeline.rank(documents, rule=rule)
    labels = pipeline.labels_
    shadows: dict[str, ShadowDecision] = {}
    for i, message in enumerate(group):
        predicted = [labels[number] for number in ranking.label_sets[i]]
        shadows[message.decision_id] = _new_shadow(
            version=version,
            labels=predicted,
            agrees=message.labels == frozenset(predicted),
            ranking=best_labels(labels, ranking, SHADOW_RANKING, i),
            set_probability=set_probability(ranking, i),
        )
    return shadows


def _log_unavailable(group: Sequence[ShadowMessage], reason: str) -> None:
    log.warning("shadow.unavailable", decision_id=group[0].decision_id, messages=len(group), reason=reason)
