"""Prepares documents for the computation of features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from models.data.examples import Documents, FeatureRows
from models.mail import MailDocument, read_email
from models.mail.email import Email


def read_documents(documents: Documents | Sequence[MailDocument]) -> Any:
    """Parse the e-mails among some documents, and return other documents unchanged."""
    if isinstance(documents, FeatureRows):
        return documents
    return [read_email(document) if isinstance(document, Email) else document for document in documents]
