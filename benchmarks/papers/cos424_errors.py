"""COS 424, question 7b: five documents per corpus with wrong predictions, and explanations."""

from __future__ import annotations

from functools import partial

from benchmarks.papers.bench import Bench, Json
from benchmarks.papers.cos424 import CORPORA, trained
from benchmarks.papers.results import table

TITLE = "COS 424, question 7b: error analysis"

N_ERRORS = 5
N_TERMS = 4


def _measure(corpus: str, bench: Bench) -> Json:
    """Return the largest errors of the first fold: labels, scores and terms."""
    job = trained(bench, corpus)[0]
    documents = []
    for document in bench.evaluation(job)["test"]["worst"][:N_ERRORS]:
        scores = {score["label"]: score["score"] for score in document["scores"]}
        terms = {
            one["label"]: [[term["term"], term["weight"]] for term in one["terms"]]
            for one in document["explanation"]
        }
        has, got = document["labels"][0], document["predicted"][0]
        documents.append(
            {
                "id": document["id"],
                "true": [has, scores[has]],
                "predicted": [got, scores[got]],
                "terms_for": [term for term in terms[got] if term[1] > 0][:N_TERMS],
                "terms": terms[has][:N_TERMS],
            }
        )
    return {"documents": documents}


RESULTS = {corpus: partial(_measure, corpus) for corpus in CORPORA}


def render(figures: dict[str, Json]) -> str:
    """Return the largest errors, and the explanations of a reader."""
    parts = "\n\n".join(_part(corpus, found) for corpus, found in figures.items())
    return f"""\
The {N_ERRORS} documents of the first fold with the largest errors of the training that held the fold out: the score of the
predicted label exceeds the score of the true label by the largest margin. These errors are not typical; typical errors are
close. The tables show the terms with the largest weight for the predicted label, and for and against the true label. A term
adds the same weight wherever and however often it occurs in a document. The lists below the tables explain the errors after
reading the documents.

{parts}
"""


def _part(corpus: str, found: Json) -> str:
    documents = found["documents"]
    remarks = "\n".join(
        f"- `{document['id']}`: {REMARKS[document['id']]}."
        for document in documents
        if document["id"] in REMARKS
    )
    return f"### {CORPORA[corpus].title}\n\n{table(_HEAD, [_row(document) for document in documents])}\n\n{remarks}"


_HEAD = (
    "document",
    "true label (score)",
    "predicted label (score)",
    "terms for the predicted label",
    "terms of the true label",
)


def _row(document: Json) -> list[str]:
    has, got = document["true"], document["predicted"]
    return [
        f"`{document['id']}`",
        f"{has[0]} ({has[1]:.2f})",
        f"{got[0]} ({got[1]:.2f})",
        _terms(document["terms_for"]),
        _terms(document["terms"]),
    ]


def _terms(terms: list[tuple[str, float]]) -> str:
    return ", ".join(f"`{term}` {weight:+.2f}" for term, weight in terms) or "none"


REMARKS = {
    "sci.electronics/53816": """\
an offer for sale, which does not belong in the group, so the label is wrong; a signature about gun laws adds to the error""",
    "comp.sys.mac.hardware/51640": "a processor for sale, so again the label is wrong; `ohio` is only the sender's address",
    "sci.electronics/53886": """\
a question and answer about the chips of a game console, which ends with an offer to sell two; `million` is part of a thank-you""",
    "comp.sys.mac.hardware/50443": """\
an argument about a lawsuit, almost entirely quoted; `theodore` is the quoted author, `gun` is part of "smoking gun"; nothing is about hardware""",
    "sci.electronics/54097": "a transmitter tube for sale, so again the label is wrong",
    "2228": """\
about a refused rate cut and equally about the pound; a reader would assign both labels, but the story has only one""",
    "5295": """\
mostly about purchases of shares and a cancelled merger; only one paragraph is about the loss, the reason for the label `earn`""",
    "12317": "a dividend that is not paid because of a takeover offer; most words are about the offer",
    "11611": """\
two lines in which `vs` compares acres instead of profits; the only informative word is `sugarbeet`, which does not match `sugar` without a stemmer""",
    "12073": """\
first about interest rates, then about third-world debt, in words of monetary stories; no weak hypothesis uses the position of words""",
}
"""Explanations of the errors by document id."""
