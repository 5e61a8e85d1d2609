"""Exact counts of the public corpora; skipped if the corpora are not installed."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path

import pytest
from corpora import FOLDER, needs

from models.data.ingestion.ingest import ingest
from models.data.ingestion.report import DatasetReport
from models.data.readers.svmlight import SVMLightOptions
from models.data.store import StoredExamples
from models.labels import LabelTree

pytestmark = needs(".")


def read(path: Path, folder: Path, format_: str | None = None) -> DatasetReport:
    with path.open("rb") as stream:
        return ingest(stream, format_, folder / "set.parquet")


def counts(report: DatasetReport) -> tuple[int, int, int]:
    return report.n_examples, report.n_features, report.n_labels


def test_reuters(tmp_path: Path) -> None:
    report = read(FOLDER / "reuters21578.jsonl.gz", tmp_path)
    assert report.splits == {"train": 9603, "validation": 0, "test": 3299, "none": 0}
    assert report.n_labels == 118
    assert report.n_unlabelled == 1828 + 280
    stored = StoredExamples(tmp_path / "set.parquet")
    labels_by_split: dict[str | None, set[str]] = {"train": set(), "test": set()}
    n_unlabelled = {"train": 0, "test": 0}
    for labels, split in zip(stored.label_sets(), stored.splits(), strict=True):
        labels_by_split[split].update(labels)
        n_unlabelled[split or ""] += not labels
    assert n_unlabelled == {"train": 1828, "test": 280}
    assert len(labels_by_split["train"]) == 115
    assert len(labels_by_split["train"] & labels_by_split["test"]) == 90


def test_20newsgroups(tmp_path: Path) -> None:
    report = read(FOLDER / "20newsgroups.jsonl.gz", tmp_path)
    assert report.splits == {"train": 11314, "validation": 0, "test": 7532, "none": 0}
    assert (report.n_labels, report.label_cardinality) == (20, 1.0)


def test_spamassassin_lists(tmp_path: Path) -> None:
    report = read(FOLDER / "spamassassin_lists.jsonl.gz", tmp_path)
    assert (report.n_examples, report.n_labels) == (6046, 16)
    assert sum(len(labels) > 1 for labels in StoredExamples(tmp_path / "set.parquet").label_sets()) == 406


def test_rcv1_label_sets_contain_all_ancestors(tmp_path: Path) -> None:
    parents = json.loads((FOLDER / "rcv1_topics_hierarchy.json").read_text())["parents"]
    tree = LabelTree({child: parent for child, parent in parents.items() if parent != "Root"})
    out = io.BytesIO()
    with gzip.open(FOLDER / "rcv1subset1.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            example = json.loads(line)
            del example["tfidf500"]
            out.write(json.dumps(example).encode() + b"\n")
    reports = []
    for label_tree in (None, tree):
        out.seek(0)
        reports.append(ingest(out, "jsonl", tmp_path / "set.parquet", tree=label_tree))
    without_tree, with_tree = reports
    assert without_tree.splits == {"train": 3000, "validation": 0, "test": 3000, "none": 0}
    assert without_tree.n_labels == 102
    assert round(without_tree.label_cardinality, 1) == 3.2
    assert {
        name: count for name, count in with_tree.label_counts.items() if count
    } == without_tree.label_counts


MULAN = {
    "yeast": (1500, 917, 103, 14),
    "scene": (1211, 1196, 294, 6),
    "emotions": (391, 202, 72, 6),
    "medical": (333, 645, 1449, 45),
    "bibtex": (4880, 2515, 1836, 159),
    "genbase": (463, 199, 1186, 27),
    "tmc2007-500": (21519, 7077, 500, 22),
    "ohsumed": (9301, 4628, 1002, 23),
}


@pytest.mark.parametrize("name", ["yeast", "scene", "emotions", "medical", "genbase", "tmc2007-500"])
@pytest.mark.parametrize("part", ["train", "test"])
def test_mulan_as_svmlight(name: str, part: str, tmp_path: Path) -> None:
    names = json.loads((FOLDER / "mulan" / f"{name}.meta.json").read_text())
    options = SVMLightOptions(format="svmlight", label_names=names["labels"], feature_names=names["features"])
    with (FOLDER / "mulan" / f"{name}-{part}.svm.gz").open("rb") as stream:
        report = ingest(stream, "svmlight", tmp_path / "set.parquet", options=options)
    n_train, n_test, n_features, n_labels = MULAN[name]
    assert counts(report) == (n_train if part == "train" else n_test, n_features, n_labels)


def make_zip(*names: str) -> io.BytesIO:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            content = (FOLDER / "arff" / name).read_bytes()
            plain = gzip.decompress(content) if name.endswith(".gz") else content
            archive.writestr(name.removesuffix(".gz"), plain)
    out.seek(0)
    return out


def test_mulan_as_arff(tmp_path: Path) -> None:
    yeast = ingest(make_zip("yeast.arff.gz", "yeast.xml"), None, tmp_path / "set.parquet")
    assert counts(yeast) == (2417, 103, 14)
    assert round(yeast.label_cardinality, 3) == 4.237
    medical = ingest(make_zip("medical.arff.gz", "medical.xml"), None, tmp_path / "set.parquet")
    assert counts(medical) == (978, 1449, 45)
    assert round(medical.label_cardinality, 3) == 1.245
    genbase = ingest(make_zip("genbase-train.arff", "genbase.xml"), None, tmp_path / "set.parquet")
    assert genbase.n_examples == genbase.splits["none"] == 463
    assert genbase.n_labels == 27


@pytest.mark.parametrize(("name", "n_examples"), [("ImCLEF07A_Train", 10_000), ("ImCLEF07A_Test", 1_006)])
def test_imclef(name: str, n_examples: int, tmp_path: Path) -> None:
    report = read(FOLDER / "hmc" / f"{name}.arff.gz", tmp_path)
    assert counts(report) == (n_examples, 80, 96)
    assert report.n_unlabelled == 0


@pytest.mark.parametrize("part", ["train", "valid", "test"])
def test_funcat(part: str, tmp_path: Path) -> None:
    report = read(FOLDER / "hmc" / f"cellcycle_FUN.{part}.arff.gz", tmp_path)
    assert counts(report)[1:] == (77, 499)
    assert not any("not in the label tree" in warning for warning in report.warnings)


def test_a_zip_of_raw_messages(tmp_path: Path) -> None:
    paths = sorted(path for path in (FOLDER / "eml").rglob("*") if path.is_file())
    contents = {path.read_bytes() for path in paths}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for i, path in enumerate(paths):
            archive.writestr(f"{path.relative_to(FOLDER / 'eml').parts[0]}/{i}.eml", path.read_bytes())
    out.seek(0)
    report = ingest(out, None, tmp_path / "set.parquet")
    assert report.kind == "email"
    n_copies = next(
        int(w.split(": ")[1].partition(";")[0]) for w in report.warnings if w.startswith("copies")
    )
    assert report.n_examples + n_copies == len(paths)
    assert len(paths) > len(contents) > report.n_examples
    assert report.n_duplicates == 17  # in what a learner does not see, such as boundaries between parts
