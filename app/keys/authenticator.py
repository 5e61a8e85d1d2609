"""Authenticate requests by the API keys in the snapshot of the process."""

from __future__ import annotations

import time

from app.api.guards import Caller
from app.keys.last_used import LastUsed
from app.keys.service import digest
from app.serving.state import Catalog


class KeyAuthenticator:
    """Find out which API key a request has.

    Args:
        catalog: contains the keys.
        last_used: records the use of keys.
    """

    def __init__(self, catalog: Catalog, last_used: LastUsed) -> None:
        self._catalog = catalog
        self._last_used = last_used

    async def authenticate(self, secret: str) -> Caller | None:
        """Return the caller with this secret, or None if the secret is unknown or has expired.

        Every wrong secret takes the same steps: one digest, one look into a table of digests, and one check
        for new keys. Response times therefore reveal nothing about secrets.

        Raises:
            NotReady: the database is unavailable, and the secret is unknown or the snapshot is too old.
        """
        return await self.find(digest(secret))

    async def find(self, secret_digest: str) -> Caller | None:
        """Return the caller whose secret has this digest, or None if there is none or it has expired.

        Raises:
            NotReady: the database is unavailable, and the secret is unknown or the snapshot is too old.
        """
        snapshot = self._catalog.current or await self._catalog.fresh()
        now = time.time()
        caller = snapshot.caller(secret_digest, now)
        if caller is None:
            caller = (await self._catalog.after_miss()).caller(secret_digest, now)
        if caller is not None:
            self._last_used.record(caller.id, now)
        return caller

    async def allows_anonymous(self) -> bool:
        """Return whether the service listens on loopback and has never had a key.

        Raises:
            NotReady: the database has been unavailable for too long.
        """
        return not (self._catalog.current or await self._catalog.fresh()).requires_keys
