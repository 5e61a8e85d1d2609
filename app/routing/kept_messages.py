"""Keep routed messages as files in the storage, compressed and, if there is a key, encrypted.

A file is written before the row of its decision, so a kept message is never missing. If the decision is not
recorded then, for example because another process has recorded one on the same message, retention deletes the
file. A message is routed even if its file cannot be written: the decision then says so.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias

import structlog
import zstandard
from pydantic import ValidationError

from app.api.json_body import parse
from app.context import AppContext
from app.db import tables
from app.errors import FileDamaged, NotReady, ServiceError
from app.routing.message_cipher import DamagedError, MessageCipher, UnknownKeyError
from app.routing.schemas import Decision, KeepMessages, MessageParts, RouterPut
from app.serving.instances import json_email
from app.settings import MIB, Settings
from app.threads import STORAGE
from models.mail.email import Email

log = structlog.get_logger()

FOLDER = "messages"
"""Folder of the storage. It has a folder for each day."""

MediaType: TypeAlias = Literal["message/rfc822", "application/json"]

MAX_KEPT_BYTES = 10 * MIB
"""Maximum size of a message that is kept. Longer messages are only routed."""

WRITE_SECONDS = 5.0
"""How long a message waits for its file. A slow storage must not hold up the mail."""

RETRY_SECONDS = 30.0
"""Time after a slow write in which messages are routed without being kept."""

_MAGIC: dict[bytes, MediaType] = {b"CM1r": "message/rfc822", b"CM1j": "application/json"}
_PLAIN, _ENCRYPTED = b"p", b"e"
_ENCRYPTED_SUFFIX = ".aes"
"""The end of the keys of encrypted files. The row of a decision has the key, so a program that can only write
to the storage cannot replace an encrypted message by one that is not."""
_LEVEL = 3
_MAX_FILE_BYTES = MAX_KEPT_BYTES + MIB
"""A file is longer than its message only by a few bytes, so a longer one is damaged."""


@dataclass(frozen=True, slots=True)
class OriginalMessage:
    """A message as a client sent it.

    Attributes:
        media_type: whether it is a raw message, or the JSON body of ``MessageParts``.
        content: the bytes.
        truncated: whether the message is longer, and these are its first bytes.
    """

    media_type: MediaType
    content: bytes
    truncated: bool = False

    def to_email(self) -> Email:
        """Return the message as an e-mail of a data set."""
        if self.media_type == "message/rfc822":
            return Email(raw=self.content)
        message = MessageParts.model_validate(
            parse(self.content, replace_surrogates=True, documents=MessageParts.documents)
        )
        return json_email(message.email, message.raw_email)

    def as_raw(self) -> OriginalMessage:
        """Return the raw message if there is one, for example in a JSON body; the same message otherwise."""
        raw = self.to_email().raw
        return self if raw is None else OriginalMessage("message/rfc822", raw)


@dataclass(frozen=True, slots=True)
class ArchiveResult:
    """The result of writing a message that the router keeps: its file, or why there is none.

    Attributes:
        key: key of its file; None if it is not kept.
        until: when the file is deleted; None if it is not kept.
        reason: why it is not kept; None if it is.
    """

    key: str | None = None
    until: datetime | None = None
    reason: str | None = None


def is_kept(keep: KeepMessages, decision: Decision) -> bool:
    """Return whether a router keeps the message of a decision."""
    if keep == "review":
        return decision.disposition != "routed" or decision.sampled
    return keep == "all"


class MessageArchive:
    """Writer of the files of one process. It belongs to the event loop.

    Args:
        ctx: the application context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx
        self._cipher = _cipher(ctx.settings)
        self._slow_until = 0.0
        self._late: set[asyncio.Task[None]] = set()

    async def write(
        self, decision_id: str, config: RouterPut, message: OriginalMessage | None
    ) -> ArchiveResult:
        """Write the file of a message. Never raises an error, and waits ``WRITE_SECONDS`` at most.

        Args:
            decision_id: id of the decision on the message.
            config: the router.
            message: the message; None if the caller does not have it.
        """
        if message is None:
            return ArchiveResult(reason="the original message is not available")
        if message.truncated or len(message.content) > MAX_KEPT_BYTES:
            return ArchiveResult(reason=f"the message is longer than {MAX_KEPT_BYTES:,} bytes")
        if time.monotonic() < self._slow_until:
            return ArchiveResult(reason="the storage is slow")
        now = datetime.now(UTC)
        suffix = _ENCRYPTED_SUFFIX if self._cipher is not None else ""
        key = f"{FOLDER}/{now.date()}/{decision_id}.zst{suffix}"
        writing = asyncio.create_task(STORAGE.run(self._write_file, key, message))
        self._late.add(writing)
        writing.add_done_callback(self._late.discard)
        try:
            await asyncio.wait_for(asyncio.shield(writing), WRITE_SECONDS)
        except TimeoutError:
            # If the thread ends, retention deletes the file.
            self._slow_until = time.monotonic() + RETRY_SECONDS
            writing.add_done_callback(lambda task: task.cancelled() or task.exception())
            return self._not_kept(decision_id, "the storage is slow")
        except (OSError, NotReady):
            return self._not_kept(decision_id, "the storage is unavailable")
        except Exception:
            # The routing must not depend on the copy, whatever is wrong with it.
            log.exception("routing.keeping_failed", decision_id=decision_id)
            return ArchiveResult(reason="an internal error")
        return ArchiveResult(key, now + timedelta(days=config.keep_days))

    def _not_kept(self, decision_id: str, reason: str) -> ArchiveResult:
        log.error("routing.message_not_kept", decision_id=decision_id, reason=reason)
        return ArchiveResult(reason=reason)

    def _write_file(self, key: str, message: OriginalMessage) -> None:
        content = pack(message, key, self._cipher)
        with self._ctx.storage.create(key) as file:
            file.write(content)


