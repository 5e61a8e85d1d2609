"""COS 424, question 5: the words that boosting selects, by round and fold."""

from __future__ import annotations

from functools import partial

from benchmarks.papers.bench import Bench, Json
from benchmarks.papers.cos424 import CORPORA, N_FOLDS, trained
from benchmarks.papers.results import table

TITLE = "COS 424, question 5: words by round and fold"

N_SHOWN = 25


def _measure(corpus: str, bench: Bench) -> Json:
    """Return the first words of each fold, and how far the folds agree.

    Returns:
        ``words``: for each fold the words of the first rounds. ``alike``: the round until which all folds select
        the same word. ``agreement``: by number of rounds, the rounds with the same word in all folds, the words
        selected in any fold, and the words selected in all.
    """
    words = [bench.version(job)["facts"]["first_pivots"] for job in trained(bench, corpus)]
    by_round = list(zip(*words, strict=False))
    agree = [len(set(some)) == 1 for some in by_round]
    return {
        "words": [some[:N_SHOWN] for some in words],
        "alike": agree.index(False) if False in agree else len(agree),
        "agreement": {
            str(n): [
                sum(agree[:n]),
                len(set().union(*(set(some[:n]) for some in words))),
                len(set.intersection(*(set(some[:n]) for some in words))),
            ]
            for n in (N_SHOWN, 100)
            if n <= len(by_round)
        },
    }


RESULTS = {corpus: partial(_measure, corpus) for corpus in CORPORA}


def render(figures: dict[str, Json]) -> str:
    """Return a table of words per corpus, and how far the folds agree."""
    parts = "\n\n".join(_part(corpus, found) for corpus, found in figures.items())
    return f"""\
The words that each training without the fold selected. Some words identify a class by its subject, others by its authors and
their style: `dod` is a motorcycle club, `cramer`, `keith` and `livesey` are names of frequently quoted authors, and `writes`
introduces quotations, which are rare in offers for sale.

{parts}
"""


def _part(corpus: str, found: Json) -> str:
    by_round = zip(*found["words"], strict=False)
    rows = [[str(n), *(f"`{word}`" for word in some)] for n, some in enumerate(by_round, start=1)]
    counts = "; of the ".join(
        f"first {n} rounds, {same} have the same word in all folds, and of the {some} words selected in any fold, "
        f"{every} are selected in all"
        for n, (same, some, every) in found["agreement"].items()
    )
    return f"""\
### {CORPORA[corpus].title}

{table(["round", *(f"fold {fold + 1}" for fold in range(N_FOLDS))], rows)}

The words vary: all folds select the same word until round {found["alike"]}, and then often the same words in another order.
Of the {counts}."""
