"""Recognizes the senders of bounces: mail servers, which should get no reply (RFC 5230, section 4.6)."""

from __future__ import annotations

import re
from typing import Final

_WORDS: Final = (
    r"(?:mailer[-_.]?daemon|mail[-_.]?daemon|mdaemon|postmaster|mail[-_.]?delivery(?:[-_.]?(?:sub)?system)?"
    r"|microsoftexchange[0-9a-f]{8,40})"
)
_MAILBOX = re.compile(rf"(?:^|[<\s\"'(:]){_WORDS}@|(?:^|[<\"']){_WORDS}(?:[>\"']| \(|$)")
"""The part of an address before the ``@``, or the whole address of a mail server."""
_NAME = re.compile(r"(?:internet )?mail ?delivery(?: (?:sub)?system| service| agent| failed)?")
"""The name of such a sender. Names that only contain it can be those of couriers."""
_NAMES: Final = (
    "mail delivery system", "mail delivery subsystem", "delivery subsystem", "mail system error",
    "mailzustell", "mail-zustell", "zustellsystem",
    "système de distribution", "sous-système de livraison", "remise du courrier",
    "sistema de entrega", "subsistema de entrega", "entrega de correo", "entrega de e-mail",
    "sistema di consegna", "consegna della posta", "mailbezorg", "postbezorg",
    "system dostarczania poczty", "доставки почты", "доставки сообщений",
    "邮件投递", "郵件投遞", "郵件傳遞", "邮件系统", "メール配信システム", "메일 전송 시스템",
)  # fmt: skip
"""Parts of the names of such senders, in lower case."""

_HINTS: Final = (
    "daemon", "master", "deliver", "exchange", "system", "zustell", "entrega", "consegna", "bezorg", "remise"
)  # fmt: skip
"""What each pattern and name without other letters than those of ASCII contains."""


def is_mail_system(sender: str) -> bool:
    """Return whether the field From, decoded, names a mail server.

    >>> is_mail_system("Mail Delivery System <MAILER-DAEMON@example.org>"), is_mail_system("Ann <a@b.c>")
    (True, False)
    """
    sender = sender.casefold()
    if sender.isascii() and not any(map(sender.__contains__, _HINTS)):  # most senders
        return False
    if _MAILBOX.search(sender):
        return True
    name = sender.partition("<")[0].strip(' "')
    return _NAME.fullmatch(name) is not None or any(part in name for part in _NAMES)
