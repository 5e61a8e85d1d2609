"""Read the texts of a kept message, in which the deciding words are highlighted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.context import AppContext
from app.routing import decisions
from app.routing.explained_texts import texts_of_explanation
from app.routing.schemas import RecordedDecision
from models.mail import read_email

MAX_CHARACTERS = 20_000
"""Number of characters of each text on a page."""

TITLES = {
    "subject": "Subject",
    "text": "Text",
    "new_text": "Text",
    "quoted_text": "Quoted text",
    "attachment_names": "Attachments",
    "sender_domain": "Domain of the sender",
    "recipients": "Recipients",
    "list_id": "Mailing list",
    "attachment_types": "Types of attachments",
}
"""Names of the texts, in their order on a page."""


@dataclass(frozen=True)
class KeptTexts:
    """The texts of a kept message.

    Attributes:
        sender: address of the author; None if it is unknown.
        texts: the texts by field.
        problem: why the message cannot be read; None if it can.
    """

    sender: str | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None


def kept_texts(ctx: AppContext, decision: RecordedDecision) -> KeptTexts:
    """Read the kept message of a decision. No session may be open.

    Raises:
        NotFound: the message is not kept any longer.
        NotReady: it is encrypted, and the service does not have the key.
        FileDamaged: its file is damaged.
        MissingFileError: its file is missing.
        StorageUnavailableError: the storage is unavailable.
    """
    mail = read_email(decisions.get_message(ctx, decision.decision_id).to_email())
    explanation = [] if decision.explanation is None else decision.explanation
    texts = texts_of_explanation(mail, [item.model_dump(exclude_none=True) for item in explanation])
    if "text" not in texts:  # the version reads fields
        usual = {
            name: mail.field_text(name) for name in ("subject", "new_text", "quoted_text", "attachment_names")
        }
        texts = {**usual, **texts}
    ordered = {name: texts[name][:MAX_CHARACTERS] for name in TITLES if texts.get(name)}
    return KeptTexts(sender=mail.sender, texts=ordered)
