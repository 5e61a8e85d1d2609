"""The resources of one process: settings, database, storage and notifier. Create it after any fork."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self

from app.db import file_holds
from app.db.session import Database
from app.settings import Settings
from app.storage import Storage, open_storage
from app.storage.deletion import FileDeletion
from app.storage.probe import StorageProbe


class JobNotifier(Protocol):
    """Tells the workers about queued jobs; see ``app.jobs.notifier`` and ``workers.wakeups``."""

    def notify(self, job_id: str) -> None:
        """Tell the workers that a job is queued. Must neither raise nor wait."""
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
        notifier: notifies workers about queued jobs.
    """

    settings: Settings
    db: Database
    storage: Storage
    notifier: JobNotifier

    @cached_property
    def storage_probe(self) -> StorageProbe:
        """Checks whether the storage can be used now."""
        return StorageProbe(self.storage)

    @cached_property
    def deletion(self) -> FileDeletion:
        """Deletes files that no row references any more."""

        def are_files_held() -> bool:
            with self.db.read() as session:
                return file_holds.are_files_held(session)

        return FileDeletion(self.storage, are_files_held)

    @classmethod
    def open(cls, settings: Settings, notifier: JobNotifier) -> Self:
        """Connect to the services that the settings name.

        Args:
            settings: the operator's settings.
            notifier: tells the workers about queued jobs; the context closes it.
        """
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
