"""Measure one e-mail of 5 kB in this process, with the default features and learner, layer by layer.

    python -m benchmarks.one_message

Prints the lowest and the median CPU time of each layer over 256 messages with stories of Reuters-21578. Run
it in the folders of two versions in turn to compare them. Then prints how often the language of the first 300
characters, if it is certain, is another one than that of 2,000 characters.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from benchmarks.corpora import records, reuters
from benchmarks.serving.bodies import PLACEHOLDER, messages, stories
from models.mail import read_message
from models.mail.language import detect_language, language_of_sample
from models.pipeline import Pipeline

REPETITIONS = 7
CORPORA = ("reuters21578", "20newsgroups", "spamassassin_lists")


def trained() -> Pipeline:
    """Return the default pipeline of e-mails, trained on Reuters-21578."""
    rows = reuters("train")
    mails = [read_message(b"\n" + row["text"].encode()) for row in rows]
    return Pipeline().fit(mails, [row["labels"] for row in rows])


def micros(call: Callable[[Any], object], arguments: Callable[[], Sequence[Any]]) -> tuple[float, float]:
    """Return the lowest and the median CPU time of a call in microseconds.

    Args:
        call: the function.
        arguments: returns new arguments, because a message remembers what was computed from it.
    """
    times = []
    for _ in range(REPETITIONS):
        prepared = arguments()
        began = time.process_time()
        for argument in prepared:
            call(argument)
        times.append((time.process_time() - began) / len(prepared) * 1e6)
    return min(times), statistics.median(times)


def agreement(texts: Iterable[str]) -> tuple[int, int]:
    """Return the number of texts, and of those whose language is another one with 2,000 characters."""
    n = others = 0
    for text in texts:
        n += 1
        others += detect_language(text) != language_of_sample(text[:2000], 0.6)
    return n, others


def main() -> None:
    """Print both tables."""
    raw = [
        message.replace(PLACEHOLDER, b"%024d" % n) for n, message in enumerate(messages(stories()).contents)
    ]
    pipeline = trained()

    def read() -> list[Any]:
        return [read_message(message) for message in raw]

    def read_language() -> list[Any]:
        mails = read()
        for mail in mails:
            _ = mail.language
        return mails

    layers: dict[str, tuple[Callable[[Any], object], Callable[[], Sequence[Any]]]] = {
        "read the mail": (read_message, lambda: raw),
        "language": (lambda mail: mail.language, read),
        "terms, scores, probabilities and label set": (lambda mail: pipeline.rank([mail]), read_language),
        "together": (lambda message: pipeline.rank([read_message(message)]), lambda: raw),
    }
    for name, (call, arguments) in layers.items():
        low, median = micros(call, arguments)
        print(f"{name:45} {low:6.0f} µs, median {median:6.0f} µs", flush=True)
    for corpus in CORPORA:
        n, others = agreement(row["text"] for row in records(corpus))
        print(
            f"{corpus:20} {n:6,} texts, {others} with another language than by 2,000 characters", flush=True
        )


if __name__ == "__main__":
    main()
