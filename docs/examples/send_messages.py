"""Send messages of a JSON Lines file to a mail server by SMTP.

Each message gets a Message-ID from its id, so that its right labels can be looked up later:

    python docs/examples/send_messages.py later.jsonl --server 127.0.0.1:25 --to office@example.org
"""

from __future__ import annotations

import argparse
import json
import smtplib
from email.message import EmailMessage
from pathlib import Path
from typing import Any


def to_message(record: dict[str, Any], recipient: str) -> EmailMessage:
    """Return the message of a record."""
    parts = record["email"]
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = parts["from"], recipient, parts["subject"]
    message["Message-ID"] = f"<{record['id']}@example.com>"
    message.set_content(parts["text"])
    return message


def main() -> None:
    """Send every message of the file over one connection."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--server", default="127.0.0.1:25", help="host and port of the mail server")
    parser.add_argument("--to", default="office@example.org", help="the recipient")
    options = parser.parse_args()
    host, _, port = options.server.rpartition(":")
    with smtplib.SMTP(host, int(port)) as server, options.file.open(encoding="utf-8") as lines:
        for line in lines:
            server.send_message(to_message(json.loads(line), options.to))


if __name__ == "__main__":
    main()
