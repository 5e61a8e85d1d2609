"""The corpora: their records, as bodies of uploads, and as examples in memory, each with its split.

``COVEY_DATA`` is their folder (default: ``../shared/data``, from the root of the repository).
"""

from __future__ import annotations

import gzip
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from models.arrays import Ints, Labels, Matrix
from models.data.digests import document_groups
from models.data.examples import Examples, Split
from models.data.ingestion.ingest import ingest
from models.data.readers.svmlight import SVMLightOptions
from models.data.store import StoredExamples
from models.features import TextFeatures, TextFeaturesParameters
from models.labels import LabelTree
from models.labels.indicator_matrix import collect_labels, indicator_matrix
from models.splits import TRAINING, stratified_folds, stratified_split

Json = dict[str, Any]

FOLDER = Path(os.environ.get("COVEY_DATA", Path(__file__).parents[2] / "shared" / "data"))


class MissingCorpusError(RuntimeError):
    """A corpus is not on this machine; the message says how to get it."""


def path_of(name: str) -> Path:
    """Return the path of a corpus file.

    Raises:
        MissingCorpusError: If the file does not exist.
    """
    path = FOLDER / name
    if not path.exists():
        raise MissingCorpusError(f"no {path}; set COVEY_DATA to the folder of the corpora")
    return path


# Records


