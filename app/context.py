"""The resources of one process: settings, database, storage and relay. Create it after any fork."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self

from app.db import backup_lock
from app.db.session import Database
from app.settings import Settings
from app.storage import Storage, open_storage
from app.storage.deletion import FileDeletion
from app.storage.probe import StorageProbe


class JobRelay(Protocol):
    """Hand queued jobs to the broker; see ``app.jobs.relay`` and ``workers.requests``."""

    def notify(self, job_id: str) -> None:
        """Hand out a job that is queued. Must neither raise nor wait."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


@dataclass(frozen=True)
class AppContext:
    """Settings and connections that services and job kinds work with.

    Attributes:
        settings: the operator's settings.
        db: the database.
        storage: the files.
        relay: hands queued jobs to the broker.
    """

    settings: Settings
    db: Database
    storage: Storage
    relay: JobRelay

    @cached_property
    def storage_probe(self) -> StorageProbe:
        """Checks whether the storage can be used now."""
        return StorageProbe(self.storage)

    @cached_property
    def deletion(self) -> FileDeletion:
        """Deletes files that no row references any more."""

        def are_files_locked() -> bool:
            with self.db.read() as session:
                return backup_lock.are_files_locked(session)

        return FileDeletion(self.storage, are_files_locked)

    @classmethod
    def open(cls, settings: Settings, relay: JobRelay) -> Self:
        """Connect to the services that the settings name.

        Args:
            settings: the operator's settings.
            relay: hands queued jobs to the broker; the context closes it.
        """
        return cls(
            settings=settings,
            db=Database(
                settings.resolved_database_url(),
                relay.notify,
                max_connections=settings.database_connections,
            ),
            storage=open_storage(settings),
            relay=relay,
        )

    def close(self) -> None:
        """Close every connection."""
        self.storage_probe.close()
        self.deletion.close()
        self.db.close()
        self.relay.close()
