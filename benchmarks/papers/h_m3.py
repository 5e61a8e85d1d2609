"""Shared code of the H-M3 parts: data sets with label trees, and learners."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.papers import corpora
from benchmarks.papers.bench import Bench, Json

LOSSES = ("zero_one", "symmetric_difference", "hierarchical_sibling", "hierarchical_subtree")

TRAINING_DOCUMENTS = 2500


@dataclass(frozen=True)
class Problem:
    """A data set with a label tree and its features."""

    title: str
    content: Callable[[], bytes]
    form: str
    features: Json
    tree: Callable[[], Json | None]

    def dataset(self, bench: Bench) -> str:
        """Upload the data set and return its id."""
        return bench.dataset(self.title, self.content, tree=self.tree(), format=self.form)


def parents() -> dict[str, str]:
    """Return the parent of each RCV1 topic except the roots."""
    found: dict[str, str] = json.loads(corpora.path_of("rcv1_topics_hierarchy.json").read_text())["parents"]
    return {topic: parent for topic, parent in found.items() if parent != "Root"}


def ccat_tree() -> Json:
    """Return the 33 topics below CCAT with their parents."""
    above = parents()

    def root(topic: str) -> str:
        return root(above[topic]) if topic in above else topic

    return {topic: parent for topic, parent in above.items() if root(topic) == "CCAT"}


def _ccat_rows() -> list[dict[str, Any]]:
    """Return the first 2,500 training documents and all test documents, with only the labels of the family."""
    family = {"CCAT", *ccat_tree()}
    rows = list(corpora.records("rcv1subset1.jsonl.gz"))
    chosen = [row for row in rows if row["split"] == "train"][:TRAINING_DOCUMENTS]
    chosen += [row for row in rows if row["split"] == "test"]
    return [
        {
            "id": row["id"],
            "text": row["text"],
            "labels": [label for label in row["labels"] if label in family],
            "split": row["split"],
        }
        for row in chosen
    ]


def _ccat() -> bytes:
    return corpora.jsonl(_ccat_rows())


def _ccat_only() -> bytes:
    return corpora.jsonl(row for row in _ccat_rows() if row["labels"])


def _imclef() -> bytes:
    """Return both files in one zip. Their names determine the split."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for part in ("Train", "Test"):
            with gzip.open(corpora.path_of(f"hmc/ImCLEF07A_{part}.arff.gz")) as file:
                archive.writestr(f"ImCLEF07A-{part.lower()}.arff", file.read())
    return packed.getvalue()


TFIDF: Json = {"kind": "text", "weighting": "tfidf", "scaling": "unit", "analyzer": {}}

CCAT = Problem("CCAT family of RCV1", _ccat, "jsonl", TFIDF, ccat_tree)
CCAT_ONLY = Problem("CCAT family of RCV1, its documents only", _ccat_only, "jsonl", TFIDF, ccat_tree)
IMCLEF = Problem("ImCLEF07A", _imclef, "arff", {"kind": "numeric", "scaling": "unit"}, lambda: None)

PAPER_LEARNERS: dict[str, Json] = {
    "SVM": {"algorithm": "svm"},
    "H-SVM": {"algorithm": "h_svm"},
    "H-RLS": {"algorithm": "h_rls"},
    "H-M³-ℓΔ": {"algorithm": "h_m3", "loss": "symmetric_difference"},
    "H-M³-ℓH̃": {"algorithm": "h_m3", "loss": "simplified_hierarchical"},
}
"""The rows of table 1."""

CONSTANT: Json = {"kind": "polynomial", "degree": 1}

VARIANTS: dict[str, Json] = {
    "H-M³-ℓH̃, sibling": {**PAPER_LEARNERS["H-M³-ℓH̃"], "scaling": "sibling"},
    "H-M³-ℓH̃, subtree": {**PAPER_LEARNERS["H-M³-ℓH̃"], "scaling": "subtree"},
    "H-M³-ℓΔ, constant": {**PAPER_LEARNERS["H-M³-ℓΔ"], "kernel": CONSTANT},
    "H-M³-ℓH̃, constant": {**PAPER_LEARNERS["H-M³-ℓH̃"], "kernel": CONSTANT},
}
"""Other possible interpretations of the paper."""


def compared(bench: Bench, problem: Problem, learners: dict[str, Json]) -> Json:
    """Return the report of an experiment with these learners and the tree losses."""
    return bench.experiment(
        {
            "name": f"H-M3 on {problem.title}",
            "dataset_id": problem.dataset(bench),
            "split": {"kind": "given"},
            "configurations": [
                {
                    "name": name,
                    "features": problem.features,
                    "learner": learner,
                    "decision": {"kind": "sign"},
                }
                for name, learner in learners.items()
            ],
            "measures": list(LOSSES),
        }
    )
