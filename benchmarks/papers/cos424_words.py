"""COS 424, question 5: the words that boosting selects, by round and fold."""

from __future__ import annotations

from benchmarks.papers.bench import Bench
from benchmarks.papers.cos424 import CORPORA, N_FOLDS, trained
from benchmarks.papers.results import table

TITLE = "COS 424, question 5: words by round and fold"

N_SHOWN = 25


def run(bench: Bench) -> str:
    """Return a table of words per corpus, and how far the folds agree."""
    parts = "\n\n".join(_part(bench, corpus) for corpus in CORPORA)
    return f"""\
The words that each training without the fold selected. Some words identify a class by its subject, others by its authors and
their style: `dod` is a motorcycle club, `cramer`, `keith` and `livesey` are names of frequently quoted authors, and `writes`
introduces quotations, which are rare in offers for sale.

{parts}
"""


def _part(bench: Bench, corpus: str) -> str:
    words = [bench.version(job)["facts"]["first_pivots"] for job in trained(bench, corpus)]
    by_round = list(zip(*words, strict=False))
    rows = [[str(n), *(f"`{word}`" for word in some)] for n, some in enumerate(by_round[:N_SHOWN], start=1)]
    agree = [len(set(some)) == 1 for some in by_round]
    alike = agree.index(False) if False in agree else len(agree)
    counts = "; of the ".join(
        f"first {n} rounds, {sum(agree[:n])} have the same word in all folds, and of the "
        f"{len(set().union(*(set(some[:n]) for some in words)))} words selected in any fold, "
        f"{len(set.intersection(*(set(some[:n]) for some in words)))} are selected in all"
        for n in (N_SHOWN, 100)
        if n <= len(by_round)
    )
    return f"""\
### {CORPORA[corpus].title}

{table(["round", *(f"fold {fold + 1}" for fold in range(N_FOLDS))], rows)}

The words vary: all folds select the same word until round {alike}, and then often the same words in another order.
Of the {counts}."""
