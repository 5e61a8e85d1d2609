"""Measure the reading of files and of mail.

    python -m benchmarks.readers files [--mib 64] [--kind jsonl]
    python -m benchmarks.readers mail [--kind plain] [--messages 400] [--repeat 5]
    python -m benchmarks.readers files|mail --against ../covey-before

``files`` writes files of random sentences (or numeric features) in every format, and prints time and memory
to read each of them; the reader of JSON Lines is compared with ``pyarrow.json``. Each reader runs in its own
process, so that its peak memory can be measured.

``mail`` prints the processor time of the mail reader for a message, by kind. The kinds are built from real
texts (SpamAssassin's mailing lists and 20 Newsgroups), with the headers of a message that passed three
servers. Of these, messages of 4 to 6 kB are measured, so that figures of different kinds are comparable (an
attachment of 60 kB comes on top); "corpus" are the messages of difficult kinds in the test folders of mail
libraries, of every size. Figures are microseconds for each message: the minimum over the repeats, then the
median and the 99th percentile over the messages. "learning parts" is the time for
:meth:`MailDocument.learning_parts`.

``--against`` reads the same with this checkout and with another one in turns, and prints the medians (CPU
seconds of a file, or microseconds of a message) and their ratio.
"""

from __future__ import annotations

import argparse
import base64
import csv
import html
import json
import os
import quopri
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from email.header import Header
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq

from benchmarks.corpora import FOLDER, records
from models.arrays import Floats
from models.data.ingestion.ingest import ingest
from models.data.ingestion.inspect import inspect
from models.mail import read_message

# Files

HERE = Path(__file__).resolve().parents[1]
ROUNDS = 3
"""Measurements of each checkout."""

_WORDS = 20_000
_LABELS = 100
_NAMES = 200  # pyarrow creates a column for each name and runs out of memory if there are many


