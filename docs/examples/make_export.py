"""Write the messages of the demo as another program exports them, to try the tutorials without own mail.

- ``folders sorted``: one folder of .eml files for each department
- ``gmail takeout.zip``: Google Takeout, a mailbox whose messages have the field X-Gmail-Labels
- ``zammad tickets.json``: tickets of Zammad's API, each with its first article
- ``jira issues.csv``: Jira's export as CSV, with a column for each label

    python docs/examples/make_export.py gmail takeout.zip
"""

from __future__ import annotations

import argparse
import csv
import json
import mailbox
import tempfile
import zipfile
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path
from typing import Any

Record = dict[str, Any]

BEGIN = datetime(2026, 3, 2, 8, tzinfo=UTC)
"""The date of the first message; one message arrives in an hour."""


def to_message(record: Record, number: int) -> EmailMessage:
    """Return a record as a message."""
    parts = record["email"]
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = parts["from"], parts["to"], parts["subject"]
    message["Date"] = format_datetime(BEGIN + timedelta(hours=number))
    message["Message-ID"] = f"<{record['id']}@example.com>"
    message.set_content(parts["text"])
    return message


def folders(records: list[Record], target: Path) -> None:
    """Write one folder for each label, and messages without a label beside the folders."""
    for number, record in enumerate(records):
        content = bytes(to_message(record, number))
        for folder in record["labels"] or ["."]:
            path = target / folder / f"{record['id']}.eml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def gmail(records: list[Record], target: Path) -> None:
    """Write a zip of Google Takeout: a field of each message has its labels and those of Gmail itself."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mail.mbox"
        box = mailbox.mbox(path)
        for number, record in enumerate(records):
            message = to_message(record, number)
            own = ["Inbox", "Opened"] if number % 3 else ["Inbox", "Important", "Unread"]
            message["X-Gmail-Labels"] = ",".join([*own, *record["labels"]])
            box.add(message)
        box.close()
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(path, "Takeout/Mail/All mail Including Spam and Trash.mbox")


def zammad(records: list[Record], target: Path) -> None:
    """Write a list of tickets: the group is the first department, and the others are tags."""
    tickets = [
        {
            "id": number,
            "number": str(24000 + number),
            "title": record["email"]["subject"],
            "group": record["labels"][0] if record["labels"] else "Users",
            "tags": record["labels"][1:],
            "state": "closed",
            "article": {"from": record["email"]["from"], "body": record["email"]["text"]},
        }
        for number, record in enumerate(records, start=1)
    ]
    target.write_text(json.dumps(tickets, ensure_ascii=False, indent=1), encoding="utf-8")


def jira(records: list[Record], target: Path) -> None:
    """Write a table in which the column Labels is repeated as often as an issue has labels."""
    width = max(len(record["labels"]) for record in records)
    with target.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream)
        table.writerow(["Summary", "Issue key", "Status", *["Labels"] * width, "Description"])
        for number, record in enumerate(records, start=1):
            labels = record["labels"] + [""] * (width - len(record["labels"]))
            parts = record["email"]
            table.writerow([parts["subject"], f"HELP-{number}", "Done", *labels, parts["text"]])


FORMATS = {"folders": folders, "gmail": gmail, "zammad": zammad, "jira": jira}


def main() -> None:
    """Write the export."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("format", choices=FORMATS)
    parser.add_argument("target", type=Path)
    parser.add_argument("--messages", type=Path, default=Path("app/demo/messages.jsonl"))
    options = parser.parse_args()
    lines = options.messages.read_text(encoding="utf-8").splitlines()
    FORMATS[options.format]([json.loads(line) for line in lines], options.target)


if __name__ == "__main__":
    main()
