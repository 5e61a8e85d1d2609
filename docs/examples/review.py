"""Play the team that reviews messages: submit the right labels of every decision in the review queue.

The right labels are those of a JSON Lines file whose messages ``send_messages.py`` has sent:

    python docs/examples/review.py later.jsonl --router frontdesk
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen


def call(url: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Send a request, a POST if it has a body, and return the response."""
    request = Request(url, headers={"Content-Type": "application/json"})  # noqa: S310 - the user's own service
    data = None if body is None else json.dumps(body).encode()
    with urlopen(request, data) as response:  # noqa: S310
        content: dict[str, Any] = json.load(response)
        return content


def main() -> None:
    """Review until no message waits, and print how many decisions were right."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--url", default="http://127.0.0.1:8000/v1", help="base URL of the API")
    parser.add_argument("--router", default="frontdesk")
    parser.add_argument("--disposition", help="routed: review these instead of the queue")
    options = parser.parse_args()
    records = [json.loads(line) for line in options.file.read_text(encoding="utf-8").splitlines()]
    right = {f"{record['id']}@example.com": record["labels"] for record in records}
    queue = {"disposition": options.disposition} if options.disposition else {"review": "any"}
    query = {**queue, "feedback": "none"}
    n_reviewed = n_right = 0
    while True:
        page = call(f"{options.url}/routers/{options.router}/decisions?{urlencode(query)}")
        for decision in page["items"]:
            labels = right[decision["message"]["message_id"]]
            call(f"{options.url}/decisions/{decision['decision_id']}/feedback", {"labels": labels})
            n_reviewed += 1
            n_right += set(labels) == {department["label"] for department in decision["departments"]}
        if "next_cursor" not in page:
            break
        query["cursor"] = page["next_cursor"]
    print(f"reviewed {n_reviewed} messages; {n_right} decisions were right")


if __name__ == "__main__":
    main()
