"""Mail: from raw bytes, or from the parts a client gives, to the document that a learner sees."""

from models.mail.document import MAIL_VERSION, MailDocument
from models.mail.reading import read_email, read_message
from models.mail.source import Email

__all__ = ["MAIL_VERSION", "Email", "MailDocument", "read_email", "read_message"]