def read(ctx: AppContext, decision: tables.Decision) -> OriginalMessage | None:
    """Return the kept message of a decision; None if it is not kept. No session may be open.

    Raises:
        NotReady: it is encrypted, and ``COVEY_ENCRYPTION_KEY`` does not contain the key.
        FileDamaged: the file is damaged.
        MissingFileError: the file is missing.
        StorageUnavailableError: the storage is unavailable.
    """
    key = decision.kept_message
    if key is None:
        return None
    with ctx.storage.local(key).open("rb") as file:
        content = file.read(_MAX_FILE_BYTES + 1)
    try:
        return unpack(content, key, _cipher(ctx.settings))
    except UnknownKeyError as error:
        raise NotReady(
            "the message is encrypted with a key that this process does not have; the administrator must add "
            "the key to COVEY_ENCRYPTION_KEY",
            code="encryption_key_missing",
            retry_after=60,
        ) from error
    except DamagedError as error:
        raise FileDamaged(f"the message of decision {decision.id}") from error


def read_email(ctx: AppContext, decision: tables.Decision) -> Email | None:
    """Return the kept message of a decision as an e-mail of a data set; see ``read``."""
    message = read(ctx, decision)
    try:
        return None if message is None else message.to_email()
    except (ServiceError, ValidationError) as error:  # it is no message
        raise FileDamaged(f"the message of decision {decision.id}") from error


def pack(message: OriginalMessage, key: str, cipher: MessageCipher | None) -> bytes:
    """Return the content of a file: what it is, whether it is encrypted, and the compressed message."""
    magic = next(magic for magic, media_type in _MAGIC.items() if media_type == message.media_type)
    compressed = zstandard.ZstdCompressor(level=_LEVEL).compress(message.content)
    if cipher is None:
        return magic + _PLAIN + compressed
    return magic + _ENCRYPTED + cipher.encrypt(compressed, key)


def unpack(content: bytes, key: str, cipher: MessageCipher | None) -> OriginalMessage:
    """Return the message in a file.

    Raises:
        UnknownKeyError: the key of the encryption is not known.
        DamagedError: the file is damaged, or should be encrypted.
    """
    media_type = _MAGIC.get(content[:4])
    if media_type is None or content[4:5] not in (_PLAIN, _ENCRYPTED) or len(content) > _MAX_FILE_BYTES:
        raise DamagedError
    if content[4:5] == _PLAIN and key.endswith(_ENCRYPTED_SUFFIX):
        raise DamagedError
    compressed = content[5:]
    if content[4:5] == _ENCRYPTED:
        if cipher is None:
            raise UnknownKeyError
        compressed = cipher.decrypt(compressed, key)
    try:
        if not 0 <= zstandard.frame_content_size(compressed) <= MAX_KEPT_BYTES:
            raise DamagedError
        return OriginalMessage(media_type, zstandard.ZstdDecompressor().decompress(compressed))
    except zstandard.ZstdError as error:
        raise DamagedError from error


def _cipher(settings: Settings) -> MessageCipher | None:
    keys = settings.encryption_keys()
    return MessageCipher(keys) if keys else None
