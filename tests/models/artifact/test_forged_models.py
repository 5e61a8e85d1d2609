"""Forged models with correct checksums: they are rejected, or their predictions are valid."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from models import catalog
from models.arrays import AnyArray
from models.artifact import load, save
from models.base import State
from models.base.abilities import can_explain
from models.data.examples import Examples, FeatureRows
from models.errors import ArtifactError, UnsuitableDataError
from models.labels import LabelTree
from models.perceptrons import MLPP
from models.pipeline import Pipeline

TEXTS = ["red rose", "blue sky", "red sky", "green grass", "green rose", "blue grass", "sky"] * 2
SETS: list[tuple[str, ...]] = [
    ("red", "flower"), ("blue",), ("red",), ("green",), ("green", "flower"), (), ("blue",),
] * 2  # fmt: skip
TREE = LabelTree({"red": "colour", "green": "colour", "blue": "colour"})

TEXT_MODELS: dict[str, dict[str, Any]] = {
    **{name: {"algorithm": name} for name in sorted(catalog.ENTRIES)},
    "adaboost_mh": {"algorithm": "adaboost_mh", "rounds": 5},
    "mp_boost": {"algorithm": "mp_boost", "rounds": 5},
    "mlpp weighted": {"algorithm": "mlpp", "voting": "weighted"},
    "mlpp calibrated": {"algorithm": "mlpp", "calibrated": True},
    "naive_bayes single": {"algorithm": "naive_bayes", "label_mode": "single_label"},
    "h_m3 polynomial": {"algorithm": "h_m3", "kernel": "polynomial"},
    "h_m3 rbf": {"algorithm": "h_m3", "kernel": {"kind": "rbf", "gamma": 0.5}},
}
NUMERIC_MODELS: dict[str, dict[str, Any]] = {
    "mp_boost thresholds": {"algorithm": "mp_boost", "rounds": 5},
    "h_rls dual": {"algorithm": "h_rls"},
}
MODELS = sorted([*TEXT_MODELS, *NUMERIC_MODELS])


def measurements() -> FeatureRows:
    rng = np.random.default_rng(0)
    return FeatureRows(["height", "length", "weight"], csr_array(rng.normal(size=(len(SETS), 3))))


def documents(name: str) -> Any:
    return [*TEXTS, "", "unknown words", " ".join(TEXTS)] if name in TEXT_MODELS else measurements()


@cache
def trained(name: str) -> Pipeline:
    text = name in TEXT_MODELS
    features = {"kind": "text"} if text else {"kind": "numeric", "scaling": "max_abs", "interactions": 2}
    source = Examples("text", TEXTS, SETS) if text else Examples("features", measurements(), SETS)
    learner = catalog.LEARNER_PARAMETERS.validate_python((TEXT_MODELS | NUMERIC_MODELS)[name])
    return Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python(features), learner, catalog.own_decision(learner)
    ).fit(source, tree=TREE)


def written(name: str, state: State, path: Path) -> Path:
    """Write a file with the manifest of a model and other arrays."""
    forger = Pipeline(trained(name).features, trained(name).learner)
    forger.__dict__.update(trained(name).__dict__, get_state=lambda: state)
    save(forger, path)
    return path


def use(name: str, model: Pipeline) -> None:
    """Use all functions of a model. It may raise the error that its scores are not finite."""
    some = documents(name)
    with suppress(UnsuitableDataError):
        assert np.isfinite(model.scores(some)).all()
        model.predictions(some, explain=can_explain(model.learner_))
        if isinstance(model.learner_, MLPP):
            votes = model.learner_.quick_top(model.features_.transform(some), 2)
            assert np.isfinite(votes.scores).all()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for thousands of small files, which are not flushed to disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield tmp_path_factory.mktemp("crafted")


@pytest.mark.parametrize("name", MODELS)
def test_the_same_arrays_give_the_same_model(name: str, folder: Path) -> None:
    model = load(written(name, trained(name).get_state(), folder / "same"))
    some = documents(name)
    assert model.scores(some).tobytes() == trained(name).scores(some).tobytes()
    use(name, model)


def _retyped(array: AnyArray) -> AnyArray:
    return array.astype(np.float32 if array.dtype != np.float32 else np.float64)


REFUSED: dict[str, Callable[[AnyArray], AnyArray]] = {
    "another type": _retyped,
    "an axis more": lambda array: array[np.newaxis],
    "another order of axes": lambda array: np.moveaxis(array[..., np.newaxis], -1, 0)[..., np.newaxis],
}


@pytest.mark.parametrize("change", sorted(REFUSED))
@pytest.mark.parametrize("name", MODELS)
def test_arrays_of_other_types_and_shapes_are_rejected(name: str, change: str, folder: Path) -> None:
    state = trained(name).get_state()
    for array in state:
        changed = {**state, array: REFUSED[change](state[array])}
        with pytest.raises(ArtifactError):
            load(written(name, changed, folder / "form"))


@pytest.mark.parametrize("name", MODELS)
def test_missing_and_unknown_arrays_are_rejected(name: str, folder: Path) -> None:
    state = trained(name).get_state()
    names = {"learner.label_ends", "learner.label_bytes"}  # label names are optional
    for array in state.keys() - names:
        changed = {other: value for other, value in state.items() if other != array}
        with pytest.raises(ArtifactError):
            load(written(name, changed, folder / "missing"))
    with pytest.raises(ArtifactError, match=r"learner\.more"):
        load(written(name, {**state, "learner.more": np.zeros(1)}, folder / "more"))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_rejected(name: str, value: float, folder: Path) -> None:
    state = trained(name).get_state()
    for array, content in state.items():
        if content.dtype.kind != "f" or not content.size:
            continue
        changed = content.copy()
        changed.flat[-1] = value
        with pytest.raises(ArtifactError):
            load(written(name, {**state, array: changed}, folder / "nan"))


INDICES = ("indices", "indptr", "labels", "features", "children", "parents", "offsets", "products", "ends")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("value", [-2, 10**6, 2**31 - 1, 2**62])
def test_indices_out_of_range_are_rejected_before_use(name: str, value: int, folder: Path) -> None:
    state = trained(name).get_state()
    for array, content in state.items():
        if not array.endswith(INDICES) or not content.size or value > np.iinfo(content.dtype).max:
            continue
        for place in (0, -1):
            changed = content.copy()
            changed.flat[place] = value
            with pytest.raises(ArtifactError):
                load(written(name, {**state, array: changed}, folder / "range"))


@st.composite
def changed_arrays(draw: st.DrawFn, state: State) -> State:
    """A state with a random change of one array."""
    name = draw(st.sampled_from(sorted(state)))
    array = state[name].copy()
    ways = ["values"] * bool(array.size) + ["rows"] * bool(array.ndim) + ["order"] * bool(array.size)
    match draw(st.sampled_from(ways)) if ways else "":
        case "values":
            numbers: st.SearchStrategy[Any] = (
                st.sampled_from([-1e308, -1e9, -1.0, 0.0, 5e-324, 1.0, 1e9, 1e308])
                if array.dtype.kind == "f"
                else st.sampled_from([-(2**62), -2, -1, 0, 1, 2, 3, 5, 100, 2**31, 2**62])
            )
            for _ in range(draw(st.integers(1, 3))):
                with np.errstate(over="ignore"):
                    array.flat[draw(st.integers(0, array.size - 1))] = np.array(draw(numbers)).astype(
                        array.dtype
                    )
        case "rows":
            rows = draw(st.lists(st.integers(0, max(0, len(array) - 1)), max_size=len(array) + 2))
            array = array[rows] if len(array) else np.zeros((1, *array.shape[1:]), array.dtype)
        case "order":
            array = array.reshape(-1)[::-1].reshape(array.shape)
    return {**state, name: array}


@pytest.mark.parametrize("name", MODELS)
def test_other_changes_are_rejected_or_harmless(name: str, folder: Path) -> None:
    @given(changed_arrays(trained(name).get_state()))
    @settings(max_examples=settings().max_examples // 4)
    def check(state: State) -> None:
        try:
            model = load(written(name, state, folder / "changed"))
        except ArtifactError:
            return
        use(name, model)

    check()
