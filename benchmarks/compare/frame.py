"""The frame of the comparisons: variants × corpora, whose results are stored and shown in a page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from benchmarks.corpora import EXAMPLES, Json, split
from benchmarks.recipes import timed_fit
from benchmarks.tables import Result, figure, stored
from models.data.examples import Examples
from models.mail import Email
from models.mail.language import detect_language
from models.pipeline import Pipeline

Stored = Mapping[tuple[str, str], Result]
"""Results by corpus and variant."""

Parts = Sequence[tuple[Examples, Examples]]
"""The training part and the test part of each split."""

KEY = ("corpus", "variant")
DEMO_SPLITS = 10


@dataclass(frozen=True)
class Comparison:
    """Variants of a pipeline on corpora.

    Attributes:
        corpora: the corpora, with their names in the tables.
        variants: the names of the variants.
        measure: returns what is measured of a corpus and a variant. What several variants share is cached.
        tables: returns the tables of the pages by their marks.
        left_out: whether a variant is not measured on a corpus, unless the command names it.
    """

    corpora: Mapping[str, str]
    variants: Sequence[str]
    measure: Callable[[str, str], Result]
    tables: Callable[[Stored], Mapping[str, str]] = lambda _: {}
    left_out: Callable[[str, str], bool] = lambda *_: False

    def rendered(self, name: str) -> Mapping[str, str]:
        """Return the tables from the stored results."""
        return self.tables({(result["corpus"], result["variant"]): result for result in stored(name)})


def demo_records() -> list[Json]:
    """Return the messages of ``covey demo``, which are generated."""
    text = (files("app.demo") / "messages.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@cache
def parts(corpus: str, how: str = "given") -> Parts:
    """Return the own split of a corpus, or ten random ones of the messages of the demo, which are few.

    Args:
        corpus: a name of ``EXAMPLES``; "demo", "demo as text", or "demo, German" for the German ones as text.
        how: "stratified" for a stratified split instead of the own one.
    """
    if not corpus.startswith("demo"):
        return [split(EXAMPLES[corpus](), how)]
    records = demo_records()
    texts = [f"{record['email']['subject']}\n{record['email']['text']}" for record in records]
    labels = [tuple(record["labels"]) for record in records]
    if corpus == "demo":
        mails = [Email(subject=subject, text=text) for subject, _, text in (t.partition("\n") for t in texts)]
        examples = Examples("email", mails, labels)
    else:
        examples = Examples("text", texts, labels)
    if corpus == "demo, German":
        examples = examples.where(np.array([detect_language(text) == "de" for text in texts]))
    n = examples.n_examples
    chosen = [np.random.default_rng(seed).permutation(n) < n // 2 for seed in range(DEMO_SPLITS)]
    return [(examples.where(training), examples.where(~training)) for training in chosen]


def fitted(create: Callable[[], Pipeline], of: Parts, measures: Sequence[str]) -> Result:
    """Fit a pipeline on each split, and return the means of measures on the test parts.

    Returns:
        By name, the means of the measures (``subset_accuracy`` too), of ``features`` and of the CPU
        ``seconds``.
    """
    rows = []
    for training, test in of:
        pipeline = create()
        seconds = timed_fit(pipeline, training)
        values = pipeline.evaluate(test).measures
        values |= {"subset_accuracy": 1 - values["subset_zero_one"], "seconds": seconds}
        rows.append(
            [*(values[measure] for measure in (*measures, "seconds")), len(pipeline.features_.names_)]
        )
    names = (*measures, "seconds", "features")
    return {name: round(float(mean), 5) for name, mean in zip(names, np.mean(rows, axis=0), strict=True)}


def signed(value: float) -> str:
    """Return a difference with its sign.

    >>> signed(-0.25), signed(0.0)
    ('−.250', '+.000')
    """
    return ("−" if value < 0 else "+") + figure(abs(value))