def records(name: str) -> Iterator[Json]:
    """Yield the records of a gzipped JSON Lines file, which is named without its ending."""
    with gzip.open(path_of(f"{name}.jsonl.gz"), "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def reuters(split: str) -> list[Json]:
    """Return a part of Reuters-21578, ModApte split: 9,603 or 3,299 stories, 115 labels."""
    return [row for row in records("reuters21578") if row["split"] == split]


def reuters_90() -> list[Json]:
    """Return the stories with any of the 90 labels that occur in both parts, without other labels."""
    rows = list(records("reuters21578"))
    parts = [labels_of(row for row in rows if row["split"] == split) for split in ("train", "test")]
    both = {*parts[0]} & {*parts[1]}
    kept = ({**row, "labels": [label for label in row["labels"] if label in both]} for row in rows)
    return [row for row in kept if row["labels"]]


def labelled_reuters() -> list[Json]:
    """Return the labelled stories of Reuters-21578, ModApte split: 7,775 and 3,019, 118 labels."""
    return [row for row in records("reuters21578") if row["labels"]]


def rcv1() -> list[Json]:
    """Return a part of RCV1-v2: 2 × 3,000 stories as sets of 944 terms, 102 topics with all ancestors."""
    return [{name: row[name] for name in ("id", "text", "labels", "split")} for row in records("rcv1subset1")]


def mulan_rows(name: str) -> list[Json]:
    """Return a Mulan data set with the training part first. Each row contains its split."""
    about = json.loads(path_of(f"mulan/{name}.meta.json").read_text())
    rows = []
    for split in ("train", "test"):
        with gzip.open(path_of(f"mulan/{name}-{split}.svm.gz"), "rt") as lines:
            for i, line in enumerate(lines):
                labels, _, values = line.partition(" ")
                pairs = (pair.split(":") for pair in values.split())
                rows.append(
                    {
                        "id": f"{split}/{i}",
                        "features": {about["features"][int(f) - 1]: float(x) for f, x in pairs},
                        "labels": [about["labels"][int(j)] for j in labels.split(",") if j],
                        "split": split,
                    }
                )
    return rows


def jsonl(rows: Iterable[Json]) -> bytes:
    """Return records as JSON Lines."""
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def folds(rows: Sequence[Json], n_folds: int) -> list[bytes]:
    """Return one copy of the records per fold, with this fold as the test part.

    The folds are the same as those of an experiment with seed 0, except that equal documents, of which the
    corpora have few, can be in different folds.
    """
    fold_of = stratified_folds(indicator(rows, labels_of(rows)), n_folds, seed=0).tolist()
    return [
        jsonl(
            {**row, "split": "test" if at == fold else "train"} for row, at in zip(rows, fold_of, strict=True)
        )
        for fold in range(n_folds)
    ]


# Matrices of records, for what needs no pipeline


@dataclass(frozen=True)
class Problem:
    """A training part and a test part as matrices, with the labels of the columns of Y."""

    X: Matrix
    Y: Labels
    X_test: Matrix
    Y_test: Labels
    labels: list[str]
    n_terms: int


def labels_of(rows: Iterable[Json]) -> list[str]:
    """Return the labels that records have, sorted."""
    return sorted({label for row in rows for label in row["labels"]})


def indicator(rows: Sequence[Json], labels: Sequence[str]) -> Labels:
    """Return (rows, labels) which row has which of the labels."""
    return indicator_matrix([row["labels"] for row in rows], labels)


def text_problem(
    training: Sequence[Json], test: Sequence[Json], features: Json, labels: Sequence[str] | None = None
) -> Problem:
    """Convert records to matrices, with features that are fitted on the training part.

    Args:
        training: records with text and labels.
        test: other records.
        features: as in a training request.
        labels: the labels; by default those of the training part.
    """
    chosen = sorted(labels if labels is not None else labels_of(training))
    found = TextFeatures(TextFeaturesParameters.model_validate(features))
    Y = indicator(training, chosen)
    X = found.fit_transform([row["text"] for row in training], Y)
    X_test = found.transform([row["text"] for row in test])
    return Problem(X, Y, X_test, indicator(test, chosen), chosen, int(found.summary_.facts["terms"]))


def ccat_tree() -> dict[str, str]:
    """Return the 33 topics of RCV1 below CCAT with their parents."""
    tree = LabelTree(json.loads(path_of("rcv1_topics_hierarchy.json").read_text())["parents"])
    below = [label for label in tree.labels if "CCAT" in tree.ancestors(label)]
    return {label: tree.parents[label] for label in below}


def ccat_rows() -> list[Json]:
    """Return 2,500 training documents and all test documents of RCV1, with only the labels of the family."""
    family = {"CCAT", *ccat_tree()}
    rows = rcv1()
    chosen = [row for row in rows if row["split"] == "train"][:2500]
    chosen += [row for row in rows if row["split"] == "test"]
    return [{**row, "labels": [label for label in row["labels"] if label in family]} for row in chosen]


def ccat_problem() -> tuple[Problem, Ints]:
    """Return the CCAT family as unit-length tf-idf, and the parents of its 34 labels."""
    rows = ccat_rows()
    training, test = ([row for row in rows if row["split"] == split] for split in ("train", "test"))
    tree = ccat_tree()
    labels = sorted({"CCAT", *tree})
    features = {"kind": "text", "weighting": "tfidf", "scaling": "unit"}
    return text_problem(training, test, features, labels), LabelTree(tree).parent_indices(labels)


@cache
def reuters_problem(**features: str | int) -> Problem:
    """Return Reuters-21578 as text features: lower case, no numbers or stop words, Porter stems.

    Args:
        features: parameters such as ``weighting``; ``count`` keeps only the most frequent terms.
    """
    analyzer = {"drop_numbers": True, "stop_words": "english", "stemmer": "porter"}
    parameters: Json = {"kind": "text", "analyzer": analyzer, **features}
    if count := parameters.pop("count", None):
        parameters["selection"] = {"kind": "document_frequency", "count": count}
    return text_problem(reuters("train"), reuters("test"), parameters)


def large(g: int, r: int = 25_000, k: int = 103, words: int = 75) -> tuple[Matrix, Labels]:
    """Generate g documents with the shape of RCV1: frequent words have low numbers, and labels their own.

    Returns:
        (g, r) unit-length weights of ``words`` random words for each document, and (g, k) one or two labels.
    """
    rng = np.random.default_rng(0)
    first = np.minimum(rng.geometric(0.05, size=g) - 1, k - 1)
    second = rng.integers(0, k, size=g)
    indices = (r * rng.random((g, words), dtype=np.float32) ** 2).astype(np.int32)
    indices[:, :8] = (first[:, np.newaxis] * 37 + rng.integers(0, 20, size=(g, 8))) % r
    indices[:, 8:12] = (second[:, np.newaxis] * 37 + rng.integers(0, 20, size=(g, 4))) % r
    X = csr_array(
        (np.full(indices.size, words**-0.5), indices.ravel(), np.arange(0, indices.size + 1, words)),
        shape=(g, r),
    )
    X.sum_duplicates()
    labels = np.sort(np.column_stack([first, second]), axis=1)
    Y = csr_array((np.ones(2 * g, dtype=np.int8), labels.ravel(), np.arange(0, 2 * g + 1, 2)), shape=(g, k))
    Y.sum_duplicates()
    Y.data[:] = 1
    return X, Y


# Examples, as pipelines read them


def _read(content: bytes, form: str | None, split: Split | None = None, **options: Any) -> Examples:
    """Ingest a file; its examples have their own split, or that of the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "set.parquet"
        ingest(io.BytesIO(content), form, path, tree=None, **options)
        examples = Examples.concatenate(list(StoredExamples(path).batches()))
    return examples if split is None else replace(examples, split_column=[split] * examples.n_examples)


def _texts(name: str, change: Callable[[Json], Json] = lambda row: row) -> Examples:
    return _read(jsonl(map(change, records(name))), "jsonl")


def without_headers(row: Json) -> Json:
    """Return an article without its headers."""
    return {**row, "text": row["text"].partition("\n\n")[2]}


def _mulan(name: str) -> Examples:
    about = json.loads(path_of(f"mulan/{name}.meta.json").read_text(encoding="utf-8"))
    options = SVMLightOptions(format="svmlight", label_names=about["labels"], feature_names=about["features"])
    parts: tuple[Split, Split] = ("train", "test")
    return Examples.concatenate(
        [
            _read(
                gzip.decompress(path_of(f"mulan/{name}-{part}.svm.gz").read_bytes()),
                "svmlight",
                part,
                options=options,
            )
            for part in parts
        ]
    )


def _hierarchical_arff(training: Iterable[str], test: str) -> Examples:
    files: list[tuple[Split, str]] = [*(("train", name) for name in training), ("test", test)]
    return Examples.concatenate(
        [
            _read(gzip.decompress(path_of(f"hmc/{name}.arff.gz").read_bytes()), None, split)
            for split, name in files
        ]
    )


MULAN = ("yeast", "scene", "emotions", "medical", "genbase", "bibtex", "tmc2007-500", "ohsumed")

EXAMPLES: dict[str, Callable[[], Examples]] = {
    "reuters": partial(_texts, "reuters21578"),
    "20newsgroups": partial(_texts, "20newsgroups", without_headers),
    "lists": partial(_texts, "spamassassin_lists"),
    "rcv1": lambda: _read(jsonl(rcv1()), "jsonl"),
    **{name: partial(_mulan, name) for name in MULAN},
    "imclef07a": partial(_hierarchical_arff, ["ImCLEF07A_Train"], "ImCLEF07A_Test"),
    "cellcycle": partial(
        _hierarchical_arff, ["cellcycle_FUN.train", "cellcycle_FUN.valid"], "cellcycle_FUN.test"
    ),
}
"""Reads each corpus."""

MEASUREMENTS = {"yeast", "scene", "emotions", "genbase", "imclef07a", "cellcycle"}
"""Corpora whose features have different units. The numbers of the others are words."""


def split(examples: Examples, how: str = "given", seed: int = 0) -> tuple[Examples, Examples]:
    """Return the training part and the test part of a corpus.

    Args:
        examples: the corpus.
        how: "given" for the corpus' own split; "stratified" for one with a test part of the same size, in
            which every label is about as frequent as in the training part.
        seed: seed of the stratified split.
    """
    test = np.array([part == "test" for part in examples.splits()])
    if how == "stratified":
        Y = indicator_matrix(examples.labels, collect_labels(examples.labels))
        groups = document_groups(examples)
        test = stratified_split(Y, [float(test.mean())], seed=seed, groups=groups) != TRAINING
    return examples.where(~test), examples.where(test)
