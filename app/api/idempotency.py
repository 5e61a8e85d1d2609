"""``Idempotency-Key``: a repeated request returns the first response; a different body is rejected.

The response is stored in the transaction that does the work, so neither exists without the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Annotated, TypeVar

from fastapi import Depends, Header, Request
from pydantic import BaseModel

from app.api.guards import actor_of
from app.api.proxies import own_path
from app.api.schemas import OneLine
from app.db.deadlocks import retry_deadlocks
from app.db.session import Database, Transaction
from app.db.tables import IdempotencyRecord
from app.db.upsert import insert_if_absent
from app.errors import Conflict

Response = TypeVar("Response", bound=BaseModel)


ANONYMOUS = "anonymous"
"""The caller of requests without an API key."""


class Idempotency:
    """Do the work of a creating request at most once.

    Args:
        caller: id of the API key; each caller has its own idempotency keys.
        key: the ``Idempotency-Key``; None if the request has none.
        fingerprint: digest of path and body.
    """

    def __init__(self, caller: str, key: str | None, fingerprint: str) -> None:
        self._caller = caller
        self._key = key
        self._fingerprint = fingerprint

    @property
    def key_id(self) -> str | None:
        """Id of the request's API key; None for an anonymous request."""
        return None if self._caller == ANONYMOUS else self._caller

    def of(self, content_sha256: str) -> Idempotency:
        """Return the same with the digest of a streamed body in the fingerprint."""
        digest = hashlib.sha256(f"{self._fingerprint}\n{content_sha256}".encode())
        return Idempotency(self._caller, self._key, digest.hexdigest())

    @retry_deadlocks
    def run(
        self,
        db: Database,
        response_type: type[Response],
        work: Callable[[Transaction], Response],
        *,
        one_time_field: str | None = None,
    ) -> Response:
        """Do the work in one transaction, or return the first response again.

        Args:
            db: stores the response.
            response_type: type of the response.
            work: does the work and returns the response.
            one_time_field: field of the response that must not be stored; a repetition is then rejected.

        Raises:
            Conflict: the key was used with another body, or the response contains a secret.
        """
        with db.write() as tx:
            if self._key is None:
                return work(tx)
            if not self._reserve(tx):
                first = tx.session.get(IdempotencyRecord, (self._caller, self._key), with_for_update=True)
                if first is None:
                    raise Conflict(
                        "the response to the first request with this Idempotency-Key has just expired; check "
                        "whether the resource exists, or send the request with a new key",
                        code="conflict",
                    )
                repeated = self._repeat(first, response_type, one_time_field)
                if repeated is not None:
                    return repeated
            response = work(tx)
            excluded = None if one_time_field is None else {one_time_field}
            stored = response.model_dump(mode="json", exclude_none=True, exclude=excluded)
            tx.session.get_one(IdempotencyRecord, (self._caller, self._key)).response = stored
            return response

    @retry_deadlocks
    def reserve(self, db: Database) -> None:
        """Reserve the key before work that is not part of the transaction, so that no other body can use it.

        The key stays reserved for this body if the work fails. ``run`` stores the response.

        Raises:
            Conflict: the key was used with another body.
        """
        with db.write() as tx:
            if not self._reserve(tx):
                first = tx.session.get(IdempotencyRecord, (self._caller, self._key))
                if first is not None:
                    self._check_fingerprint(first)

    def first_response(
        self, db: Database, response_type: type[Response], *, one_time_field: str | None = None
    ) -> Response | None:
        """Return the response to an earlier request with the same key and body, or None if there is none.

        Call this before anything else: what the first request needed, such as a data set, may be gone. A key
        that is only reserved has no response yet.

        Raises:
            Conflict: as ``run``.
        """
        if self._key is None:
            return None
        with db.read() as session:
            first = session.get(IdempotencyRecord, (self._caller, self._key))
        return None if first is None else self._repeat(first, response_type, one_time_field)

    def _repeat(
        self, first: IdempotencyRecord, response_type: type[Response], one_time_field: str | None
    ) -> Response | None:
        self._check_fingerprint(first)
        if not first.response:
            return None
        if one_time_field is not None:
            raise Conflict(
                f"this request already created {first.response['id']}, and only the first response "
                f"contains the {one_time_field}; rotate it to get a new one",
                code="secret_already_shown",
            )
        return response_type.model_validate(first.response)

    def _check_fingerprint(self, first: IdempotencyRecord) -> None:
        if first.fingerprint != self._fingerprint:
            raise Conflict(
                "this Idempotency-Key was used for another request; choose a new one",
                code="idempotency_key_reused",
            )

    def _reserve(self, tx: Transaction) -> bool:
        """Reserve the key. A concurrent request waits here until the first one has ended.

        Returns:
            whether the key is new.
        """
        return insert_if_absent(
            tx,
            IdempotencyRecord,
            caller=self._caller,
            key=self._key,
            fingerprint=self._fingerprint,
            response={},
            created_at=tx.now,
        )


IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=255,
        description="Key of your choice. If you repeat a request with the same key and body, it runs once.",
    ),
    OneLine,
]


NOT_IDEMPOTENT = Idempotency(ANONYMOUS, None, "")
"""For callers that cannot repeat a request by mistake, such as a command."""


async def _idempotency(request: Request, idempotency_key: IdempotencyKey = None) -> Idempotency:
    digest = hashlib.sha256(_method_and_path(request))
    if idempotency_key is not None:
        digest.update(await request.body())
    return Idempotency(caller(request), idempotency_key, digest.hexdigest())


async def _streamed_idempotency(request: Request, idempotency_key: IdempotencyKey = None) -> Idempotency:
    return Idempotency(
        caller(request), idempotency_key, hashlib.sha256(_method_and_path(request)).hexdigest()
    )


def _method_and_path(request: Request) -> bytes:
    return f"{request.method} {own_path(request)}\n".encode()


def caller(request: Request) -> str:
    """Return the id of the request's API key, or ``ANONYMOUS``."""
    return key_id_of(request) or ANONYMOUS


def key_id_of(request: Request) -> str | None:
    """Return the id of the request's API key or user; None if the request is anonymous."""
    actor = actor_of(request)
    return None if actor is None else actor.id


IdempotencyHeader = Annotated[Idempotency, Depends(_idempotency)]
"""For a request whose body is in memory."""

StreamedIdempotencyHeader = Annotated[Idempotency, Depends(_streamed_idempotency)]
"""For a streamed request: call ``Idempotency.of`` with the body's digest after reading it."""
