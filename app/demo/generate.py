"""Generate the labelled e-mail of the demonstration, ``messages.jsonl``, from ``sentences.toml``.

Run ``python app/demo/generate.py`` after a change of ``sentences.toml``. The same sentences always give the
same file.

A message has a greeting, a problem, a detail, a request and a name. Some messages are about two topics, some
have a vague subject, and some are for no department. Training and test messages use the same sentences. The
test part therefore shows that the service works, but does not measure how good a learner is.
"""

from __future__ import annotations

import json
import random
import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

ONE_TOPIC = {"en": 26, "de": 4, "es": 4}
"""Number of messages about one topic, for each department and language."""

NO_DEPARTMENT = {"en": 22, "de": 4, "es": 4}
"""Number of messages for no department, by language."""

TWO_TOPICS = {"en": 44, "de": 9, "es": 9}
"""Number of messages about two topics, by language."""

TEST_SHARE = 0.25
"""Share of held-out messages."""

VAGUE_SUBJECTS = 0.3
"""Share of subjects that do not state the topic."""

DOMAINS = ("example.org", "example.com", "example.net")

Sentences = dict[str, Any]


@dataclass(frozen=True)
class Message:
    """A labelled e-mail."""

    labels: tuple[str, ...]
    subject: str
    text: str
    sender: str


class MessageGenerator:
    """Compose messages from sentences.

    Args:
        sentences: the content of ``sentences.toml``.
        rng: the source of all random choices.
    """

    def __init__(self, sentences: Sentences, rng: random.Random) -> None:
        self._sentences = sentences
        self._rng = rng

    def compose(self, departments: tuple[str, ...], language: str) -> Message:
        """Compose a message about the topics of one or two departments, or of no department."""
        frame = self._sentences["frame"][language]
        topics = [self._sentences[name][language] for name in departments or ("nobody",)]
        vague = self._rng.random() < VAGUE_SUBJECTS and departments
        subject = self._one(frame["subject"] if vague else topics[0]["subject"])
        body: list[str] = []
        for number, topic in enumerate(topics):
            if number:
                body.append(self._one(frame["joint"]))
            body.append(self._one(topic["problem"]))
            if self._rng.random() < 0.75:
                body.append(self._one(topic["detail"]))
            if self._rng.random() < (0.8 if len(topics) == 1 else 0.5):
                body.append(self._one(topic["request"]))
        if departments and self._rng.random() < 0.3:
            body.insert(1, self._one(frame["filler"]))
        name = self._one(frame["name"])
        text = "\n\n".join(
            [
                self._one(frame["greeting"]),
                self._paragraph(body, language),
                f"{self._one(frame['closing'])}\n{name}",
            ]
        )
        return self._fill_in(departments, subject, text, name, language)

    def from_template(self, message: dict[str, Any]) -> Message:
        """Fill in a message that ``sentences.toml`` has as a whole."""
        name = self._one(self._sentences["frame"]["en"]["name"])
        return self._fill_in(tuple(message["labels"]), message["subject"], message["text"], name, "en")

    def _one(self, choices: list[str]) -> str:
        return self._rng.choice(choices)

    def _paragraph(self, body: list[str], language: str) -> str:
        """Join sentences. In German the first one stays in lower case: the greeting ends with a comma."""
        first, *others = body
        return " ".join([first if language == "de" else _capitalized(first), *map(_capitalized, others)])

    def _fill_in(self, labels: tuple[str, ...], subject: str, text: str, name: str, language: str) -> Message:
        """Replace the placeholders; every placeholder has the same word throughout the message."""
        words = {slot: self._one(choices) for slot, choices in self._sentences["fill"][language].items()}
        address = name.lower().replace(" ", ".").translate(str.maketrans("áéíóúüöäßñ", "aeiouuoasn"))
        sender = f"{name} <{address}@{self._one(list(DOMAINS))}>"
        return Message(tuple(sorted(labels)), subject.format(**words), text.format(**words), sender)


def _capitalized(sentence: str) -> str:
    """Return the sentence with its first letter in upper case, even after a punctuation mark."""
    return re.sub(r"\w", lambda letter: letter[0].upper(), sentence, count=1)


def messages(sentences: Sentences) -> list[Message]:
    """Generate all messages in random order, without duplicates."""
    rng = random.Random(7)  # noqa: S311 - the messages must be the same each time
    generator = MessageGenerator(sentences, rng)
    departments = sorted(set(sentences) - {"fill", "frame", "nobody", "written"})
    generated = [generator.from_template(message) for message in sentences["written"]]
    for language, times in ONE_TOPIC.items():
        generated += [generator.compose((name,), language) for name in departments for _ in range(times)]
        generated += [generator.compose((), language) for _ in range(NO_DEPARTMENT[language])]
        for _ in range(TWO_TOPICS[language]):
            first, second = rng.sample(departments, 2)
            generated.append(generator.compose((first, second), language))
    rng.shuffle(generated)
    return list({message.text: message for message in generated}.values())


def records(messages: list[Message]) -> list[dict[str, Any]]:
    """Convert messages to records of a data set, with the same share of each department in the test part."""
    held_out: Counter[tuple[str, ...]] = Counter()
    seen: Counter[tuple[str, ...]] = Counter()
    result = []
    for number, message in enumerate(messages, 1):
        group = message.labels if len(message.labels) < 2 else ("two topics",)
        seen[group] += 1
        test = held_out[group] < int(seen[group] * TEST_SHARE)
        held_out[group] += test
        email = {
            "subject": message.subject,
            "from": message.sender,
            "to": "service@example.org",
            "text": message.text,
        }
        result.append(
            {
                "id": f"mail-{number:03}",
                "email": email,
                "labels": list(message.labels),
                "split": "test" if test else "train",
            }
        )
    return result


def main() -> None:
    """Write ``messages.jsonl``."""
    sentences = tomllib.loads((HERE / "sentences.toml").read_text("utf-8"))
    lines = [json.dumps(record, ensure_ascii=False) for record in records(messages(sentences))]
    (HERE / "messages.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
