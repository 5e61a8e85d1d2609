"""COS 424, question 7a: cross-validated confusion matrices."""

from __future__ import annotations

from collections import Counter
from functools import partial

from benchmarks.papers.bench import Bench, Json
from benchmarks.papers.cos424 import CORPORA, N_FOLDS, trained
from benchmarks.papers.results import table

TITLE = "COS 424, question 7a: confusion matrices"

N_PAIRS = 6


def _measure(corpus: str, bench: Bench) -> Json:
    """Return the sizes of the classes, the shares of predictions by class, and the share of correct ones."""
    counts: Counter[tuple[str, str]] = Counter()
    for job in trained(bench, corpus):
        for pair in bench.evaluation(job)["test"]["confusion"]:
            counts[pair["label"], pair["predicted"]] += pair["count"]
    labels = sorted({label for pair in counts for label in pair})
    sizes = {label: sum(counts[label, other] for other in labels) for label in labels}
    return {
        "sizes": sizes,
        "shares": {one: [counts[one, other] / sizes[one] for other in labels] for one in labels},
        "correct": sum(counts[label, label] for label in labels) / sum(sizes.values()),
    }


RESULTS = {corpus: partial(_measure, corpus) for corpus in CORPORA}


def render(figures: dict[str, Json]) -> str:
    """Return a matrix per corpus, in percent of each class, with the most frequent confusions."""
    parts = "\n\n".join(_part(corpus, found) for corpus, found in figures.items())
    return f"""\
Percentage of the documents of the row's class for which the training that held them out predicts the column's class, over
{N_FOLDS} folds. Values below {LEAST} are omitted.

{parts}
"""


LEAST = 0.05


def _part(corpus: str, found: Json) -> str:
    labels, shares = list(found["sizes"]), found["shares"]
    rows = [
        [
            f"{label} ({size:,})",
            *(
                _bold(100 * share, own=label == other)
                for other, share in zip(labels, shares[label], strict=True)
            ),
        ]
        for label, size in found["sizes"].items()
    ]
    mistakes = sorted(
        (-share, one, other)
        for one in labels
        for other, share in zip(labels, shares[one], strict=True)
        if one != other
    )
    worst = "; ".join(
        f"{one} predicted as {other} ({-100 * share:.1f} %)" for share, one, other in mistakes[:N_PAIRS]
    )
    return f"""\
### {CORPORA[corpus].title}

{table(["", *labels], rows)}

{100 * found["correct"]:.1f} % of the predictions are correct. The most frequent confusions: {worst}.
{_REMARKS[corpus]}"""


_REMARKS = {
    "newsgroups": """\
Most of these are plausible: guns are a political topic, and the hardware groups share chips, boards, and offers for sale.""",
    "reuters": """\
These are plausible: stories on central banks mention both currencies and interest rates, ships carry oil, and many stories on
companies read like acquisitions. The small classes lose documents to `acq` and `earn`, which are three quarters of all.""",
}
"""Explanations of the most frequent confusions."""


def _bold(value: float, *, own: bool) -> str:
    shown = f"{value:.1f}" if value >= LEAST else ""
    return f"**{shown}**" if own and shown else shown
