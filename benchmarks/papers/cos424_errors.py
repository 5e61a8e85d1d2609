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
those that spoke most for the label given, and most for and against the label that they have; a term adds the same to a
document wherever, and however often, it stands there. Below the tables, what a reader makes of the documents.

{parts}
"""


def _part(bench: Bench, corpus: str) -> str:
    job = trained(bench, corpus)[0]
    worst = bench.evaluation(job)["test"]["worst"][:N_ERRORS]
    told = "\n".join(
        f"- `{document['id']}`: {REMARKS[document['id']]}." for document in worst if document["id"] in REMARKS
    )
    return f"### {CORPORA[corpus].title}\n\n{table(_HEAD, [_row(document) for document in worst])}\n\n{told}"


_HEAD = (
    "document",
    "has (score)",
    "got (score)",
    "terms for what it got",
    "terms of what it has",
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
    ]


def _terms(terms: list[Json]) -> str:
    return ", ".join(f"`{term['term']}` {term['weight']:+.2f}" for term in terms[:N_TERMS]) or "none"


REMARKS = {
    "sci.electronics/53816": """\
an offer for sale that does not belong to the group, so the group is what is wrong; a signature on gun laws adds to it""",
    "comp.sys.mac.hardware/51640": "a processor for sale: the same, and `ohio` is but the sender's address",
    "sci.electronics/53886": """\
a proper question and answer on a game console's chips, ending in an offer to sell two; `million` was thanks""",
    "comp.sys.mac.hardware/50443": """\
a quarrel over a lawsuit, nearly all of it quoted: `theodore` is whom it quotes, `gun` a smoking one; no word of hardware""",
    "sci.electronics/54097": "a transmitter tube for sale: the group is wrong once more",
    "2228": """\
on a rate cut refused, and on the pound as much: a reader would give both labels, and the story has only one""",
    "5295": """\
mostly on who buys shares of whom, and on a merger called off; the loss that made it `earn` is one paragraph""",
    "12317": "a dividend not paid because of a takeover offer; the words are those of the offer",
    "11611": """\
two lines, in which `vs` compares acres and not profits; the only telling word, `sugarbeet`, is not `sugar` without a stemmer""",
    "12073": """\
on interest rates at first, then on debt of the third world, in the words of monetary stories; no rule sees the headline""",
}
"""What a reader of the documents makes of the errors, by their ids."""
