"""COS 424, question 7 (a): the cross-validated confusion matrices."""

from __future__ import annotations

from collections import Counter

from benchmarks.papers.bench import Bench
from benchmarks.papers.cos424 import CORPORA, N_FOLDS, trained
from benchmarks.papers.results import table

TITLE = "COS 424, question 7a: confusion matrices"

N_PAIRS = 6


def run(bench: Bench) -> str:
    """A matrix for each corpus, in per cent of each class, with its most frequent confusions."""
    parts = "\n\n".join(_part(bench, corpus) for corpus in CORPORA)
    return f"""\
Per cent of the documents of a row's class that were given a column's class by the training that held them out, over
{N_FOLDS} folds; below 0.05 is left blank.

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
        f"{one} taken for {other} ({share[one, other]:.1f} %)" for one, other in mistakes[:N_PAIRS]
    )
    right = sum(counts[label, label] for label in labels) / sum(sizes.values())
    return f"""\
### {CORPORA[corpus].title}

{table(["", *labels], rows)}

{100 * right:.1f} % are right. The most frequent confusions: {worst}.
{_REMARKS[corpus]}"""


_REMARKS = {
    "newsgroups": """\
Most of them make sense: guns are a matter of politics, and groups on hardware share chips, boards, and things that readers
would like to sell.""",
    "reuters": """\
They make sense: central banks move currencies and interest rates in the same stories, ships carry oil, and whatever a company
does may read as a purchase. The small classes suffer beside `acq` and `earn`, which are three quarters of all.""",
}
"""Whether that makes sense."""


def _bold(value: float, *, own: bool) -> str:
    shown = f"{value:.1f}" if value >= 0.05 else ""
    return f"**{shown}**" if own and shown else shown
