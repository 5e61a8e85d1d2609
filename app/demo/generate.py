"""Writes the demonstration's labelled e-mail, ``messages.jsonl``, from the sentences beside it.

The same sentences always give the same file: ``python app/demo/generate.py`` after a change of
``sentences.toml``.

A message is put together as people do it: a greeting, what is the matter, a detail, what they want, a name.
Some are about two matters, some have a subject that says nothing, some are for nobody at all. The messages of
the test part are put together from the same sentences as those of the training part: they show that the
service works, and measure no learner.
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

LANGUAGES = {"en": 26, "de": 4, "es": 4}
"""Messages about one matter, for each department and language."""

NOBODY = {"en": 22, "de": 4, "es": 4}
"""Messages for no department."""

TWO_MATTERS = {"en": 44, "de": 9, "es": 9}
"""Messages about two matters."""

TEST_SHARE = 0.25
"""Share of the messages that are held out."""

VAGUE_SUBJECTS = 0.3
"""Share of the subjects that do not tell what a message is about."""

DOMAINS = ("example.org", "example.com", "example.net")

Sentences = dict[str, Any]


@dataclass(frozen=True)
class Message:
    """A labelled e-mail."""

    labels: tuple[str, ...]
    subject: str
    text: str
    sender: str


class Writer:
    """Puts messages together.

    Args:
        sentences: the contents of ``sentences.toml``.
        chance: where all choices come from.
    """

    def __init__(self, sentences: Sentences, chance: random.Random) -> None:
        self._sentences = sentences
        self._chance = chance

    def about(self, departments: tuple[str, ...], language: str) -> Message:
        """A message about one matter or two; about nobody's if there is no department."""
        frame = self._sentences["frame"][language]
        matters = [self._sentences[name][language] for name in departments or ("nobody",)]
        vague = self._chance.random() < VAGUE_SUBJECTS and departments
        subject = self._one(frame["subject"] if vague else matters[0]["subject"])
        body: list[str] = []
        for number, matter in enumerate(matters):
            if number:
                body.append(self._one(frame["joint"]))
            body.append(self._one(matter["problem"]))
            if self._chance.random() < 0.75:
                body.append(self._one(matter["detail"]))
            if self._chance.random() < (0.8 if len(matters) == 1 else 0.5):
                body.append(self._one(matter["request"]))
        if departments and self._chance.random() < 0.3:
            body.insert(1, self._one(frame["filler"]))
        name = self._one(frame["name"])
        text = "\n\n".join(
            [
                self._one(frame["greeting"]),
                self._paragraph(body, language),
                f"{self._one(frame['closing'])}\n{name}",
            ]
        )
        return self._filled(departments, subject, text, name, language)

    def written(self, message: dict[str, Any]) -> Message:
        """A message that was written as a whole."""
        name = self._one(self._sentences["frame"]["en"]["name"])
        return self._filled(tuple(message["labels"]), message["subject"], message["text"], name, "en")

    def _one(self, choices: list[str]) -> str:
        return self._chance.choice(choices)

    def _paragraph(self, body: list[str], language: str) -> str:
        """The sentences joined; only in German the first one goes on after the greeting's comma."""
        first, *others = body
        return " ".join([first if language == "de" else _capital(first), *map(_capital, others)])

    def _filled(self, labels: tuple[str, ...], subject: str, text: str, name: str, language: str) -> Message:
        """The message with the words in braces filled in, the same word for the same brace."""
        words = {slot: self._one(choices) for slot, choices in self._sentences["fill"][language].items()}
        address = name.lower().replace(" ", ".").translate(str.maketrans("áéíóúüöäßñ", "aeiouuoasn"))
        sender = f"{name} <{address}@{self._one(list(DOMAINS))}>"
        return Message(tuple(sorted(labels)), subject.format(**words), text.format(**words), sender)


def _capital(sentence: str) -> str:
    """The sentence with its first letter in upper case, whatever mark stands before it."""
    return re.sub(r"\w", lambda letter: letter[0].upper(), sentence, count=1)


def messages(sentences: Sentences) -> list[Message]:
    """All messages, each once, in random order."""
    chance = random.Random(7)  # noqa: S311 - the same messages each time are the point
    writer = Writer(sentences, chance)
    departments = sorted(set(sentences) - {"fill", "frame", "nobody", "written"})
    made = [writer.written(message) for message in sentences["written"]]
    for language, times in LANGUAGES.items():
        made += [writer.about((name,), language) for name in departments for _ in range(times)]
        made += [writer.about((), language) for _ in range(NOBODY[language])]
        for _ in range(TWO_MATTERS[language]):
            first, second = chance.sample(departments, 2)
            made.append(writer.about((first, second), language))
    chance.shuffle(made)
    return list({message.text: message for message in made}.values())


def records(made: list[Message]) -> list[dict[str, Any]]:
    """The messages as records of a data set, every department with its share in the test part."""
    held_out: Counter[tuple[str, ...]] = Counter()
    seen: Counter[tuple[str, ...]] = Counter()
    result = []
    for number, message in enumerate(made, 1):
        group = message.labels if len(message.labels) < 2 else ("two matters",)
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
    """Writes ``messages.jsonl``."""
    sentences = tomllib.loads((HERE / "sentences.toml").read_text("utf-8"))
    lines = [json.dumps(record, ensure_ascii=False) for record in records(messages(sentences))]
    (HERE / "messages.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
