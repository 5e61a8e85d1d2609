"""COS 424, question 7 (b): five documents of each corpus that boosting gets wrong, and why."""

from __future__ import annotations

from benchmarks.papers.bench import Bench, Json
from benchmarks.papers.cos424 import CORPORA, trained
from benchmarks.papers.results import table

TITLE = "COS 424, question 7b: errors looked at"

N_ERRORS = 5
N_TERMS = 4


def run(bench: Bench) -> str:
    """The first fold's surest errors: labels, terms, and what a reader makes of them."""
    parts = "\n\n".join(_part(bench, corpus) for corpus in CORPORA)
    return f"""\
The {N_ERRORS} documents of the first fold on which the training that held it out was furthest off: where the score of the
label given exceeds that of the label that they have by most. These are not typical: typical errors are close. Terms are
those that spoke most for the label given, and most for and against the label that they have.

{parts}
"""


def _part(bench: Bench, corpus: str) -> str:
    job = trained(bench, corpus)[0]
    worst = bench.evaluation(job)["test"]["worst"][:N_ERRORS]
    return f"### {CORPORA[corpus].title}\n\n{table(_HEAD, [_row(document) for document in worst])}"


_HEAD = (
    "document",
    "has (score)",
    "got (score)",
    "terms for what it got",
    "terms of what it has",
    "what happened",
)


def _row(document: Json) -> list[str]:
    has, got = document["labels"][0], document["predicted"][0]
    scores = {score["label"]: score["score"] for score in document["scores"]}
    terms = {one["label"]: one["terms"] for one in document["explanation"]}
    return [
        f"`{document['id']}`",
        f"{has} ({scores[has]:.2f})",
        f"{got} ({scores[got]:.2f})",
        _terms([term for term in terms[got] if term["weight"] > 0]),
        _terms(terms[has]),
        REMARKS.get(document["id"], ""),
    ]


def _terms(terms: list[Json]) -> str:
    return ", ".join(f"`{term['term']}` {term['weight']:+.2f}" for term in terms[:N_TERMS]) or "none"


REMARKS: dict[str, str] = {}
"""What a reader of the documents makes of the errors, by their ids."""
