"""Find the texts of a message to which the explanation of a decision refers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from models.mail import MailDocument
from models.mail.fields import FieldName


def texts_of_explanation(mail: MailDocument, explanation: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return the fields of a message in which explained terms occur, in which the offsets count.

    Args:
        mail: the message.
        explanation: explanations as JSON values, as a decision stores them.
    """
    used = {
        occurrence["field"]
        for item in explanation
        for term in item["terms"]
        for occurrence in term.get("occurrences", ())
    }
    texts = {name: mail.field_text(name) for name in get_args(FieldName) if name in used}
    if "text" in used:  # the version was trained on texts
        texts["text"] = mail.learning_text()
    return texts
