"""Reads e-mails: from a raw message, or from its parts, to the document that a learner uses.

Where to look:

- ``reader``: :func:`read_message` and :func:`read_email`. ``email``: the input. ``document``: the result.
- ``mime``: the parts of a message. ``headers``: header fields. ``charsets``: bytes to text.
- ``html_text``: HTML to text. ``quoting``: new and quoted text. ``language``: language detection.
- ``limits``: how much of a message is read. ``diagnostics``: defects of a message.
- ``inspect``: the output of ``covey mail inspect``.
"""

from models.mail.document import MAIL_VERSION, MailDocument
from models.mail.email import Email
from models.mail.reader import read_email, read_message

__all__ = ["MAIL_VERSION", "Email", "MailDocument", "read_email", "read_message"]
