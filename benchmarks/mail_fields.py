"""Measure how well mail is routed with different fields, and with each field left out.

    python benchmarks/mail_fields.py [--corpus NAME] [--learner NAME] [--fields NAME] [--seeds N]

Each corpus is divided into a training part (75 %) and a test part by the seed. Corpora:

- spamassassin_lists: mail of 16 mailing lists, some of it for several. Only subjects and bodies are left of
  the messages, because the labels come from the other header fields.
- 20newsgroups: a third of its messages, with the subject and the domain of the author.
- new_senders: the same, but the test part has no sender domain of the training part, as in mail from new
  customers.
- demo: the messages of the demo, which are generated.

No corpus with labels has recipients, list ids or attachments, so these fields are not measured.

Learners: ``svm`` has pivoted weights of unit length. ``mp_boost`` has binary weights and selected terms. Both
use the rule ``sign``, so that only the features differ.

Figures are the means over the seeds on the test part: micro-averaged and macro-averaged F1, and one-error
(the share of messages whose best label is wrong), each with the mean difference from the default fields and
its standard error over the seeds.
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

from models import catalog
from models.data.examples import Examples
from models.mail import MailDocument
from models.mail.addresses import find_domains
from models.mail.quoting import split_quoted_text
from models.pipeline import Pipeline

DATA = Path(os.environ.get("COVEY_DATA", Path(__file__).parents[2] / "shared" / "data"))
DEMO = Path(__file__).parents[1] / "app" / "demo" / "messages.jsonl"
CORPORA = ("spamassassin_lists", "20newsgroups", "new_senders", "demo")
LEARNERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "svm": (
        {"kind": "text", "weighting": "pivoted", "scaling": "unit"},
        {"algorithm": "svm"},
    ),
    "mp_boost": (
        {
            "kind": "text",
            "weighting": "binary",
            "selection": {"kind": "information_gain", "policy": "round_robin", "per_label": 100},
        },
        {"algorithm": "mp_boost", "rounds": 50},
    ),
}
OFF = {"weight": 0}
FIELDS: dict[str, dict[str, Any]] = {
    "default": {},
    "no subject": {"subject": OFF},
    "no new text": {"new_text": OFF},
    "no quoted text": {"quoted_text": OFF},
    "subject only": {"new_text": OFF, "quoted_text": OFF},
    "subject own": {"subject": {"own_terms": True}},
    "subject 2": {"subject": {"weight": 2}},
    "subject 4": {"subject": {"weight": 4}},
    "subject 2 own": {"subject": {"weight": 2, "own_terms": True}},
    "quoted own": {"quoted_text": {"own_terms": True}},
    "quoted shared": {"quoted_text": {"own_terms": False}},
    "sender": {"sender_domain": {"weight": 1}},
    "sender only": {"sender_domain": {"weight": 1}, "subject": OFF, "new_text": OFF, "quoted_text": OFF},
}
MEASURES = ("f1_micro", "f1_macro", "one_error")

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


def measure(parts: tuple[list[Message], list[Message]], fields: str, learner: str) -> list[float]:
    """Return the measures of a pipeline with some fields on the test part."""
    features, parameters = LEARNERS[learner]
    pipeline = Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python(features | {"fields": FIELDS[fields]}),
        catalog.LEARNER_PARAMETERS.validate_python(parameters),
        catalog.DECISION_PARAMETERS.validate_python({"kind": "sign"}),
    )
    training, test = (
        Examples("email", [mail for mail, _ in part], [labels for _, labels in part])  # type: ignore[arg-type]
        for part in parts
    )
    measures = pipeline.fit(training).evaluate(test).measures
    return [float(measures[name]) for name in MEASURES]


def main() -> None:
    """Print a line for each corpus, learner and choice of fields."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--corpus", choices=CORPORA, action="append")
    parser.add_argument("--learner", choices=[*LEARNERS], action="append")
    parser.add_argument("--fields", choices=[*FIELDS], action="append")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    print(f"{'corpus':<20}{'learner':<10}{'fields':<16}" + "".join(f"{name:>24}" for name in MEASURES))
    for corpus in arguments.corpus or CORPORA:
        messages = read(corpus)
        divided = [divide(messages, corpus, seed) for seed in range(arguments.seeds)]
        for learner in arguments.learner or LEARNERS:
            default = np.array([measure(parts, "default", learner) for parts in divided])
            for fields in arguments.fields or FIELDS:
                if fields.startswith("sender") and not any(mail.sender_domain for mail, _ in messages):
                    continue
                values = (
                    default
                    if fields == "default"
                    else np.array([measure(parts, fields, learner) for parts in divided])
                )
                change = values - default
                error = change.std(axis=0, ddof=1) / np.sqrt(len(divided)) if len(divided) > 1 else [0] * 3
                cells = zip(values.mean(axis=0), change.mean(axis=0), error, strict=True)
                print(
                    f"{corpus:<20}{learner:<10}{fields:<16}"
                    + "".join(f"{value:>9.3f} ({by:+.3f} ±{e:.3f})" for value, by, e in cells),
                    flush=True,
                )


if __name__ == "__main__":
    main()
