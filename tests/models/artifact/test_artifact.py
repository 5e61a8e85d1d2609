"""Saved models: loading restores the same model, and damaged or forged files are rejected."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forging import Header, forge, nested
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from scipy.sparse import csr_array

from models import artifact, catalog
from models.artifact import load, read_manifest, save
from models.data.examples import Examples, FeatureRows
from models.errors import ArtifactError, NotFittedError
from models.labels import LabelTree
from models.mail import MAIL_VERSION, Email
from models.pipeline import Pipeline

TEXTS = ["red rose", "blue sky", "red sky", "green grass", "green rose", "blue grass"] * 2
SETS: list[tuple[str, ...]] = [
    ("red", "flower"), ("blue",), ("red",), ("green",), ("green", "flower"), (),
] * 2  # fmt: skip
TREE = LabelTree({"red": "colour", "green": "colour", "blue": "colour"})


def pipeline(algorithm: str = "svm", decision: str | None = None, features: str = "text") -> Pipeline:
    learner = catalog.LEARNER_PARAMETERS.validate_python({"algorithm": algorithm})
    return Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": features}),
        learner,
        catalog.DECISION_PARAMETERS.validate_python({"kind": decision or catalog.own_decision(learner).kind}),
        seed=5,
    )


def fitted(algorithm: str = "svm", decision: str | None = None) -> Pipeline:
    return pipeline(algorithm, decision).fit(Examples("text", TEXTS, SETS), tree=TREE)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "model.covey"
    save(fitted(), path)
    return path


@pytest.mark.parametrize("algorithm", sorted(catalog.ENTRIES))
def test_a_loaded_pipeline_makes_identical_predictions(algorithm: str, tmp_path: Path) -> None:
    before = fitted(algorithm)
    save(before, tmp_path / "model")
    after = load(tmp_path / "model")
    documents = [*TEXTS, "", "unknown words"]
    assert after.scores(documents).tobytes() == before.scores(documents).tobytes()
    assert after.predictions(documents) == before.predictions(documents)
    assert after.predictions(documents, explain=True) == before.predictions(documents, explain=True)
    evaluated = Examples("text", TEXTS, SETS)
    assert after.evaluate(evaluated) == before.evaluate(evaluated)


def test_loading_restores_all_attributes_of_a_pipeline(tmp_path: Path) -> None:
    before = fitted("mmp", "tuned_threshold")
    save(before, tmp_path / "model")
    after = load(tmp_path / "model")
    assert after.labels_ == before.labels_
    assert after.decision_ == before.decision_
    assert after.thresholds_.tobytes() == before.thresholds_.tobytes()
    assert after.tree_ is not None
    assert after.tree_.parents == TREE.parents
    assert after.learner_.validated_parameters() == before.learner_.validated_parameters()
    assert after.features_.parameters == before.features_.parameters
    assert (after.seed, after.kind_, after.summary_) == (5, "text", before.summary_)
    assert after.closed_under_ancestors_ == before.closed_under_ancestors_


def test_numeric_and_mail_models_can_be_saved(tmp_path: Path) -> None:
    rows = FeatureRows(["left", "right"], csr_array(np.eye(2)))
    numeric = pipeline(features="numeric").fit(Examples("features", rows, [("l",), ("r",)]))
    save(numeric, tmp_path / "numeric")
    assert load(tmp_path / "numeric").predictions(rows) == numeric.predictions(rows)
    mails = [Email(subject=text) for text in TEXTS]
    mail = pipeline().fit(Examples("email", mails, SETS))
    save(mail, tmp_path / "mail")
    assert read_manifest(tmp_path / "mail").mail_version == MAIL_VERSION
    assert load(tmp_path / "mail").predictions(mails) == mail.predictions(mails)


def test_saving_twice_produces_identical_files(tmp_path: Path) -> None:
    first = save(fitted(), tmp_path / "first", extra={"b": 1, "a": 2})
    second = save(fitted(), tmp_path / "second", extra={"a": 2, "b": 1})
    again = save(load(tmp_path / "first"), tmp_path / "again", extra={"a": 2, "b": 1})
    content = (tmp_path / "first").read_bytes()
    assert first == second == again
    assert first.sha256 == hashlib.sha256(content).hexdigest()
    assert first.size_bytes == len(content)
    assert content == (tmp_path / "second").read_bytes() == (tmp_path / "again").read_bytes()


def test_arrays_are_read_only_memory_maps_of_the_file(saved: Path) -> None:
    model = load(saved)
    arrays = [model.thresholds_, *model.learner_.get_state().values()]
    assert len(arrays) == 3
    for array in arrays:
        assert not array.flags.writeable
        assert not array.flags.owndata
        assert array.ctypes.data % array.itemsize == 0


def test_the_file_can_be_deleted_while_its_model_is_in_use(saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "model"
    shutil.copy(saved, path)
    model = load(path)
    path.unlink()
    assert model.predictions(TEXTS) == load(saved).predictions(TEXTS)


def test_the_safetensors_library_reads_the_same_arrays(saved: Path) -> None:
    ours = load(saved).get_state()
    with safe_open(saved, "numpy") as file:
        assert set(file.keys()) == set(ours)
        for name, array in ours.items():
            theirs = file.get_tensor(name)
            assert theirs.dtype == array.dtype
            assert theirs.shape == array.shape
            assert theirs.tobytes() == array.tobytes()


def test_the_manifest_describes_the_model(tmp_path: Path) -> None:
    save(fitted(), tmp_path / "model", extra={"metrics": {"test": {"f1_micro": 0.5}}})
    manifest = read_manifest(tmp_path / "model")
    assert manifest.labels == ["blue", "colour", "flower", "green", "red"]
    assert manifest.label_tree == TREE.parents
    assert (manifest.kind, manifest.seed, manifest.mail_version) == ("text", 5, None)
    assert manifest.learner.algorithm == "svm"
    assert manifest.decision.kind == "sign"
    assert manifest.extra == {"metrics": {"test": {"f1_micro": 0.5}}}
    assert {"python", "numpy", "scipy", "scikit-learn"} <= set(manifest.software)
    assert manifest.facts["examples"] == 12


def test_an_unfitted_pipeline_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        save(pipeline(), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_a_flipped_bit_is_always_detected(saved: Path, data: st.DataObject) -> None:
    content = bytearray(saved.read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= 1 << data.draw(st.integers(0, 7))
    damaged = saved.with_name("flipped")
    damaged.write_bytes(content)
    with pytest.raises(ArtifactError):
        load(damaged)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_a_wrong_file_length_is_always_detected(saved: Path, data: st.DataObject) -> None:
    content = saved.read_bytes()
    cut = content[: data.draw(st.integers(0, len(content) - 1))]
    longer = content + data.draw(st.binary(min_size=1, max_size=9))
    for other in (cut, longer):
        damaged = saved.with_name("resized")
        damaged.write_bytes(other)
        with pytest.raises(ArtifactError):
            load(damaged)
        with pytest.raises(ArtifactError):
            read_manifest(damaged)


@given(st.binary(max_size=200))
@settings(max_examples=40, deadline=None)
def test_other_files_are_rejected(saved: Path, content: bytes) -> None:
    other = saved.with_name("foreign")
    for foreign in (content, len(content).to_bytes(8, "little") + content):
        other.write_bytes(foreign)
        with pytest.raises(ArtifactError):
            load(other)


def test_without_verification_only_the_manifest_is_checked(saved: Path, tmp_path: Path) -> None:
    content = bytearray(saved.read_bytes())
    content[-1] ^= 1
    path = tmp_path / "model"
    path.write_bytes(content)
    with pytest.raises(ArtifactError, match="damaged"):
        load(path)
    assert load(path, verify=False).labels_


def forged(
    saved: Path, path: Path, change: Callable[[Header, dict[str, Any]], None], tail: bytes = b""
) -> Path:
    """Write a file with a changed header and a correct checksum of the manifest."""
    path.write_bytes(forge(saved.read_bytes(), change, tail))
    return path


def test_an_unchanged_header_gives_the_same_file(saved: Path, tmp_path: Path) -> None:
    same = forged(saved, tmp_path / "same", lambda *_: None)
    assert same.read_bytes() == saved.read_bytes()


def _set(*path: str | int, to: Any) -> Callable[[Header, dict[str, Any]], None]:
    def change(header: Header, manifest: dict[str, Any]) -> None:
        place: Any = manifest
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = to

    return change


def test_a_default_does_not_replace_a_missing_parameter(tmp_path: Path) -> None:
    save(pipeline().fit(Examples("text", TEXTS, SETS)), tmp_path / "model")

    def remove(header: Header, manifest: dict[str, Any]) -> None:
        del manifest["features"]["analyzer"]["unsegmented"]

    with pytest.raises(ArtifactError, match="lacks fields"):
        load(forged(tmp_path / "model", tmp_path / "forged", remove))


@pytest.mark.parametrize("algorithm", ["svm", "h_svm"])
def test_a_model_with_a_chosen_decision_keeps_its_rule_and_its_report(algorithm: str, tmp_path: Path) -> None:
    model = pipeline(algorithm)
    model.decision = catalog.DECISION_PARAMETERS.validate_python({"kind": "auto", "at_most": 2})
    model.fit(Examples("text", TEXTS * 3, SETS * 3), tree=TREE)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert model.decision_report_ is not None
    assert loaded.decision_report_ == model.decision_report_
    assert loaded.calibration_ is not None
    assert model.calibration_ is not None
    for name, array in model.calibration_.get_state().items():
        assert loaded.calibration_.get_state()[name].tobytes() == array.tobytes()
    rules = [(p.rule_.at_least, p.rule_.at_most, p.rule_.thresholds.tolist()) for p in (model, loaded)]
    assert rules[0] == rules[1]
    parents = [None if p.rule_.parents is None else p.rule_.parents.tolist() for p in (model, loaded)]
    assert parents[0] == parents[1]
    assert (parents[0] is not None) == loaded.closed_under_ancestors_ == (algorithm == "h_svm")


def _unknown_member(header: Header, manifest: dict[str, Any]) -> None:
    header["more"] = {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}


def _member_twice(header: Header, manifest: dict[str, Any]) -> None:
    manifest["arrays"].append(manifest["arrays"][-1])


def _overlap(header: Header, manifest: dict[str, Any]) -> None:
    names = [entry["name"] for entry in manifest["arrays"]]
    header[names[1]]["data_offsets"] = header[names[0]]["data_offsets"]


def _other_metadata(header: Header, manifest: dict[str, Any]) -> None:
    header["__metadata__"]["note"] = "hello"


@pytest.mark.parametrize(
    "change",
    [
        _unknown_member,
        _member_twice,
        _overlap,
        _other_metadata,
        _set("format", to="other"),
        _set("format_version", to=2),
        _set("unknown", to=1),
        _set("labels", to=["red", "blue", "colour", "flower", "green"]),
        _set("labels", to=["blue", "blue", "colour", "flower", "green"]),
        _set("labels", to=["blue"]),
        _set("labels", to=[]),
        _set("target", "form", to="lists"),
        _set("target", to={"form": "classes", "classes": ["blue"], "dtype": "str"}),
        _set("target", to={"form": "classes", "classes": ["blue", "other"], "dtype": "str"}),
        _set("target", to={"form": "classes", "classes": ["blue", "blue"], "dtype": "str"}),
        _set("target", to={"form": "matrix", "classes": [], "dtype": "int64"}),
        _set("target", to={"form": "matrix", "classes": [0, 1], "dtype": "int64"}),
        _set("target", to={"form": "matrix", "classes": ["blue"], "dtype": "int8"}),
        _set("target", to={"form": "matrix", "classes": [["blue"]], "dtype": "str"}),
        _set("target", to={"form": "matrix", "classes": ["blue"], "dtype": "U999999999"}),
        _set("label_tree", to={"a": "b", "b": "a"}),
        _set("learner", to={"algorithm": "mmp"}),
        _set("learner", to={"algorithm": "unknown"}),
        _set("learner", "C", to=-1),
        _set("features", to={"kind": "numeric"}),
        _set("decision", to={"kind": "best"}),
        _set("decision", to={"kind": "calibrated_label"}),
        _set("arrays", 0, "shape", to=[-1]),
        _set("arrays", 0, "shape", to=[2**62, 2**62]),
        _set("arrays", 0, "dtype", to="object"),
        _set("arrays", 0, "sha256", to="0" * 64),
        _set("arrays", 0, "name", to="../../etc/passwd"),
        _set("arrays", to=[]),
        _set("labels", 0, to="\ud800"),
        _set("labels", 0, to="a\nb"),
        _set("labels", 0, to="\0"),
        _set("labels", 0, to=" " * 3),
        _set("labels", 0, to="a" * 513),
        _set("label_tree", "red", to="\ud800"),
        _set("warnings", to=["\ud800"]),
        _set("warnings", to=["a" * 2**20]),
        _set("facts", to=nested(40)),
        _set("facts", "deep", to=nested(900)),
        _set("facts", "number", to=float("nan")),
        _set("facts", "number", to=10**400),
        _set("facts", "\ud800", to=1),
        _set("extra", "note", to="\0"),
        _set("seed", to=2**32),
        _set("seed", to="1"),
        _set("features", to="text"),
        _set("features", "analyzer", to=None),
        _set("software", to={"python": 3}),
        _set("rule", "at_least", to=-1),
        _set("rule", "at_most", to=0),
        _set("decision_report", to={"unreachable_labels": "many"}),
        _set("reference", "label_counts", to=[1]),
        _set("reference", "examples", to=-1),
        _set("reference", "unknown_terms", to=[1] * 99),
        _set("reference", "mean_unknown_terms", to=2.0),
    ],
)
def test_invalid_headers_are_rejected(
    saved: Path, tmp_path: Path, change: Callable[[Header, dict[str, Any]], None]
) -> None:
    with pytest.raises(ArtifactError):
        load(forged(saved, tmp_path / "forged", change))


@pytest.mark.parametrize("shape", [[0, 2**62, 4], [0, 2**40, 2**40], [2**62, 8, 0]])
def test_an_empty_array_with_a_huge_shape_is_rejected(saved: Path, tmp_path: Path, shape: list[int]) -> None:
    def change(header: Header, manifest: dict[str, Any]) -> None:
        end = max(entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__")
        header["more"] = {"dtype": "F64", "shape": shape, "data_offsets": [end, end]}
        sha256 = hashlib.sha256(b"").hexdigest()
        manifest["arrays"].append({"name": "more", "dtype": "F64", "shape": shape, "sha256": sha256})

    with pytest.raises(ArtifactError, match="invalid shape"):
        load(forged(saved, tmp_path / "forged", change))


def test_a_rule_that_adds_ancestors_needs_a_label_tree(tmp_path: Path) -> None:
    save(pipeline().fit(Examples("text", TEXTS, SETS)), tmp_path / "model")
    with pytest.raises(ArtifactError, match="no label tree"):
        load(forged(tmp_path / "model", tmp_path / "forged", _set("rule", "adds_ancestors", to=True)))


def test_a_model_of_another_mail_version_is_rejected(tmp_path: Path) -> None:
    mail = pipeline().fit(Examples("email", [Email(subject=text) for text in TEXTS], SETS))
    save(mail, tmp_path / "mail")
    other = forged(tmp_path / "mail", tmp_path / "other", _set("mail_version", to=MAIL_VERSION + 1))
    with pytest.raises(ArtifactError, match="train it again"):
        load(other)


def test_files_that_are_too_large_are_neither_read_nor_written(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = saved.stat().st_size
    monkeypatch.setattr(artifact.header, "MAX_BYTES", size - 1)
    with pytest.raises(ArtifactError, match="too large"):
        load(saved)
    with pytest.raises(ArtifactError, match="too large"):
        save(fitted(), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(artifact.header, "MAX_BYTES", size)
    assert load(saved).labels_
    monkeypatch.setattr(artifact.header, "MAX_HEADER_BYTES", 100)
    with pytest.raises(ArtifactError, match="too large"):
        load(saved)


def test_a_failed_write_keeps_only_the_old_file(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model"
    shutil.copy(saved, path)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save(fitted("mmp"), path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]
    assert path.read_bytes() == saved.read_bytes()


def test_no_module_imports_a_library_that_executes_code_on_load() -> None:
    root = Path(artifact.__file__).parents[1]
    for path in root.rglob("*.py"):
        words = path.read_text(encoding="utf-8")
        for module in ("pickle", "joblib", "marshal", "shelve", "dill"):
            assert f"import {module}" not in words, path
            assert f"from {module}" not in words, path
        assert "allow_pickle=True" not in words, path
