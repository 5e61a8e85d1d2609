"""Measure how well mail is routed with different fields, and with each field left out.

    python -m benchmarks.mail_fields [--corpus NAME ...] [--fields NAME ...]

Each corpus is divided into a training part (75 %) and a test part by three seeds. Corpora:

- spamassassin_lists: mail of 16 mailing lists, some of it for several. Only subjects and bodies are left of
  the messages, because the labels come from the other header fields.
- 20newsgroups: a third of its messages, with the subject and the domain of the author.
- new_senders: the same, but the test part has no sender domain of the training part, as in mail from new
  customers.
- demo: the messages of the demo, which are generated.

No corpus with labels has recipients, list ids or attachments, so these fields are not measured.

The learner is ``svm`` with pivoted weights of unit length. The rule is ``sign``, so that only the features
differ. Stores micro-averaged and macro-averaged F1, and one-error (the share of messages whose best label is
wrong) of each seed on the test part, and writes the means into ``docs/mail.md``, with the mean difference
from the default fields and its standard error over the seeds.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import tables
from benchmarks.tables import Result
from models import catalog
from models.data.examples import Examples
from models.mail import MailDocument
from models.mail.addresses import find_domains
from models.mail.quoting import split_quoted_text
from models.pipeline import Pipeline

DATA = Path(os.environ.get("COVEY_DATA", Path(__file__).parents[2] / "shared" / "data"))
DEMO = Path(__file__).parents[1] / "app" / "demo" / "messages.jsonl"
CORPORA = {
    "spamassassin_lists": "mailing lists",
    "20newsgroups": "20 Newsgroups",
    "new_senders": "new senders",
    "demo": "demo",
}
RECIPE = {"kind": "text", "weighting": "pivoted", "scaling": "unit"}
OFF = {"weight": 0}
FIELDS: dict[str, dict[str, Any]] = {
    "**default**": {},
    "no subject": {"subject": OFF},
    "no new text": {"new_text": OFF},
    "no quoted text": {"quoted_text": OFF},
    "only the subject": {"new_text": OFF, "quoted_text": OFF},
    "subject with terms of its own": {"subject": {"own_terms": True}},
    "subject with weight 2": {"subject": {"weight": 2}},
    "subject with weight 4": {"subject": {"weight": 4}},
    "subject with weight 2 and terms of its own": {"subject": {"weight": 2, "own_terms": True}},
    "quoted text with terms of its own": {"quoted_text": {"own_terms": True}},
    "with the sender domain": {"sender_domain": {"weight": 1}},
}
DEFAULT = "**default**"
ONLY_LISTS = ("no new text", "only the subject", "subject with weight 2", "subject with weight 4")
"""Measured only on the mailing lists, unless the command names them."""
MEASURES = ("f1_micro", "f1_macro", "one_error")
SEEDS = 3
NAME = "mail_fields"
PAGE = tables.DOCS / "mail.md"

Message = tuple[MailDocument, tuple[str, ...]]


def read(corpus: str) -> list[Message]:
    """Return the messages of a corpus with their labels."""
    if corpus == "demo":
        return [*_read_demo()]
    return [*_read("spamassassin_lists" if corpus == "spamassassin_lists" else "20newsgroups")]


def _read(corpus: str) -> Iterator[Message]:
    with gzip.open(DATA / f"{corpus}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if corpus == "20newsgroups" and number % 3:
                continue
            record = json.loads(line)
            head, _, body = record["text"].partition("\n" if corpus == "spamassassin_lists" else "\n\n")
            headers = {
                name.lower(): value.strip()
                for name, colon, value in (field.partition(":") for field in head.split("\n"))
                if colon
            }
            is_news = corpus == "20newsgroups"
            new, quoted = split_quoted_text(body)
            yield (
                MailDocument(
                    subject=headers.get("subject", "") if is_news else head,
                    sender_domain=next(iter(find_domains(headers.get("from", ""))), "") if is_news else "",
                    new_text=new,
                    quoted_text=quoted,
                ),
                tuple(record["labels"]),
            )


def _read_demo() -> Iterator[Message]:
    for line in DEMO.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        email = record["email"]
        new, quoted = split_quoted_text(email["text"])
        sender = next(iter(find_domains(email.get("from", ""))), "")
        yield (
            MailDocument(subject=email["subject"], sender_domain=sender, new_text=new, quoted_text=quoted),
            tuple(record["labels"]),
        )


def divide(messages: list[Message], corpus: str, seed: int) -> tuple[list[Message], list[Message]]:
    """Return the training part and the test part."""
    rng = np.random.default_rng(seed)
    if corpus == "new_senders":
        domains = sorted({mail.sender_domain for mail, _ in messages})
        test_domains = {domains[i] for i in rng.permutation(len(domains))[: len(domains) // 4]}
        is_test = [mail.sender_domain in test_domains for mail, _ in messages]
    else:
        is_test = [bool(i < len(messages) // 4) for i in rng.permutation(len(messages))]
    parts: tuple[list[Message], list[Message]] = ([], [])
    for message, in_test in zip(messages, is_test, strict=True):
        parts[in_test].append(message)
    return parts


def measure(parts: tuple[list[Message], list[Message]], fields: str) -> list[float]:
    """Return the measures of a pipeline with some fields on the test part."""
    pipeline = Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python(RECIPE | {"fields": FIELDS[fields]}),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": "svm"}),
        catalog.DECISION_PARAMETERS.validate_python({"kind": "sign"}),
    )
    training, test = (
        Examples("email", [mail for mail, _ in part], [labels for _, labels in part])  # type: ignore[arg-type]
        for part in parts
    )
    measures = pipeline.fit(training).evaluate(test).measures
    return [round(float(measures[name]), 5) for name in MEASURES]


def wanted(corpus: str, messages: list[Message]) -> list[str]:
    """Return the fields that are measured on a corpus by default."""
    has_sender = any(mail.sender_domain for mail, _ in messages)
    return [
        name
        for name in FIELDS
        if (corpus == "spamassassin_lists" or name not in ONLY_LISTS)
        and (has_sender or name != "with the sender domain")
    ]


def rendered() -> dict[str, str]:
    """Return the table of the page."""
    found: dict[str, dict[str, Result]] = {}
    for result in tables.stored(NAME):
        found.setdefault(result["corpus"], {})[result["fields"]] = result["values"]
    rows = []
    for corpus, title in CORPORA.items():
        default = np.array(found[corpus][DEFAULT])
        for fields in FIELDS:
            if fields in found[corpus]:
                values = np.array(found[corpus][fields])
                cells = [_cell(values[:, i], default[:, i]) for i in range(len(MEASURES))]
                rows.append([title if fields == DEFAULT else "", fields, *cells])
    return {"mail_fields": tables.markdown(["corpus", "fields", "micro F1", "macro F1", "one-error"], rows)}


def _cell(values: Any, default: Any) -> str:
    mean = tables.figure(values.mean())
    if values is default or (values == default).all():
        return mean
    change = values - default
    sign = "−" if change.mean() < 0 else "+"
    error = tables.figure(change.std(ddof=1) / np.sqrt(len(change)))
    return f"{mean} ({sign}{tables.figure(abs(change.mean()))} ± {error})"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", nargs="*", default=[*CORPORA], choices=[*CORPORA])
    parser.add_argument("--fields", nargs="*", choices=[*FIELDS])
    arguments = parser.parse_args()
    for corpus_name in arguments.corpus:
        all_messages = read(corpus_name)
        divided = [divide(all_messages, corpus_name, seed) for seed in range(SEEDS)]
        for name in arguments.fields or wanted(corpus_name, all_messages):
            measured = [measure(parts, name) for parts in divided]
            print(corpus_name, name, measured, flush=True)
            tables.store(
                NAME, [{"corpus": corpus_name, "fields": name, "values": measured}], ("corpus", "fields")
            )
    tables.show(PAGE, rendered())
