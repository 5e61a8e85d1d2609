"""MP-Boost, table 1: number of distinct pivots."""

from __future__ import annotations

from benchmarks.papers.bench import Bench
from benchmarks.papers.mp_boost import ALGORITHMS, KEYS, column, rounds, trainings
from benchmarks.papers.results import table, with_paper

TITLE = "MP-Boost, table 1: distinct pivots"

PAPER = {
    ("reuters", "full", "adaboost_mh"): (5, 10, 20, 50, 98, 192, 433, 766),
    ("reuters", "full", "mp_boost"): (4.5, 8.4, 15.0, 30.6, 50.1, 79.8, 136.6, 191.7),
    ("reuters", "reduced", "adaboost_mh"): (5, 10, 20, 50, 98, 192, 433, 703),
    ("reuters", "reduced", "mp_boost"): (4.5, 8.4, 15.1, 31.3, 51.1, 81.4, 134.7, 181.5),
}
"""The paper's Δ after 5, 10, 20, 50, 100, 200, 500 and 1,000 rounds; for MP-Boost the mean over labels."""


def run(bench: Bench) -> str:
    """Return the distinct pivots by round, corpus, features and learner."""
    found = trainings(bench)
    columns = [(*key, algorithm) for key in KEYS for algorithm in ALGORITHMS]
    rows = [
        [
            f"{n:,}",
            *(
                with_paper(found[(*key, n)]["facts"]["distinct_pivots"], PAPER.get(key, ()), place, "{:.1f}")
                for key in columns
            ),
        ]
        for place, n in enumerate(rounds(bench))
    ]
    head = ["rounds", *(f"{column(corpus, terms)}: `{algorithm}`" for corpus, terms, algorithm in columns)]
    return f"""\
Rounds with the same pivot are merged into one test (section 2.2 of the paper). The table shows the number of tests in a
model; for `mp_boost`, the mean over its labels. The RCV1 part has 3,000 documents and 944 terms instead of 23,149 and
55,051, so its columns show only the shape.

{table(head, rows)}

`adaboost_mh` agrees with the paper. The means of `mp_boost` are lower than the paper's because of rare labels. If a single
term identifies a label, the label selects this term again in each round, because ties go to the first term. Therefore some
labels have one pivot after any number of rounds. The paper does not state how it resolves ties.
"""
