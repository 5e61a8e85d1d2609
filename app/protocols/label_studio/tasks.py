"""Convert tasks of Label Studio to documents.

The labeling configuration names the field with the text. If a task also has the fields of an e-mail, such as
``subject`` and ``from``, or a whole message in ``raw_email``, then the document is this e-mail.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from app.datasets.schemas import EmailParts
from app.errors import Invalid
from app.protocols.label_studio.label_config import LabelConfig
from app.protocols.label_studio.schemas import Task
from app.routing.kept_messages import OriginalMessage
from app.routing.raw_messages import read_raw
from app.serving.instances import read_json_email
from app.serving.schemas import Instance
from models.data.record import json_pointer
from models.mail import MailDocument

RAW_EMAIL: Final = "raw_email"
PARTS: Final = ("subject", "from", "to", "html", "list_id")
"""Fields of a task that are parts of an e-mail, in addition to its text."""

UNDEFINED: Final = "$undefined$"
"""The field of tasks that were imported as lines of text."""


@dataclass(frozen=True)
class TaskMessage:
    """The message of a task.

    Attributes:
        original: the message, as if a client had sent it to the router.
        read: reads it.
    """

    original: OriginalMessage
    read: Callable[[], MailDocument]


def to_instance(task: Task, config: LabelConfig, pointer: str, *, reads_email: bool) -> Instance:
    """Convert a task to an instance of a prediction.

    Args:
        task: the task.
        config: the labeling configuration.
        pointer: place of the task in the request.
        reads_email: whether the version was trained on e-mail; otherwise only the text counts.

    Raises:
        Invalid: the task has no text.
    """
    if reads_email and (raw := _raw(task, pointer)) is not None:
        return Instance(raw_email=raw)
    parts = _parts(task, config, pointer, others=reads_email)
    if parts.keys() == {"text"}:
        return Instance(text=parts["text"])
    return Instance(email=EmailParts.model_validate(parts))


def to_message(task: Task, config: LabelConfig, pointer: str, max_bytes: int) -> TaskMessage:
    """Convert a task to a message for a router.

    Args:
        task: the task.
        config: the labeling configuration.
        pointer: place of the task in the request.
        max_bytes: maximum size of a raw message; the rest is cut off.

    Raises:
        Invalid: the task has no text, or its raw message is not base64.
    """
    if (raw := _raw(task, pointer)) is not None:
        try:
            content = base64.b64decode(raw, validate=True)
        except (binascii.Error, ValueError) as error:
            raise _invalid(f"{pointer}/data/{RAW_EMAIL}", "is not valid base64") from error
        truncated = len(content) > max_bytes
        original = OriginalMessage("message/rfc822", content[:max_bytes], truncated)
        return TaskMessage(original, lambda: read_raw(original.content, truncated))
    parts = _parts(task, config, pointer, others=True)
    email = EmailParts.model_validate(parts)
    body = json.dumps({"email": parts}, ensure_ascii=False).encode()
    return TaskMessage(OriginalMessage("application/json", body), lambda: read_json_email(email, None))


def _parts(task: Task, config: LabelConfig, pointer: str, *, others: bool) -> dict[str, str]:
    """Return the text, and other parts of an e-mail if they are wanted and the task has them."""
    text = task.data.get(config.field, task.data.get(UNDEFINED))
    if not isinstance(text, str):
        place = json_pointer(config.field)
        message = "the task has no text in the field that the labeling configuration names"
        raise _invalid(f"{pointer}/data{place}", message)
    parts = {name: _text(task.data.get(name)) for name in PARTS} if others else {}
    parts["html" if config.is_html else "text"] = text
    return {name: value for name, value in parts.items() if value or name == "text"}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _raw(task: Task, pointer: str) -> str | None:
    raw = task.data.get(RAW_EMAIL)
    if raw is not None and not isinstance(raw, str):
        raise _invalid(f"{pointer}/data/{RAW_EMAIL}", "must be the message in base64")
    return raw


def _invalid(pointer: str, message: str) -> Invalid:
    return Invalid(f"{pointer}: {message}", errors=[(pointer, message)])
