"""Measure how well mail is routed with different treatments of quoted text.

    python benchmarks/quoted_text.py [--corpus NAME] [--learner NAME] [--treatment NAME] [--seeds N]

Each corpus is divided into a training part (75 %) and a test part by the seed. Corpora:

- spamassassin_lists: mail of mailing lists. 20newsgroups: a third of its messages. In both, quoted text is
  usually about the topic of the message.
- off_topic: spamassassin_lists, in which every second quotation comes from a message with other labels, as
  in a reply that asks about something else.

Learners: ``mp_boost`` has the features of the example in docs/mail.md, with binary weights. ``svm`` has
TF-IDF of unit length. The treatments:

- full, half: each quoted term counts 1, or 0.5. With binary weights, both mean that a quoted term is present.
- none: quoted text is left out.
- short N: quoted text counts half, and is left out if the new text has at least N words.
- apart: a quoted term is another feature than the same term of the new text.
- apart N: the same if the new text has at least N words; otherwise, quoted text counts half.

Figures are the means over the seeds on the messages of the test part with new and quoted text: micro-averaged
and macro-averaged F1, and one-error (the share of messages whose best label is wrong).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from models import catalog
from models.data.examples import Examples
from models.mail.fields import MailFields, Part
from models.mail.quoting import split_quoted_text
from models.pipeline import Pipeline
from models.text import AnalyzerParameters
from models.text.analyzer import WordAnalysis
from models.text.tokens import words

DATA = Path(os.environ.get("COVEY_DATA", Path(__file__).parents[2] / "shared" / "data"))
ANALYZER: dict[str, Any] = {"drop_numbers": True, "stop_words": "english", "stemmer": "porter"}
LEARNERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "mp_boost": (
        {
            "kind": "text",
            "weighting": "binary",
            "analyzer": ANALYZER,
            "selection": {"kind": "information_gain", "policy": "round_robin", "per_label": 100},
        },
        {"algorithm": "mp_boost", "rounds": 50},
    ),
    "svm": (
        {"kind": "text", "weighting": "tfidf", "scaling": "unit", "analyzer": ANALYZER},
        {"algorithm": "svm"},
    ),
}
MEASURES = ("f1_micro", "f1_macro", "one_error")


@dataclass(frozen=True)
class Message:
    """A message with its labels."""

    subject: str
    new: str
    quoted: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Parts:
    """A document of weighted texts."""

    parts: tuple[tuple[str, float], ...]
    language: str | None = None

    def learning_parts(self, fields: MailFields) -> Sequence[Part]:
        """Return the texts and their weights. Quoted text has no terms of its own."""
        del fields
        return [Part(text, weight) for text, weight in self.parts if weight > 0]


def weighted(weight: float, limit: float = float("inf")) -> Callable[[Message], Parts]:
    """Return a treatment that weighs quoted text, or omits it after ``limit`` words of new text."""

    def treat(message: Message) -> Parts:
        parts = ((message.subject, 1.0), (message.new, 1.0))
        enough = len(words(message.new)) >= limit
        return Parts(parts if enough else (*parts, (message.quoted, weight)))

    return treat


def apart(limit: int) -> Callable[[Message], Parts]:
    """Return a treatment that gives quoted terms other names after ``limit`` words of new text."""
    analysis = WordAnalysis(AnalyzerParameters.model_validate(ANALYZER))

    def treat(message: Message) -> Parts:
        quoted = message.quoted
        if len(words(message.new)) >= limit:
            quoted = " ".join(f"quoted0{term}" for term in map(analysis, words(quoted)) if term)
        return Parts(((message.subject, 1.0), (message.new, 1.0), (quoted, 0.5)))

    return treat


TREATMENTS: dict[str, Callable[[Message], Parts]] = {
    "full": weighted(1.0),
    "half": weighted(0.5),
    "none": weighted(0.0),
    "short 5": weighted(0.5, 5),
    "short 20": weighted(0.5, 20),
    "apart": apart(0),
    "apart 5": apart(5),
    "apart 20": apart(20),
}


def read(corpus: str) -> list[Message]:
    """Return the messages of a corpus."""
    return [*_off_topic(read("spamassassin_lists"))] if corpus == "off_topic" else [*_read(corpus)]


def _read(corpus: str) -> Iterator[Message]:
    with gzip.open(DATA / f"{corpus}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if corpus == "20newsgroups" and number % 3:
                continue
            record = json.loads(line)
            head, _, body = record["text"].partition("\n" if corpus == "spamassassin_lists" else "\n\n")
            subject = head.rpartition("Subject: ")[2].partition("\n")[0]
            new, quoted = split_quoted_text(body)
            yield Message(subject, new, quoted, tuple(record["labels"]))


def _off_topic(messages: list[Message]) -> Iterator[Message]:
    with_quotation = [message for message in messages if message.quoted]
    rng = np.random.default_rng(0)
    for number, message in enumerate(messages):
        if not message.quoted or number % 2:
            yield message
            continue
        other = message
        while set(other.labels) & set(message.labels):
            other = with_quotation[int(rng.integers(len(with_quotation)))]
        yield replace(message, quoted=other.quoted)


def measure(messages: list[Message], treatment: str, learner: str, seed: int) -> list[float]:
    """Return the measures of a pipeline on the test messages with new and quoted text."""
    order = np.random.default_rng(seed).permutation(len(messages))
    first = len(messages) // 4
    test = [m for m in (messages[i] for i in order[:first]) if words(m.new) and m.quoted]
    training = [messages[i] for i in order[first:]]
    features, parameters = LEARNERS[learner]
    pipeline = Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python(features),
        catalog.LEARNER_PARAMETERS.validate_python(parameters),
    )

    treat = TREATMENTS[treatment]
    parts = [
        Examples("text", [treat(m) for m in part], [m.labels for m in part])  # type: ignore[arg-type]
        for part in (training, test)
    ]
    measures = pipeline.fit(parts[0]).evaluate(parts[1]).measures
    return [float(measures[name]) for name in MEASURES]


def main() -> None:
    """Print a line for each corpus, learner and treatment."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--corpus", choices=["spamassassin_lists", "20newsgroups", "off_topic"], action="append"
    )
    parser.add_argument("--learner", choices=[*LEARNERS], action="append")
    parser.add_argument("--treatment", choices=[*TREATMENTS], action="append")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    print(f"{'corpus':<20}{'learner':<13}{'treatment':<11}" + "".join(f"{name:>11}" for name in MEASURES))
    for corpus in arguments.corpus or ["spamassassin_lists", "20newsgroups", "off_topic"]:
        messages = read(corpus)
        for learner in arguments.learner or LEARNERS:
            for treatment in arguments.treatment or TREATMENTS:
                values = np.mean(
                    [measure(messages, treatment, learner, seed) for seed in range(arguments.seeds)], axis=0
                )
                print(
                    f"{corpus:<20}{learner:<13}{treatment:<11}" + "".join(f"{v:>11.3f}" for v in values),
                    flush=True,
                )


if __name__ == "__main__":
    main()
