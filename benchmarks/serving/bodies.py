"""The bodies of the requests: texts and messages made of stories of Reuters-21578."""

from __future__ import annotations

import asyncio
import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.corpora import records

CORPUS = "reuters21578"

TEXT_CHARACTERS = range(700, 900)
"""Lengths of the stories that predictions use: 800 characters on average."""

MESSAGE_BYTES = 5_000
MESSAGES = 256

PLACEHOLDER = b"@" * 24
"""Part of a body that each request replaces by an id of its own."""

_HEADERS = """\
Return-Path: <newsdesk@example.net>
Received: from relay.example.net (relay.example.net [192.0.2.17])
 by mx.example.org (Postfix) with ESMTPS id 4XyQ2k0pZtz9sVb
 for <frontdesk@example.org>; Thu, 26 Feb 1987 15:01:02 +0000 (UTC)
Date: Thu, 26 Feb 1987 15:01:01 +0000
From: Newsdesk <newsdesk@example.net>
To: Front Desk <frontdesk@example.org>
Subject: {subject}
Message-ID: <{id}@example.net>
MIME-Version: 1.0
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: 8bit

"""


@dataclass(frozen=True)
class Bodies:
    """Bodies of requests of one kind.

    Attributes:
        media_type: their media type.
        contents: the bodies; requests use them in turn.
    """

    media_type: str
    contents: Sequence[bytes]

    def write(self, path: Path) -> None:
        """Write the bodies as ``requests.lua`` and ``open_loop.py`` read them."""
        path.write_bytes(b"".join(b"%d\n%s" % (len(content), content) for content in self.contents))


def read_bodies(path: Path) -> list[bytes]:
    """Read the bodies that :meth:`Bodies.write` has written."""
    content, place, bodies = path.read_bytes(), 0, []
    while place < len(content):
        end = content.index(b"\n", place)
        size = int(content[place:end])
        bodies.append(content[end + 1 : end + 1 + size])
        place = end + 1 + size
    return bodies


def raw_request(url: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """Return the bytes of a whole request."""
    parts = urlsplit(url)
    fields = {"Host": parts.netloc, **headers, "Content-Length": str(len(body))}
    lines = [f"POST {parts.path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> tuple[int, bytes]:
    """Send a request over an open connection, and return the status and the body of the response.

    Raises:
        OSError: the connection was closed; or ``asyncio.IncompleteReadError``.
    """
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    return int(head[9:12]), await reader.readexactly(int(length[1])) if length else b""


def stories() -> list[str]:
    """Return the texts of the corpus, in the order of the file."""
    return [row["text"] for row in records(CORPUS)]


def short_texts(texts: Sequence[str]) -> list[str]:
    """Return the texts of about 800 characters."""
    return [text for text in texts if len(text) in TEXT_CHARACTERS]


def predictions(texts: Sequence[str], top: int | None = None) -> Bodies:
    """Return requests that predict one text each."""
    limit = {} if top is None else {"top": top}
    return Bodies(
        "application/json",
        [json.dumps({"instances": [{"text": text}], **limit}).encode() for text in texts],
    )


def messages(texts: Sequence[str]) -> Bodies:
    """Return raw messages of 5,000 bytes: header fields, and a text of several stories."""
    contents: list[bytes] = []
    place = 0
    while len(contents) < MESSAGES:
        story = texts[place % len(texts)]
        content = _HEADERS.format(subject=story.splitlines()[0], id=PLACEHOLDER.decode()).encode()
        while len(content) < MESSAGE_BYTES:
            text = "\n".join(textwrap.fill(line, 76) for line in texts[place % len(texts)].splitlines())
            content += text.encode() + b"\n\n"
            place += 1
        contents.append(content.replace(b"\n", b"\r\n")[:MESSAGE_BYTES])
    return Bodies("message/rfc822", contents)
