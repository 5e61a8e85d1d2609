"""Measure the processor time that the mail reader takes for a message, by kind of message.

    python benchmarks/mail_reader.py [--kind KIND] [--messages N] [--repeat N]
    python benchmarks/mail_reader.py --against ../covey-before

The second command reads the same messages with this checkout and with another one, in alternation, and prints
the ratio of the medians.

The kinds are built from real texts (SpamAssassin's mailing lists and 20 Newsgroups), with the headers of a
message that passed three servers. Of these, messages of 4 to 6 kB are measured, so that figures of different
kinds are comparable (an attachment of 60 kB comes on top):

- plain: text/plain.
- quoted-printable: the same with some letters outside ASCII, also in the subject (an encoded word).
- alternative: multipart/alternative with text and HTML. attachment: a text and a PDF in base64.
- html: text/html only.
- corpus: the messages of difficult kinds in the test folders of mail libraries, of every size.

Figures are microseconds of processor time for each message: the minimum over the repeats, then the median and
the 99th percentile over the messages. "learning parts" is the time for :meth:`MailDocument.learning_parts`.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import html
import json
import os
import quopri
import sys
import time
from collections.abc import Callable, Iterator
from email.header import Header
from pathlib import Path
from zlib import crc32

import numpy as np

from benchmarks.checkouts import HERE, run_in
from models.mail import read_message

DATA = Path(os.environ.get("COVEY_DATA", Path(__file__).parents[2] / "shared" / "data"))
MIN_BYTES, MAX_BYTES = 4_000, 6_000

HEADERS = """\
Return-Path: <ann.lee@example.org>
Delivered-To: service@example.com
Received: from mx.example.com (mx.example.com [192.0.2.17])
\tby store.example.com (Postfix) with ESMTPS id 4WcXkQ2Zp1z9sWv
\tfor <service@example.com>; Mon, 10 Jun 2024 09:14:{second:02} +0200 (CEST)
Received: from out.example.org (out.example.org [198.51.100.9])
\t(using TLSv1.3 with cipher TLS_AES_256_GCM_SHA384 (256/256 bits))
\tby mx.example.com (Postfix) with ESMTPS id 7D5E120A3F
\tfor <service@example.com>; Mon, 10 Jun 2024 09:14:{second:02} +0200 (CEST)
Received: by out.example.org with SMTP id 5b1f17b1804b1-4218030d0besm
        for <service@example.com>; Mon, 10 Jun 2024 00:14:{second:02} -0700 (PDT)
Authentication-Results: mx.example.com; dkim=pass header.d=example.org
\theader.i=@example.org header.s=20230601 header.b=Qx1tPzKr; spf=pass
DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;
        d=example.org; s=20230601; t=1718003673; x=1718608473; darn=example.com;
        h=to:subject:message-id:date:from:in-reply-to:references:mime-version
         :from:to:cc:subject:date:message-id:reply-to;
        bh=8iM1vY3Bqk0n1qHn0cQ0o0pFZ6f6kq5oG0wV4eK0t2s=;
        b=Qx1tPzKrV0bq3tS1y6yZk2nJg9QeVfTq0b0s9w3mX7f4KpH6cYcC1nq3WmR8zq1tLh
         9p2sYb7xK3Qv5u1ZrXn8cM4eT6aJwS0kLd2HfUoGi7PpEyBqVtNxRzCmWlKjIhFgDsAaQ==
X-Google-DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=1e100.net;
        s=20230601; t=1718003673; x=1718608473; h=to:subject:message-id:date:from
