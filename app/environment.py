"""What a process of the service works with: settings, database, storage. Made after any fork."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

from app.bell import Bell
from app.broker import broker_url
from app.db.session import Database
from app.settings import Settings
from app.storage import Storage, open_storage
from app.storage.watch import StorageWatch


@dataclass(frozen=True)
class Environment:
    """The service's things.

    Attributes:
        settings: what the operator chose.
        db: the ledger.
        storage: the files.
        bell: the way to the workers.
    """

    settings: Settings
    db: Database
    storage: Storage
    bell: Bell

    @cached_property
    def storage_watch(self) -> StorageWatch:
        """Whether the storage can be used now."""
        return StorageWatch(self.storage)

    @classmethod
    def open(cls, settings: Settings, bell: Bell | None = None) -> Self:
        """Connect to what the settings name.

        Args:
            settings: what the operator chose.
            bell: how to ring; each ring waits for the broker's answer where None.
        """
        bell = bell or Bell(broker_url(settings))
        return cls(
            settings=settings,
            db=Database(settings.resolved_database_url(), bell.ring),
            storage=open_storage(settings),
            bell=bell,
        )

    def close(self) -> None:
        """Close every connection."""
        self.db.close()
        self.bell.close()
