"""Formats a document for display, for ``covey mail inspect``."""

from __future__ import annotations

from models.mail.document import MailDocument

_MAX_CHARS = 4000


def describe(document: MailDocument) -> str:
    """Return the fields and texts of a document as ``covey mail inspect`` prints them.

    >>> document = MailDocument(subject="Invoice", new_text="It is wrong.", attachments=(("a.pdf", "x/y"),))
    >>> print(describe(document))
    subject       Invoice
    from          -
    to            -
    automated     no
    attachments   a.pdf (x/y)
    <BLANKLINE>
    new text, weight 1
      It is wrong.
    """
    fields = [
        ("subject", document.subject),
        ("from", document.sender_domain),
        ("to", ", ".join(document.recipient_domains)),
        ("automated", "yes; do not reply automatically" if document.automated else "no"),
        ("mailing list", document.mailing_list),
        ("language", document.language),
        ("message id", document.message_id),
        ("body digest", document.body_digest),
        ("attachments", ", ".join(f"{name or '(no name)'} ({kind})" for name, kind in document.attachments)),
        ("defects", "; ".join(document.defects)),
        ("truncated", "yes; see the defects" if document.truncated else ""),
    ]
    always = {"subject", "from", "to"}
    lines = [f"{name:<14}{value or '-'}" for name, value in fields if value or name in always]
    titles = {"new_text": "new text", "quoted_text": "quoted text"}
    for text, weight, field, _ in document.learning_parts():
        if field in titles:
            shown = text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]} … ({len(text)} characters)"
            lines += [
                "",
                f"{titles[field]}, weight {weight:g}",
                *(f"  {line}".rstrip() for line in shown.split("\n")),
            ]
    return "\n".join(lines)
