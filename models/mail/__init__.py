"""Mail: from raw bytes, or from the parts a client gives, to the document that a learner sees."""

from models.mail.document import MAIL_VERSION, MailDocument
from models.mail.email import Email
from models.mail.reader import read_email, read_message

__all__ = ["MAIL_VERSION", "Email", "MailDocument", "read_email", "read_message"]