X-Spam-Status: No, score=-1.9 required=5.0 tests=BAYES_00,DKIM_SIGNED,DKIM_VALID
MIME-Version: 1.0
References: <20240607101112.4471@example.com>
In-Reply-To: <20240607101112.4471@example.com>
From: Ann Lee <ann.lee@example.org>
Date: Mon, 10 Jun 2024 09:14:{second:02} +0200
Message-ID: <CAF2mVb{number:08}@mail.example.org>
Subject: {subject}
To: Service Desk <service@example.com>
Cc: "Lee, Bob" <bob@example.net>
"""
PDF = base64.encodebytes(np.random.default_rng(0).bytes(44_000)).decode("ascii")


def texts() -> Iterator[tuple[str, str]]:
    """Yield the subject and the body of each message of the corpora."""
    for name in ("spamassassin_lists", "20newsgroups"):
        with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                text: str = json.loads(line)["text"]
                separator = "\n" if name == "spamassassin_lists" else "\n\n"
                head, _, body = text.partition(separator)
                subject = head.rpartition("Subject: ")[2].partition("\n")[0]
                yield "".join(letter for letter in subject if letter.isascii() and letter.isprintable()), body


def plain(body: str) -> str:
    """Return a text part."""
    return f"Content-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\n\n{body}"


def quoted_printable(body: str) -> str:
    """Return a text part with a few letters outside ASCII."""
    encoded = quopri.encodestring(body.replace("ee", "é").encode()).decode("ascii")
    return (
        f'Content-Type: text/plain; charset="utf-8"\nContent-Transfer-Encoding: quoted-printable\n\n{encoded}'
    )


def html_only(body: str) -> str:
    """Return an HTML part of the kind that mail programs write."""
    blocks = "".join(
        f'<p class="MsoNormal" style="margin:0 0 8pt"><span lang="EN-US">{html.escape(block)}</span></p>\n'
        for block in body.split("\n\n")
    ).replace("wrote:", "<b>wrote</b>:<br>")
    return (
        "Content-Type: text/html; charset=utf-8\n\n<html><head><meta charset=utf-8>"
        f"<style>p {{ margin: 0 }}</style></head><body>{blocks}</body></html>\n"
    )


def alternative(body: str) -> str:
    """Return a multipart with a text and its HTML."""
    return multipart("alternative", plain(body), html_only(body))


def attachment(body: str) -> str:
    """Return a multipart with a text and a PDF."""
    pdf = (
        'Content-Type: application/pdf; name="invoice-2291.pdf"\nContent-Transfer-Encoding: base64\n'
        f'Content-Disposition: attachment; filename="invoice-2291.pdf"\n\n{PDF}'
    )
    return multipart("mixed", plain(body), pdf)


def multipart(subtype: str, *parts: str) -> str:
    """Return a multipart."""
    boundary = f"{crc32(parts[0].encode()):028x}"  # differs for each message, as in real mail
    inside = "".join(f"--{boundary}\n{part}\n" for part in parts)
    return f'Content-Type: multipart/{subtype}; boundary="{boundary}"\n\n{inside}--{boundary}--\n'


KINDS: dict[str, Callable[[str], str]] = {
    "plain": plain,
    "quoted-printable": quoted_printable,
    "alternative": alternative,
    "attachment": attachment,
    "html": html_only,
}


def messages(kind: str, count: int) -> list[bytes]:
    """Return messages of a kind, with line ends as on the wire."""
    if kind == "corpus":
        return [path.read_bytes() for path in sorted((DATA / "eml").glob("*/*")) if path.is_file()]
    found: list[bytes] = []
    extra = len(PDF) if kind == "attachment" else 0
    for number, (subject, body) in enumerate(texts()):
        accented = subject.replace("e", "é") if kind == "quoted-printable" else subject
        headers = HEADERS.format(subject=Header(accented).encode(), second=number % 60, number=number)
        raw = (headers + KINDS[kind](body)).replace("\n", "\r\n").encode()
        if MIN_BYTES <= len(raw) - extra * 1.02 <= MAX_BYTES:
            found.append(raw)
        if len(found) == count:
            break
    return found


def measure(raws: list[bytes], repeat: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the microseconds to read each message, and those for its learning parts."""
    reading = np.full(len(raws), np.inf)
    parts = np.full(len(raws), np.inf)
    clock = time.process_time_ns
    for _ in range(repeat):
        for number, raw in enumerate(raws):
            start = clock()
            document = read_message(raw)
            read = clock()
            document.learning_parts()
            end = clock()
            reading[number] = min(reading[number], read - start)
            parts[number] = min(parts[number], end - read)
    return reading / 1e3, parts / 1e3


def compare(kind: str, other: Path, arguments: argparse.Namespace) -> None:
    """Print the medians of both checkouts over three readings in alternation."""
    options = ["--measure", kind, "--messages", str(arguments.messages), "--repeat", str(arguments.repeat)]
    sides: dict[Path, list[float]] = {HERE: [], other: []}
    for number in range(3):
        for checkout in list(sides)[:: 1 if number % 2 else -1]:
            sides[checkout].append(run_in(checkout, __file__, *options))
    here, there = (float(np.median(side)) for side in sides.values())
    print(f"{kind:<18}{here:>9.1f}{there:>9.1f}{here / there:>7.2f}", flush=True)


def main() -> None:
    """Print a line for each kind of message."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kind", choices=[*KINDS, "corpus"], action="append")
    parser.add_argument("--messages", type=int, default=400)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--against", type=Path, help="another checkout to compare with")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    kinds = arguments.kind or [*KINDS, "corpus"]
    if arguments.measure:
        raws = messages(arguments.measure, arguments.messages)
        json.dump(float(np.median(measure(raws, arguments.repeat)[0])), sys.stdout)
        return
    if arguments.against:
        print(f"{'kind':<18}{'µs p50':>9}{'other':>9}{'ratio':>7}")
        for kind in kinds:
            compare(kind, arguments.against, arguments)
        return
    print(f"{'kind':<18}{'messages':>9}{'kB':>7}{'µs p50':>9}{'p99':>9}{'MB/s':>7}{'learning parts':>16}")
    for kind in kinds:
        raws = messages(kind, arguments.messages)
        reading, parts = measure(raws, arguments.repeat)
        n_bytes = sum(map(len, raws))
        print(
            f"{kind:<18}{len(raws):>9}{n_bytes / len(raws) / 1e3:>7.1f}{np.median(reading):>9.1f}"
            f"{np.percentile(reading, 99):>9.1f}{n_bytes / reading.sum():>7.1f}{np.median(parts):>16.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
