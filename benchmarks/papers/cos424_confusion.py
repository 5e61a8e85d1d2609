"""COS 424, question 7a: cross-validated confusion matrices."""

from __future__ import annotations

from collections import Counter

from benchmarks.papers.bench import Bench
from benchmarks.papers.cos424 import CORPORA, N_FOLDS, trained
from benchmarks.papers.results import table

TITLE = "COS 424, question 7a: confusion matrices"

N_PAIRS = 6


def run(bench: Bench) -> str:
    """Return a matrix per corpus, in percent of each class, with the most frequent confusions."""
    parts = "\n\n".join(_part(bench, corpus) for corpus in CORPORA)
    return f"""\
Percentage of the documents of the row's class for which the training that held them out predicts the column's class, over
{N_FOLDS} folds. Values below 0.05 are omitted.

{parts}
"""


def _part(bench: Bench, corpus: str) -> str:
    counts: Counter[tuple[str, str]] = Counter()
    for job in trained(bench, corpus):
        for pair in bench.evaluation(job)["test"]["confusion"]:
            counts[pair["label"], pair["predicted"]] += pair["count"]
    labels = sorted({label for pair in counts for label in pair})
    sizes = {label: sum(counts[label, other] for other in labels) for label in labels}
    share = {pair: 100 * count / sizes[pair[0]] for pair, count in counts.items()}
    rows = [
        [
            f"{label} ({sizes[label]:,})",
            *(_bold(share.get((label, other), 0.0), own=label == other) for other in labels),
        ]
        for label in labels
    ]
    mistakes = sorted((pair for pair in share if pair[0] != pair[1]), key=lambda pair: (-share[pair], pair))
    worst = "; ".join(
        f"{one} predicted as {other} ({share[one, other]:.1f} %)" for one, other in mistakes[:N_PAIRS]
    )
    right = sum(counts[label, label] for label in labels) / sum(sizes.values())
    return f"""\
### {CORPORA[corpus].title}

{table(["", *labels], rows)}

{100 * right:.1f} % of the predictions are correct. The most frequent confusions: {worst}.
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
    shown = f"{value:.1f}" if value >= 0.05 else ""
    return f"**{shown}**" if own and shown else shown