def examples(n_bytes: int, seed: int = 0) -> Iterator[tuple[str, list[str]]]:
    """Yield texts of about 1 kB with two labels, about ``n_bytes`` in total."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    words = _random_words(rng)
    written = 0
    while written < n_bytes:
        text = " ".join(rng.choices(words, k=150))
        written += len(text.encode()) + 50
        yield text, [f"label {rng.randrange(_LABELS)}" for _ in range(2)]


def feature_examples(n_bytes: int, seed: int = 0) -> Iterator[tuple[dict[str, float], list[str]]]:
    """Yield numeric documents of 60 features with two labels, about ``n_bytes`` of JSON in total."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    names = _random_words(rng)[:_NAMES]
    for _ in range(n_bytes // 1000):
        features = {name: round(rng.random(), 4) for name in rng.choices(names, k=60)}
        yield features, [f"label {rng.randrange(_LABELS)}" for _ in range(2)]


def _random_words(rng: random.Random) -> list[str]:
    return [
        "".join(rng.choices("abcdefghijklmnopqrstuvwxyzäöü", k=rng.randint(2, 10))) for _ in range(_WORDS)
    ]


def write_jsonl(path: Path, rows: Iterable[tuple[object, list[str]]], field: str) -> None:
    """Write texts or features as JSON Lines."""
    with path.open("w", encoding="utf-8") as file:
        for document, labels in rows:
            file.write(json.dumps({field: document, "labels": labels}, ensure_ascii=False) + "\n")


def write_csv(path: Path, n_bytes: int) -> None:
    """Write texts as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "labels"])
        writer.writerows([text, ",".join(labels)] for text, labels in examples(n_bytes))


def write_parquet(path: Path, n_bytes: int) -> None:
    """Write texts as Parquet."""
    rows = list(examples(n_bytes))
    table = pa.table({"text": [text for text, _ in rows], "labels": [labels for _, labels in rows]})
    pq.write_table(table, path)


def write_svmlight(path: Path, n_bytes: int) -> None:
    """Write features in the format of LIBSVM."""
    numbers: dict[str, int] = {}
    with path.open("w", encoding="utf-8") as file:
        for features, labels in feature_examples(n_bytes):
            pairs = sorted(
                (numbers.setdefault(name, len(numbers) + 1), value) for name, value in features.items()
            )
            codes = ",".join(label.removeprefix("label ") for label in dict.fromkeys(labels))
            file.write(f"{codes} {' '.join(f'{number}:{value}' for number, value in pairs)}\n")


def write_arff(path: Path, n_bytes: int) -> None:
    """Write features as dense ARFF with ten labels, in a zip with the XML file of its labels."""
    rng = random.Random(0)  # noqa: S311 - no secret
    names = [f"f{number}" for number in range(150)]
    labels = [f"label{number}" for number in range(10)]
    rows = "\n".join(
        ",".join([*(f"{rng.random():.4f}" for _ in names), *(str(rng.randrange(2)) for _ in labels)])
        for _ in range(n_bytes // 1100)
    )
    head = "".join(f"@attribute {name} numeric\n" for name in names)
    head += "".join(f"@attribute {name} {{0,1}}\n" for name in labels)
    xml = "".join(f'<label name="{name}"></label>' for name in labels)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("random.arff", f"@relation random\n{head}@data\n{rows}\n")
        archive.writestr("random.xml", f'<labels xmlns="http://mulan.sourceforge.net/labels">{xml}</labels>')


def message(number: int, text: str, header: str = "") -> str:
    """Return a plain message."""
    return (
        f"Received: from mx.example.com by store.example.com; Mon, 10 Jun 2024 09:14:00 +0200\n"
        f"From: Ann <ann@example.org>\nTo: service@example.com\nMessage-ID: <{number}@example.org>\n"
        f"Date: Mon, 10 Jun 2024 09:14:00 +0200\nSubject: {text[:40]}\n{header}"
        f"Content-Type: text/plain; charset=utf-8\n\n{text}\n"
    )


def write_mbox(path: Path, n_bytes: int) -> None:
    """Write a mailbox with Gmail's labels."""
    with path.open("w", encoding="utf-8") as file:
        for number, (text, labels) in enumerate(examples(n_bytes)):
            header = f"X-Gmail-Labels: {','.join(labels)}\n"
            file.write(f"From ann@example.org Mon Jun 10 09:14:00 2024\n{message(number, text, header)}\n")


def write_eml_zip(path: Path, n_bytes: int) -> None:
    """Write a zip of messages in folders."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number, (text, labels) in enumerate(examples(n_bytes)):
            archive.writestr(f"{labels[0]}/{number}.eml", message(number, text))


WRITERS: dict[str, Callable[[Path, int], None]] = {
    "jsonl": lambda path, n: write_jsonl(path, examples(n), "text"),
    "jsonl, features": lambda path, n: write_jsonl(path, feature_examples(n), "features"),
    "csv": write_csv,
    "parquet": write_parquet,
    "svmlight": write_svmlight,
    "arff": write_arff,
    "mbox": write_mbox,
    "eml_zip": write_eml_zip,
}
"""What is read: the name of the format, and a remark after a comma."""


def by_covey(path: Path, kind: str) -> int:
    """Read, validate, count and store."""
    with path.open("rb") as stream, tempfile.TemporaryDirectory() as folder:
        return ingest(stream, kind.partition(",")[0], Path(folder) / "examples.parquet").n_examples


def by_pyarrow(path: Path, _: str, *, threads: bool) -> int:
    """Read the whole file into memory."""
    options = pyarrow.json.ReadOptions(block_size=2**24, use_threads=threads)
    return int(pyarrow.json.read_json(path, read_options=options).num_rows)


def by_pyarrow_stream(path: Path, _: str) -> int:
    """Read batch by batch without keeping the batches."""
    options = pyarrow.json.ReadOptions(block_size=2**24)
    return sum(int(batch.num_rows) for batch in pyarrow.json.open_json(path, read_options=options))


READERS: dict[str, Callable[[Path, str], int]] = {
    "covey, stored": by_covey,
    "covey, inspected": lambda path, kind: inspect(path, kind.partition(",")[0]).n_examples,
    "pyarrow, streamed": by_pyarrow_stream,
    "pyarrow, one thread": partial(by_pyarrow, threads=False),
    "pyarrow, all threads": partial(by_pyarrow, threads=True),
}


def measure(name: str, path: Path, kind: str) -> tuple[int, float, float, float, float]:
    """Run one reader in this process.

    Returns:
        Number of examples, elapsed seconds, CPU seconds of all threads, and the peak resident memory in MiB,
        afterwards and before.
    """
    before, start, processor = _peak(), time.perf_counter(), time.process_time()
    n_rows = READERS[name](path, kind)
    return n_rows, time.perf_counter() - start, time.process_time() - processor, _peak(), before


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def print_files(kinds: Sequence[str], n_mib: int, other: Path | None) -> None:
    """Print a line for each file and reader, or the processor times of two checkouts."""
    if other is None:
        print(f"{'format':<18}{'reader':<22}{'rows':>12}{'seconds':>10}{'MiB/s':>8}", end="")
        print(f"{'cpu s':>8}{'peak MiB':>10}{'before':>8}")
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "examples"
            WRITERS[kind](path, n_mib * 2**20)
            mib = path.stat().st_size / 2**20
            if other is not None:
                compare(kind, other, lambda measured: measured[2], "files", "covey, stored", str(path), kind)
                continue
            for name in READERS if kind.startswith("jsonl") else ["covey, stored"]:
                n, seconds, cpu, peak, before = run_in(HERE, "files", name, str(path), kind)
                print(
                    f"{kind:<18}{name:<22}{n:>12,}{seconds:>10.1f}{mib / seconds:>8.0f}{cpu:>8.1f}"
                    f"{peak:>10.0f}{before:>8.0f}",
                    flush=True,
                )


# Checkouts


def run_in(checkout: Path, *words: str) -> Any:
    """Measure in a new process with the packages of a checkout, and return the result.

    Raises:
        FileNotFoundError: the folder is not a checkout.
    """
    if not (checkout / "models" / "__init__.py").exists():
        raise FileNotFoundError(f"{checkout} is not a checkout of Covey: it has no package models")
    path = os.pathsep.join([str(checkout.resolve()), str(HERE)])
    command = [sys.executable, str(Path(__file__).resolve()), "--measure", *words]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def compare(kind: str, other: Path, value: Callable[[Any], float], *words: str) -> None:
    """Print the medians of this checkout and of another one, which are measured in turns, and their ratio."""
    sides: dict[Path, list[float]] = {HERE: [], other: []}
    for number in range(ROUNDS):
        for checkout in list(sides)[:: 1 if number % 2 else -1]:
            sides[checkout].append(value(run_in(checkout, *words)))
    here, there = (statistics.median(side) for side in sides.values())
    print(f"{kind:<18}{here:>10.2f}{there:>10.2f} there, ratio {here / there:.2f}", flush=True)


# Mail

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
    for name, separator in (("spamassassin_lists", "\n"), ("20newsgroups", "\n\n")):
        for record in records(name):
            head, _, body = record["text"].partition(separator)
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
        return [path.read_bytes() for path in sorted((FOLDER / "eml").glob("*/*")) if path.is_file()]
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


def measure_mail(raws: list[bytes], repeat: int) -> tuple[Floats, Floats]:
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


def print_mail(kinds: Sequence[str], n_messages: int, repeat: int, other: Path | None) -> None:
    """Print a line for each kind of message, or the medians of two checkouts."""
    if other is None:
        print(f"{'kind':<18}{'messages':>9}{'kB':>7}{'µs p50':>9}{'p99':>9}{'MB/s':>7}{'learning parts':>16}")
    for kind in kinds:
        if other is not None:
            compare(kind, other, float, "mail", kind, str(n_messages), str(repeat))
            continue
        raws = messages(kind, n_messages)
        reading, parts = measure_mail(raws, repeat)
        n_bytes = sum(map(len, raws))
        print(
            f"{kind:<18}{len(raws):>9}{n_bytes / len(raws) / 1e3:>7.1f}{np.median(reading):>9.1f}"
            f"{np.percentile(reading, 99):>9.1f}{n_bytes / reading.sum():>7.1f}{np.median(parts):>16.2f}",
            flush=True,
        )


def main() -> None:
    """Measure files or mail."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("files", "mail"), nargs="?", default="files")
    parser.add_argument("--kind", choices=[*WRITERS, *KINDS, "corpus"], action="append")
    parser.add_argument("--mib", type=int, default=64, help="size of a file (default 64)")
    parser.add_argument("--messages", type=int, default=400)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--against", type=Path, help="another checkout to compare with")
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        what, name, *words = arguments.measure
        if what == "files":
            json.dump(measure(name, Path(words[0]), words[1]), sys.stdout)
        else:
            reading, _ = measure_mail(messages(name, int(words[0])), int(words[1]))
            json.dump(float(np.median(reading)), sys.stdout)
    elif arguments.what == "files":
        print_files(arguments.kind or [*WRITERS], arguments.mib, arguments.against)
    else:
        kinds = arguments.kind or [*KINDS, "corpus"]
        print_mail(kinds, arguments.messages, arguments.repeat, arguments.against)


if __name__ == "__main__":
    main()
