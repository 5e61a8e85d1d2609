"""``Idempotency-Key``: the same key and body give the first answer again, another body is refused.

The first answer is written in the transaction that does the work, so there is never one without the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Annotated, TypeVar

from fastapi import Depends, Header, Request
from pydantic import BaseModel
from sqlalchemy.exc import IntegrityError

from app.db.session import Database, Transaction
from app.db.tables import IdempotencyRecord
from app.http.errors import Conflict

Made = TypeVar("Made", bound=BaseModel)


ANONYMOUS = "anonymous"
"""The caller of a service that needs no key."""


class Idempotency:
    """Does a creating request's work at most once.

    Args:
        caller: whose key it is; callers cannot meet each other's.
        key: the ``Idempotency-Key``, None where the client gave none.
        fingerprint: digest of path and body.
    """

    def __init__(self, caller: str, key: str | None, fingerprint: str) -> None:
        self._caller = caller
        self._key = key
        self._fingerprint = fingerprint

    @property
    def key_id(self) -> str | None:
        """The API key that asks; None where the service is open."""
        return None if self._caller == ANONYMOUS else self._caller

    def of(self, content_sha256: str) -> Idempotency:
        """The same for a body that was streamed, and is known by its digest."""
        digest = hashlib.sha256(f"{self._fingerprint}\n{content_sha256}".encode())
        return Idempotency(self._caller, self._key, digest.hexdigest())

    def run(
        self,
        db: Database,
        made: type[Made],
        work: Callable[[Transaction], Made],
        *,
        shown_once: str | None = None,
    ) -> Made:
        """Do the work in one transaction, or answer as the first time.

        Args:
            db: where the answer is kept.
            made: what the answer is.
            work: makes it.
            shown_once: the field of the answer that must not be kept; there is no second answer then.

        Raises:
            Conflict: the key came with another body before, or the answer held a secret.
        """
        with db.write() as tx:
            if self._key is None:
                return work(tx)
            record = self._taken(tx)
            if record is not None:
                answer = work(tx)
                left_out = None if shown_once is None else {shown_once}
                record.response = answer.model_dump(mode="json", exclude_none=True, exclude=left_out)
                return answer
            first = tx.session.get_one(IdempotencyRecord, (self._caller, self._key))
            if first.fingerprint != self._fingerprint:
                raise Conflict(
                    "this Idempotency-Key was used for another request; choose a new one",
                    code="idempotency_key_reused",
                )
            if shown_once is not None:
                raise Conflict(
                    f"this was done before, for {first.response['id']}, and only the first answer showed "
                    f"the {shown_once}; to get another one, rotate that key with a new Idempotency-Key",
                    code="answered_once",
                )
            return made.model_validate(first.response)

    def _taken(self, tx: Transaction) -> IdempotencyRecord | None:
        """Take the key; a second request waits here for the first one's end, and takes it if that failed.

        Returns:
            the record to write the answer to; None if the key was used before.
        """
        record = IdempotencyRecord(
            caller=self._caller, key=self._key, fingerprint=self._fingerprint, response={}, created_at=tx.now
        )
        try:
            with tx.session.begin_nested():
                tx.session.add(record)
        except IntegrityError:
            return None
        return record


IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=255,
        description="Repeat a request with the same key and body, and it is done once.",
    ),
]


NOT_IDEMPOTENT = Idempotency(ANONYMOUS, None, "")
"""For what cannot be asked twice by mistake: a command, and no request."""


async def _once(request: Request, idempotency_key: IdempotencyKey = None) -> Idempotency:
    digest = hashlib.sha256(_place(request))
    if idempotency_key is not None:
        digest.update(await request.body())
    return Idempotency(_caller(request), idempotency_key, digest.hexdigest())


async def _streamed_once(request: Request, idempotency_key: IdempotencyKey = None) -> Idempotency:
    return Idempotency(_caller(request), idempotency_key, hashlib.sha256(_place(request)).hexdigest())


def _place(request: Request) -> bytes:
    return f"{request.method} {request.url.path}\n".encode()


def _caller(request: Request) -> str:
    caller: str | None = getattr(request.state, "key_id", None)
    return caller or ANONYMOUS


IdempotencyHeader = Annotated[Idempotency, Depends(_once)]
"""For a body in memory."""

StreamedIdempotencyHeader = Annotated[Idempotency, Depends(_streamed_once)]
"""For a body that is streamed: ``Idempotency.of`` its digest, once it has been read."""
