"""The resources of one process: settings, database, storage and notifier. Create it after any fork."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

from app.db.session import Database
from app.jobs.broker import broker_url
from app.jobs.notifier import Notifier
from app.settings import Settings
from app.storage import Storage, open_storage
from app.storage.probe import StorageProbe


@dataclass(frozen=True)
class AppContext:
    """Settings and connections that services and job kinds work with.

    Attributes:
        settings: the operator's settings.
        db: the database.
        storage: the files.
        notifier: tells workers about queued jobs.
    """

    settings: Settings
    db: Database
    storage: Storage
    notifier: Notifier

    @cached_property
    def storage_probe(self) -> StorageProbe:
        """Checks whether the storage can be used now."""
        return StorageProbe(self.storage)

    @classmethod
    def open(cls, settings: Settings, notifier: Notifier | None = None) -> Self:
        """Connect to the services that the settings name.

        Args:
            settings: the operator's settings.
            notifier: sends notifications. By default, one that waits for the broker's reply.
        """
        notifier = notifier or Notifier(broker_url(settings))
        return cls(
            settings=settings,
            db=Database(settings.resolved_database_url(), notifier.notify),
            storage=open_storage(settings),
            notifier=notifier,
        )

    def close(self) -> None:
        """Close every connection."""
        self.db.close()
        self.notifier.close()
