"""The part of the database that requests need: keys, versions and routers, as of one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from app.api.guards import Caller

Numbers: TypeAlias = frozenset[tuple[str, int]]
"""Models with numbers of their versions."""


@dataclass(frozen=True, slots=True)
class ServedKey:
    """A secret of an API key.

    Attributes:
        caller: id, name and scopes of the key.
        expires_at: the time from which the secret is not valid, in seconds since the epoch.
    """

    caller: Caller
    expires_at: float


@dataclass(frozen=True, slots=True)
class ServedVersion:
    """A version of a model.

    Attributes:
        model: name of the model.
        version: number of the version.
        artifact_key: key of the artifact in the storage.
    """

    model: str
    version: int
    artifact_key: str


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class ServedRouter:
    """A router. Two objects are equal only if they are the same, so that they can be keys of a cache.

    Attributes:
        id: distinguishes the router from a deleted one of the same name.
        name: name of the router.
        config: its configuration, as ``app.routing.schemas.RouterPut`` stores it.
    """

    id: str
    name: str
    config: Mapping[str, Any]


def version_references(config: Mapping[str, Any]) -> list[int | str]:
    """Return the numbers and aliases of the versions that decide for a router, by its configuration."""
    versions = config.get("versions")
    return [item["version"] for item in versions] if versions else [config["version"]]


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """Keys, versions and routers as of one moment. Parts that have not changed are shared by snapshots.

    Attributes:
        revisions: how often each part has changed.
        requires_keys: whether requests need an API key.
        keys: the secrets of all keys, by digest.
        aliases: the version of each alias, by model and alias.
        routers: the routers by name.
        numbers: the versions that routers name by their numbers, or requests have named, by model and number.
    """

    revisions: Mapping[str, int]
    requires_keys: bool
    keys: Mapping[str, ServedKey]
    aliases: Mapping[tuple[str, str], ServedVersion]
    routers: Mapping[str, ServedRouter]
    numbers: Mapping[tuple[str, int], ServedVersion]

    def caller(self, digest: str, now: float) -> Caller | None:
        """Return the caller with a secret, or None if the secret is unknown or has expired.

        Args:
            digest: digest of the secret, see ``app.keys.service.digest``.
            now: the time in seconds since the epoch.
        """
        key = self.keys.get(digest)
        return key.caller if key is not None and now < key.expires_at else None

    def version(self, model: str, ref: int | str) -> ServedVersion | None:
        """Return the version that an alias names, or one in ``numbers``."""
        return self.aliases.get((model, ref)) if isinstance(ref, str) else self.numbers.get((model, ref))

    def router(self, name: str) -> ServedRouter | None:
        """Return the router with a name."""
        return self.routers.get(name)
