"""Shared code of the COS 424 parts: the two corpora of the assignment and the trainings by fold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.papers import corpora
from benchmarks.papers.bench import Bench, Json

N_FOLDS = 5
ROUNDS = 500
QUICK_ROUNDS = 25

ANALYZER: Json = {"drop_numbers": True, "stop_words": "english", "min_length": 2}
SELECTION: Json = {"kind": "document_frequency", "count": 10_000}

DATA = """\
The assignment does not state which ten newsgroups and ten Reuters categories it uses. We use every second of the twenty
newsgroups by name, without headers and with quotations, and the ten categories of Reuters-21578 with the most single-label
stories, from both parts of the ModApte split. Terms are lower-case words of at least two letters, without numbers and stop
words and without stemming: the 10,000 words that occur in the most training documents of a fold."""


@dataclass(frozen=True)
class Corpus:
    """A data set with exactly one label per document."""

    title: str
    rows: Callable[[], list[dict[str, Any]]]


def newsgroups() -> list[dict[str, Any]]:
    """Return the articles of every second newsgroup by name, without headers."""
    rows = list(corpora.records("20newsgroups.jsonl.gz"))
    chosen = set(sorted({row["labels"][0] for row in rows})[::2])
    return [
        {"id": row["id"], "text": row["text"].partition("\n\n")[2], "labels": row["labels"]}
        for row in rows
        if row["labels"][0] in chosen
    ]


def reuters() -> list[dict[str, Any]]:
    """Return the single-label stories of the ten labels with the most single-label stories."""
    rows = [row for row in corpora.records("reuters21578.jsonl.gz") if len(set(row["labels"])) == 1]
    counts = Counter(row["labels"][0] for row in rows)
    chosen = set(sorted(counts, key=lambda label: (-counts[label], label))[:10])
    return [
        {"id": row["id"], "text": row["text"], "labels": row["labels"][:1]}
        for row in rows
        if row["labels"][0] in chosen
    ]


CORPORA = {
    "newsgroups": Corpus("Ten newsgroups", newsgroups),
    "reuters": Corpus("Ten Reuters categories", reuters),
}


def rows_of(bench: Bench, corpus: str) -> list[dict[str, Any]]:
    """Return the documents of a corpus; for small versions, about 1,000 of them."""
    rows = CORPORA[corpus].rows()
    return rows[:: len(rows) // 1_000] if bench.quick else rows


def boosting(bench: Bench) -> Json:
    """Return the configuration of AdaBoost.MH that predicts the label with the highest score."""
    return {
        "features": {"kind": "text", "weighting": "binary", "analyzer": ANALYZER, "selection": SELECTION},
        "learner": {"algorithm": "adaboost_mh", "rounds": QUICK_ROUNDS if bench.quick else ROUNDS},
        "decision": {"kind": "single_label"},
    }


def naive_bayes(alpha: float = 1.0) -> Json:
    """Return the configuration of multinomial naive Bayes on the counts of the same words."""
    return {
        "features": {"kind": "text", "weighting": "tf", "analyzer": ANALYZER, "selection": SELECTION},
        "learner": {"algorithm": "naive_bayes", "label_mode": "single_label", "alpha": alpha},
        "decision": {"kind": "single_label"},
    }


def svm(C: float) -> Json:
    """Return the configuration of one linear SVM for each class, on tf-idf of the same words."""
    return {
        "features": {
            "kind": "text",
            "weighting": "tfidf",
            "scaling": "unit",
            "analyzer": ANALYZER,
            "selection": SELECTION,
        },
        "learner": {"algorithm": "svm", "C": C},
        "decision": {"kind": "single_label"},
    }


def trained(bench: Bench, corpus: str) -> list[Json]:
    """Train with each fold held out, and return the jobs. The folds are the same as in the curves."""
    rows = rows_of(bench, corpus)
    requests = []
    for fold, body in enumerate(corpora.folds(rows, N_FOLDS)):
        name = f"{CORPORA[corpus].title}, fold {fold + 1}"
        dataset = bench.dataset(name, lambda body=body: body)  # type: ignore[misc]
        requests.append({"dataset_id": dataset, "split": {"kind": "given"}, **boosting(bench)})
    return bench.train(requests)
