"""Sends a request of a page to the service, and checks that the response has the fields of the page.

    python tests/support/page_request.py REQUEST RESPONSE

Both are files: the request as HTTP, and the response as JSON, which may be shortened and rounded.
"""

from __future__ import annotations

import json
import os
import sys
from email import message_from_string
from pathlib import Path
from typing import Any

import httpx


def send(request: str) -> Any:
    """Send a request, and return the JSON of its response."""
    head, _, body = request.partition("\n\n")
    line, _, headers = head.partition("\n")
    method, target = line.split()
    url = os.environ["COVEY_URL"] + target
    response = httpx.request(
        method, url, headers=dict(message_from_string(headers)), content=body, timeout=60
    )
    if response.is_error:
        sys.exit(response.text)
    return response.json()


def differences(shown: Any, sent: Any, place: str = "") -> list[str]:
    """Return where a response differs from that of a page, whose numbers are rounded and lists shortened."""
    if isinstance(shown, dict) and isinstance(sent, dict):
        missing = [f"{place}/{name} is missing" for name in shown.keys() - sent.keys()]
        common = shown.keys() & sent.keys()
        return missing + [
            text for name in common for text in differences(shown[name], sent[name], f"{place}/{name}")
        ]
    if isinstance(shown, list) and isinstance(sent, list) and len(shown) <= len(sent):
        pairs = enumerate(zip(shown, sent, strict=False))
        return [text for index, (a, b) in pairs for text in differences(a, b, f"{place}/{index}")]
    if isinstance(shown, float) and isinstance(sent, int | float):
        digits = len(str(shown).partition(".")[2])
        return [] if abs(shown - sent) <= 10**-digits else [f"{place} is {sent}, not {shown}"]
    return [] if shown == sent else [f"{place} is {sent!r}, not {shown!r}"]


if __name__ == "__main__":
    request_file, response_file = map(Path, sys.argv[1:])
    sent = send(request_file.read_text("utf-8"))
    sys.exit("\n".join(differences(json.loads(response_file.read_text("utf-8")), sent)) or None)
